#include "cpu/early_releases.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "cpu/outputs.h"
#include "hlo/opcode.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Instructions by their positions in the order that is given.
class EarlyReleases {
 public:
  EarlyReleases(const Computation& computation, const std::vector<const Instruction*>& order,
                const std::vector<int64_t>& aliases)
      : order_(order), states_(order.size()) {
    for (size_t p = 0; p < order.size(); ++p) position_of_[order[p]] = p;
    for (const Instruction* result : computation.results()) results_.insert(Resolve(result));
    for (size_t p = 0; p < order.size(); ++p) {
      AddReads(p);
      AddBytes(p);
    }
    AwaitReadersOfDonated(computation, aliases);
  }

  std::vector<const Instruction*> Order() {
    for (size_t p = 0; p < order_.size(); ++p) {
      if (!states_[p].is_done) Run(p);
      while (!candidates_.empty()) {
        const size_t candidate = candidates_.back();
        candidates_.pop_back();
        if (FreesMore(candidate)) Run(candidate);
      }
    }
    return std::move(result_);
  }

 private:
  struct State {
    std::vector<Output> reads;      // of other instructions, each once
    std::vector<size_t> followers;  // that wait for it
    int64_t missing = 0;            // how many it waits for
    int64_t bytes = 0;              // that it makes and are not the computation's results
    bool is_done = false;
  };

  void AddReads(size_t p) {
    struct Read {
      size_t made_at;  // the position
      Output operand;
    };
    std::vector<Read> reads;
    ForEachOperand(order_[p], [&](const Output& operand) {
      const auto made = position_of_.find(operand.instruction);
      if (made != position_of_.end()) {
        reads.push_back({made->second, operand});
      } else if (operand.instruction->opcode() == Opcode::kParameter) {
        readers_[operand].push_back(p);
      }
    });
    // In an order that is the same in each run.
    const auto place = [](const Read& read) { return std::pair(read.made_at, read.operand.index); };
    std::ranges::sort(reads, {}, place);
    const auto repeated = std::ranges::unique(reads, {}, place);
    reads.erase(repeated.begin(), repeated.end());
    for (const Read& read : reads) {
      states_[p].reads.push_back(read.operand);
      readers_[read.operand].push_back(p);
      ++unread_[read.operand];
      Await(p, read.made_at);
    }
  }

  void AddBytes(size_t p) {
    for (int64_t k = 0; k < OutputCount(order_[p]); ++k) {
      const Output output{order_[p], k};
      if (!results_.contains(output)) states_[p].bytes += ShapeOf(output).byte_size();
    }
  }

  // Whoever makes a result in a donated parameter's memory waits for those that read the parameter
  // before it; otherwise the result would need memory of its own.
  void AwaitReadersOfDonated(const Computation& computation, const std::vector<int64_t>& aliases) {
    for (size_t r = 0; r < std::min(computation.results().size(), aliases.size()); ++r) {
      if (aliases[r] < 0) continue;
      const auto made = position_of_.find(Resolve(computation.results()[r]).instruction);
      if (made == position_of_.end()) continue;
      for (size_t reader : readers_[{computation.parameter(aliases[r]), 0}]) {
        if (reader < made->second) Await(made->second, reader);
      }
    }
  }

  void Await(size_t follower, size_t leader) {
    states_[leader].followers.push_back(follower);
    ++states_[follower].missing;
  }

  // The candidates afterwards: what has all that it waited for, and the last to read something.
  void Run(size_t p) {
    states_[p].is_done = true;
    result_.push_back(order_[p]);
    for (size_t follower : states_[p].followers) {
      if (--states_[follower].missing == 0) candidates_.push_back(follower);
    }
    for (const Output& read : states_[p].reads) {
      if (--unread_[read] != 1) continue;
      for (size_t reader : readers_[read]) {
        if (!states_[reader].is_done) candidates_.push_back(reader);
      }
    }
  }

  bool FreesMore(size_t p) const {
    const State& state = states_[p];
    if (state.is_done || state.missing > 0 || order_[p]->HasSideEffect()) return false;
    int64_t freed = 0;
    for (const Output& read : state.reads) {
      if (unread_.at(read) == 1 && !results_.contains(read)) freed += ShapeOf(read).byte_size();
    }
    return freed > state.bytes;
  }

  const std::vector<const Instruction*>& order_;
  std::vector<State> states_;
  std::unordered_map<const Instruction*, size_t> position_of_;
  OutputMap<std::vector<size_t>> readers_;
  OutputMap<int64_t> unread_;  // by how many that have not run
  std::set<Output> results_;
  std::vector<size_t> candidates_;
  std::vector<const Instruction*> result_;
};

}  // namespace

std::vector<const Instruction*> WithEarlyReleases(const Computation& computation,
                                                  const std::vector<const Instruction*>& order,
                                                  const std::vector<int64_t>& aliases) {
  return EarlyReleases(computation, order, aliases).Order();
}

}  // namespace cpu
