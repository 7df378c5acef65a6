#include "cpu/buffer_assignment.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "cpu/arena_planner.h"
#include "hlo/error.h"
#include "hlo/opcode.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

class Assigner {
 public:
  Assigner(const Computation& computation, const Schedule& schedule,
           const std::vector<int64_t>& aliases)
      : computation_(computation),
        schedule_(schedule),
        aliases_(aliases),
        last_use_(schedule.last_use) {}

  BufferAssignment Run(const std::vector<std::vector<int64_t>>& scratch_bytes) {
    PlaceParametersAndConstants();
    PlaceResults();
    for (size_t r = 0; r < schedule_.results.size(); ++r) PlaceOverwritten(r);
    for (size_t p = 0; p < schedule_.order.size(); ++p) {
      const auto position = static_cast<int64_t>(p);
      PlaceOutputs(position);
      PlaceScratch(scratch_bytes[p]);
      FreeDead(position);
    }
    assignment_.arena_bytes = arena_.total_bytes();
    return std::move(assignment_);
  }

 private:
  // A result that is computed elsewhere.
  struct Pending {
    Output value;
    int32_t target;
    int64_t bytes;
  };

  int32_t BufferOf(const Output& output) const { return assignment_.buffer_of.at(output); }
  int64_t Alias(size_t result) const { return result < aliases_.size() ? aliases_[result] : -1; }

  void PlaceParametersAndConstants() {
    for (const auto& instruction : computation_.instructions()) {
      const Instruction* i = instruction.get();
      if (i->opcode() == Opcode::kParameter) {
        if (i->shape().is_tuple()) {
          throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                           "the CPU engine takes no tuples as parameters: " + i->ToString());
        }
        assignment_.buffer_of[{i, 0}] =
            assignment_.Add({BufferLocation::kArgument, i->parameter_number(), 0, nullptr});
      } else if (i->opcode() == Opcode::kConstant) {
        assignment_.buffer_of[{i, 0}] =
            assignment_.Add({BufferLocation::kConstant, 0, 0, i->literal().bytes()});
      }
    }
  }

  // Values that are results are computed where the caller wants them, unless that memory is still
  // read. Then they are copied there at the end.
  void PlaceResults() {
    std::set<Output> placed;
    for (size_t r = 0; r < schedule_.results.size(); ++r) {
      const Output& value = schedule_.results[r];
      const int64_t bytes = ShapeOf(value).byte_size();
      const bool computed = schedule_.defined.contains(value);
      const int32_t target =
          assignment_.Add({BufferLocation::kResult, static_cast<int64_t>(r), 0, nullptr});
      if (computed && !placed.contains(value) && MayWriteEarly(value, Alias(r))) {
        placed.insert(value);
        assignment_.buffer_of[value] = target;
        continue;
      }
      if (computed) last_use_[value] = Schedule::kEnd;
      if (IsTakenByAnother(value, r)) {
        assignment_.last_copies.push_back({Staged(value, bytes), target, bytes});
      } else {
        pending_.push_back({value, target, bytes});
      }
    }
    for (const Pending& copy : pending_) {
      // Computed ones are copied from where they are placed then.
      if (!schedule_.defined.contains(copy.value) && assignment_.buffer_of.contains(copy.value)) {
        assignment_.last_copies.push_back({BufferOf(copy.value), copy.target, copy.bytes});
      }
    }
  }

  // What a result may overwrite, such as the array that it updates, is computed in the result's
  // place as well, and so on back: then it need not be copied there.
  void PlaceOverwritten(size_t result) {
    const int32_t* placed = assignment_.buffer_of.Find(schedule_.results[result]);
    if (placed == nullptr) return;
    const int32_t target = *placed;
    const BufferLocation& location = assignment_.locations[target];
    // Another result may be the same value, whose place has been given away by then.
    const bool is_here =
        location.kind == BufferLocation::kResult && location.index == static_cast<int64_t>(result);
    if (!is_here) return;
    for (std::optional<Output> value = schedule_.results[result]; value;) {
      value = OverwrittenBy(*value, Alias(result));
      if (value) assignment_.buffer_of[*value] = target;
    }
  }

  // An operand that nobody else reads, and that may be where `value` is from the beginning.
  std::optional<Output> OverwrittenBy(const Output& value, int64_t parameter) const {
    for (const Instruction* operand : value.instruction->operands()) {
      if (operand->shape().is_tuple()) continue;
      const Output source = Resolve(operand);
      const int64_t* last = last_use_.Find(source);
      if (last == nullptr || *last != schedule_.defined.at(value) ||
          !schedule_.defined.contains(source) || assignment_.buffer_of.contains(source) ||
          std::ranges::find(schedule_.results, source) != schedule_.results.end()) {
        continue;
      }
      if (MayOverwrite(value, source) && MayWriteEarly(source, parameter)) return source;
    }
    return std::nullopt;
  }

  // True if the value is a parameter that another result than `result` may overwrite.
  bool IsTakenByAnother(const Output& value, size_t result) const {
    if (value.instruction->opcode() != Opcode::kParameter) return false;
    int64_t taker = -1;
    for (size_t r = 0; r < schedule_.results.size(); ++r) {
      if (Alias(r) == value.instruction->parameter_number()) taker = static_cast<int64_t>(r);
    }
    return taker >= 0 && taker != static_cast<int64_t>(result);
  }

  // A copy of the parameter, made before the first step.
  int32_t Staged(const Output& value, int64_t bytes) {
    const int32_t* known = staged_.Find(value);
    if (known != nullptr) return *known;
    const int32_t copy =
        assignment_.Add({BufferLocation::kArena, 0, arena_.Allocate(bytes), nullptr});
    assignment_.first_copies.push_back({BufferOf(value), copy, bytes});
    return staged_[value] = copy;
  }

  // True if the aliased parameter's memory is free when the value is written.
  bool MayWriteEarly(const Output& value, int64_t parameter) const {
    if (parameter < 0) return true;
    const Output source{computation_.parameter(parameter), 0};
    for (const Output& result : schedule_.results) {
      if (result == source) return false;
    }
    const int64_t defined = schedule_.defined.at(value);
    const int64_t* last = last_use_.Find(source);
    if (last == nullptr || *last < defined) return true;
    return *last == defined && MayOverwrite(value, source);
  }

  // Memory for the outputs of the instruction at `position` that have none yet.
  void PlaceOutputs(int64_t position) {
    const Instruction* instruction = schedule_.order[position];
    std::set<Output> taken;
    for (int64_t k = 0; k < OutputCount(instruction); ++k) {
      const Output output{instruction, k};
      if (assignment_.buffer_of.contains(output) || Resolve(instruction, k) != output) continue;
      if (TakeOperand(output, position, taken)) continue;
      const int64_t offset = arena_.Allocate(ShapeOf(output).byte_size());
      arena_offset_[output] = offset;
      assignment_.buffer_of[output] = assignment_.Add({BufferLocation::kArena, 0, offset, nullptr});
    }
    for (const Pending& copy : pending_) {
      if (copy.value.instruction != instruction) continue;
      assignment_.last_copies.push_back({BufferOf(copy.value), copy.target, copy.bytes});
    }
  }

  // In place of an operand that nobody reads afterwards, if there is one; not one of `taken`.
  bool TakeOperand(const Output& output, int64_t position, std::set<Output>& taken) {
    for (const Instruction* operand : output.instruction->operands()) {
      if (operand->shape().is_tuple()) continue;
      const Output source = Resolve(operand);
      int64_t* owned = arena_offset_.Find(source);
      if (owned == nullptr || *owned == kNone || last_use_.at(source) != position ||
          taken.contains(source) || !MayOverwrite(output, source)) {
        continue;
      }
      taken.insert(source);
      const int64_t offset = std::exchange(*owned, kNone);
      arena_offset_[output] = offset;
      assignment_.buffer_of[output] = BufferOf(source);
      return true;
    }
    return false;
  }

  // Free again after the instruction.
  void PlaceScratch(const std::vector<int64_t>& bytes) {
    std::vector<int64_t> allocated, offsets;
    for (int64_t size : bytes) {
      offsets.push_back(size == 0 ? 0 : arena_.Allocate(size));
      if (size != 0) allocated.push_back(offsets.back());
    }
    for (int64_t offset : allocated) arena_.Free(offset);
    assignment_.scratch.push_back(std::move(offsets));
  }

  void FreeDead(int64_t position) {
    // What a collective that is under way reads is free when it is done.
    const Instruction* instruction = schedule_.order[position];
    if (!schedule_.asynchronous.contains(instruction)) FreeDead(instruction, position);
    auto done = schedule_.done_before.find(position);
    if (done == schedule_.done_before.end()) return;
    for (const Instruction* collective : done->second) FreeDead(collective, position);
  }

  void FreeDead(const Instruction* instruction, int64_t position) {
    auto free = [&](const Output& output) {
      int64_t* owned = arena_offset_.Find(output);
      if (owned == nullptr || *owned == kNone || last_use_.at(output) > position) return;
      arena_.Free(std::exchange(*owned, kNone));
    };
    for (int64_t k = 0; k < OutputCount(instruction); ++k) free({instruction, k});
    for (const Instruction* operand : instruction->operands()) {
      for (int64_t k = 0; k < OutputCount(operand); ++k) free(Resolve(operand, k));
    }
  }

  const Computation& computation_;
  const Schedule& schedule_;
  const std::vector<int64_t>& aliases_;
  OutputMap<int64_t> last_use_;  // the schedule's, and kEnd for what is copied at the end
  ArenaPlanner arena_;
  BufferAssignment assignment_;
  static constexpr int64_t kNone = -1;
  OutputMap<int64_t> arena_offset_;  // of values that own a piece of the arena; kNone: no longer
  std::vector<Pending> pending_;
  OutputMap<int32_t> staged_;
};

}  // namespace

int32_t BufferAssignment::Add(BufferLocation location) {
  locations.push_back(location);
  return static_cast<int32_t>(locations.size()) - 1;
}

int32_t BufferAssignment::Of(const Instruction* instruction, int64_t index) const {
  const Output output = Resolve(instruction, index);
  const int32_t* found = buffer_of.Find(output);
  if (found == nullptr) {
    throw hlo::Error(hlo::ErrorCode::kInternal, "no buffer for " + output.instruction->ToString());
  }
  return *found;
}

BufferAssignment AssignBuffers(const Computation& computation, const Schedule& schedule,
                               const std::vector<int64_t>& aliases,
                               const std::vector<std::vector<int64_t>>& scratch_bytes) {
  return Assigner(computation, schedule, aliases).Run(scratch_bytes);
}

}  // namespace cpu
