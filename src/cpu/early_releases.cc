#include "cpu/early_releases.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "cpu/output_map.h"
#include "cpu/outputs.h"
#include "hlo/opcode.h"
#include "hlo/short_list.h"

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
    for (size_t p = 0; p < order.size(); ++p) position_of_[{order[p], 0}] = p;
    for (const Instruction* result : computation.results()) is_result_[Resolve(result)] = true;
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
    hlo::ShortList<Output> reads;      // of other instructions, each once
    hlo::ShortList<size_t> followers;  // that wait for it
    int64_t missing = 0;               // how many it waits for
    int64_t bytes = 0;                 // that it makes and are not the computation's results
    bool is_done = false;
  };
  struct Readers {
    hlo::ShortList<size_t> all;
    int64_t waiting = 0;  // how many have not run
  };

  void AddReads(size_t p) {
    struct Read {
      size_t made_at;  // the position
      Output operand;
    };
    hlo::ShortList<Read> reads;
    ForEachOperand(order_[p], [&](const Output& operand) {
      if (const size_t* made = position_of_.Find({operand.instruction, 0})) {
        reads.push_back({*made, operand});
      } else if (operand.instruction->opcode() == Opcode::kParameter) {
        readers_[operand].all.push_back(p);
      }
    });
    // In an order that is the same in each run.
    const auto place = [](const Read& read) { return std::pair(read.made_at, read.operand.index); };
    std::ranges::sort(reads, {}, place);
    const auto repeated = std::ranges::unique(reads, {}, place);
    for (const Read& read : std::ranges::subrange(reads.begin(), repeated.begin())) {
      states_[p].reads.push_back(read.operand);
      Readers& readers = readers_[read.operand];
      readers.all.push_back(p);
      ++readers.waiting;
      Await(p, read.made_at);
    }
  }

  void AddBytes(size_t p) {
    for (int64_t k = 0; k < OutputCount(order_[p]); ++k) {
      const Output output{order_[p], k};
      if (!is_result_.contains(output)) states_[p].bytes += ShapeOf(output).byte_size();
    }
  }

  // Whoever makes a result in a donated parameter's memory waits for those that read the parameter
  // before it; otherwise the result would need memory of its own.
  void AwaitReadersOfDonated(const Computation& computation, const std::vector<int64_t>& aliases) {
    for (size_t r = 0; r < std::min(computation.results().size(), aliases.size()); ++r) {
      if (aliases[r] < 0) continue;
      const size_t* made = position_of_.Find({Resolve(computation.results()[r]).instruction, 0});
      const Readers* readers = readers_.Find({computation.parameter(aliases[r]), 0});
      if (made == nullptr || readers == nullptr) continue;
      for (size_t reader : readers->all) {
        if (reader < *made) Await(*made, reader);
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
      Readers& readers = *readers_.Find(read);
      if (--readers.waiting != 1) continue;
      for (size_t reader : readers.all) {
        if (!states_[reader].is_done) candidates_.push_back(reader);
      }
    }
  }

  bool FreesMore(size_t p) const {
    const State& state = states_[p];
    if (state.is_done || state.missing > 0) return false;
    int64_t freed = 0;
    for (const Output& read : state.reads) {
      const bool is_last = readers_.at(read).waiting == 1;
      if (is_last && !is_result_.contains(read)) freed += ShapeOf(read).byte_size();
    }
    return freed > state.bytes && !order_[p]->HasSideEffect();
  }

  const std::vector<const Instruction*>& order_;
  std::vector<State> states_;
  OutputMap<size_t> position_of_;  // by the first output
  OutputMap<Readers> readers_;
  OutputMap<bool> is_result_;  // of those that are
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
