#include "cpu/schedule.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "cpu/early_releases.h"
#include "cpu/fusible.h"
#include "hlo/opcode.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool TakesTime(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::kConstant:
    case Opcode::kGetTupleElement:
    case Opcode::kParameter:
    case Opcode::kTuple:
      return false;
    default:
      return !IsView(*i);
  }
}

// Lets as many all-gathers wait for their use at a time as need twice the largest one's memory: one
// is used while the next is under way. Positions are those of the module's order without
// collectives.
class AllGatherLimit {
 public:
  explicit AllGatherLimit(const Computation& computation) {
    std::vector<const Instruction*> collectives;
    int64_t position = 0;
    for (const auto& instruction : computation.instructions()) {
      const Instruction* i = instruction.get();
      if (!TakesTime(i)) continue;
      if (hlo::IsCollective(i->opcode())) {
        collectives.push_back(i);
        if (i->opcode() == Opcode::kAllGather) most_bytes_ = std::max(most_bytes_, 2 * BytesOf(i));
        continue;
      }
      ForEachOperand(i, [&](const Output& operand) {
        if (hlo::IsCollective(operand.instruction->opcode())) {
          first_use_.emplace(operand.instruction, position);
        }
      });
      ++position;
    }
    int64_t latest = position - 1;
    for (const Instruction* i : std::views::reverse(collectives)) {
      auto use = first_use_.find(i);
      if (use != first_use_.end()) latest = std::min(latest, use->second - 1);
      latest_[i] = latest;
    }
  }

  // Where it starts: after `earliest`, when its operands are there.
  int64_t Start(const Instruction* gather, int64_t earliest) {
    const int64_t bytes = BytesOf(gather);
    int64_t start = earliest;
    while (start < latest_.at(gather)) {
      int64_t total = bytes, next = latest_.at(gather);
      for (const auto& [use, held] : waiting_) {
        if (use <= start) continue;
        total += held;
        next = std::min(next, use);
      }
      if (total <= most_bytes_) break;
      start = next;
    }
    std::erase_if(waiting_, [&](const auto& other) { return other.first <= start; });
    auto use = first_use_.find(gather);
    if (use != first_use_.end()) waiting_.emplace_back(use->second, bytes);
    return start;
  }

 private:
  static int64_t BytesOf(const Instruction* gather) {
    return static_cast<int64_t>(gather->shape().byte_size());
  }

  std::unordered_map<const Instruction*, int64_t> first_use_;
  // Where each must have started, so that it and those after it are there when they are used.
  std::unordered_map<const Instruction*, int64_t> latest_;
  int64_t most_bytes_ = 0;
  std::vector<std::pair<int64_t, int64_t>> waiting_;  // first use, bytes
};

std::vector<const Instruction*> ThatTakeTime(const Computation& computation) {
  std::vector<const Instruction*> order;
  for (const auto& instruction : computation.instructions()) {
    if (TakesTime(instruction.get())) order.push_back(instruction.get());
  }
  return order;
}

// With collectives.
std::vector<const Instruction*> FindOrder(const Computation& computation) {
  struct Place {
    int64_t position;  // in the module's order
    int64_t number;    // of the collective that starts after it, from 1 on
    const Instruction* instruction;
  };
  std::vector<Place> places;
  std::unordered_map<const Instruction*, int64_t> position_of;
  AllGatherLimit limit(computation);
  int64_t position = 0, collectives = 0, earliest = -1;
  for (const auto& instruction : computation.instructions()) {
    const Instruction* i = instruction.get();
    if (!TakesTime(i)) continue;
    if (!hlo::IsCollective(i->opcode())) {
      position_of[i] = position;
      places.push_back({position++, 0, i});
      continue;
    }
    for (const Instruction* operand : i->operands()) {
      auto found = position_of.find(Resolve(operand).instruction);
      if (found != position_of.end()) earliest = std::max(earliest, found->second);
    }
    if (i->opcode() == Opcode::kAllGather) earliest = limit.Start(i, earliest);
    position_of[i] = earliest;
    places.push_back({earliest, ++collectives, i});
  }
  std::ranges::stable_sort(places, [](const Place& a, const Place& b) {
    return std::pair(a.position, a.number) < std::pair(b.position, b.number);
  });
  std::vector<const Instruction*> order;
  for (const Place& place : places) order.push_back(place.instruction);
  return order;
}

void Use(Schedule& schedule, const Output& output, int64_t position) {
  int64_t& last = schedule.last_use[output];
  last = std::max(last, position);
}

void FindLifetimes(Schedule& schedule) {
  for (size_t p = 0; p < schedule.order.size(); ++p) {
    const Instruction* i = schedule.order[p];
    const auto position = static_cast<int64_t>(p);
    for (int64_t k = 0; k < OutputCount(i); ++k) {
      schedule.defined[{i, k}] = position;
      schedule.last_use[{i, k}] = position;
    }
    ForEachOperand(i, [&](const Output& operand) { Use(schedule, operand, position); });
  }
}

// Where a reduce-scatter is awaited at the latest, for its operand needs more memory than its
// result: before a later one starts with which those under way would need more than twice the
// largest one's.
int64_t LatestDone(const Schedule& schedule, size_t p) {
  if (schedule.order[p]->opcode() != Opcode::kReduceScatter) return Schedule::kEnd;
  const auto bytes = [](const Instruction* i) {
    return static_cast<int64_t>(i->operand(0)->shape().byte_size());
  };
  int64_t total = bytes(schedule.order[p]), largest = total;
  for (size_t q = p + 1; q < schedule.order.size(); ++q) {
    const Instruction* i = schedule.order[q];
    if (i->opcode() != Opcode::kReduceScatter) continue;
    total += bytes(i);
    largest = std::max(largest, bytes(i));
    if (total > 2 * largest) return static_cast<int64_t>(q);
  }
  return Schedule::kEnd;
}

int64_t OperandNumber(const Instruction* instruction, const Output& operand) {
  for (size_t i = 0; i < instruction->operand_count(); ++i) {
    if (Resolve(instruction->operand(i)) == operand) return static_cast<int64_t>(i);
  }
  return -1;
}

// True if nobody but the collective, whose results may be its operands, can come to write to the
// operand's memory while it is under way.
bool IsTakenOver(const Schedule& schedule, const std::vector<int64_t>& aliases,
                 const Output& operand, const Instruction* collective) {
  if (operand.instruction->opcode() == Opcode::kConstant) return false;
  if (operand.instruction->opcode() != Opcode::kParameter) {
    return MayOverwrite({collective, OperandNumber(collective, operand)}, operand);
  }
  for (size_t r = 0; r < std::min(schedule.results.size(), aliases.size()); ++r) {
    if (schedule.results[r].instruction == collective &&
        aliases[r] == operand.instruction->parameter_number()) {
      return MayOverwrite(schedule.results[r], operand);
    }
  }
  return false;
}

// Collectives that are done only where their results are used first. Their memory is in use until
// then.
void FindAsynchronous(Schedule& schedule, const std::vector<int64_t>& aliases) {
  std::unordered_map<const Instruction*, int64_t> first_use;
  for (size_t p = 0; p < schedule.order.size(); ++p) {
    ForEachOperand(schedule.order[p], [&](const Output& operand) {
      first_use.emplace(operand.instruction, static_cast<int64_t>(p));
    });
  }
  for (size_t p = 0; p < schedule.order.size(); ++p) {
    const Instruction* i = schedule.order[p];
    if (!hlo::IsCollective(i->opcode())) continue;
    auto found = first_use.find(i);
    const int64_t wanted = found == first_use.end() ? Schedule::kEnd : found->second;
    const int64_t use = std::min(wanted, LatestDone(schedule, p));
    const auto own = static_cast<int64_t>(p);
    if (use == own + 1 || (use == Schedule::kEnd && p + 1 == schedule.order.size())) continue;
    const auto number = static_cast<int64_t>(schedule.asynchronous.size());
    schedule.asynchronous[i] = number;
    schedule.done_before[use].push_back(i);
    ForEachOperand(i, [&](const Output& operand) {
      if (schedule.last_use[operand] == own && IsTakenOver(schedule, aliases, operand, i)) return;
      Use(schedule, operand, use);
    });
    for (int64_t k = 0; k < OutputCount(i); ++k) Use(schedule, {i, k}, use);
  }
}

}  // namespace

Schedule MakeSchedule(const Computation& computation, const std::vector<int64_t>& aliases) {
  Schedule schedule;
  const bool communicates = std::ranges::any_of(
      computation.instructions(), [](const auto& i) { return hlo::IsCollective(i->opcode()); });
  // The order of collectives is that of all ranks, and stays.
  schedule.order = communicates
                       ? FindOrder(computation)
                       : WithEarlyReleases(computation, ThatTakeTime(computation), aliases);
  for (const Instruction* result : computation.results()) {
    schedule.results.push_back(Resolve(result));
  }
  FindLifetimes(schedule);
  if (communicates) FindAsynchronous(schedule, aliases);
  return schedule;
}

}  // namespace cpu
