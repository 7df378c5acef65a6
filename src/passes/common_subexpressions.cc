#include "passes/passes.h"

#include <bit>
#include <unordered_map>
#include <variant>
#include <vector>

#include "hlo/hash.h"

namespace passes {
namespace {

using hlo::CombineHash;
using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool IsCommutative(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kAdd:
    case Opcode::kAnd:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kMultiply:
    case Opcode::kOr:
    case Opcode::kXor:
      return true;
    case Opcode::kCompare: {
      auto direction = instruction.as<hlo::CompareAttributes>().direction;
      return direction == hlo::ComparisonDirection::kEq ||
             direction == hlo::ComparisonDirection::kNe;
    }
    default:
      return false;
  }
}

bool CanShare(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kOptimizationBarrier:
    case Opcode::kParameter:
    case Opcode::kRng:
      return false;
    default:
      return !instruction.HasSideEffect();
  }
}

// Whether the two operands of a commutative operation change places, so that equal ones have one
// order.
bool Swaps(const Instruction& instruction) {
  return IsCommutative(instruction) && instruction.operand(0)->id() > instruction.operand(1)->id();
}

const Instruction* OrderedOperand(const Instruction& instruction, bool swaps, size_t i) {
  return instruction.operand(swaps ? 1 - i : i);
}

bool SameOperands(const Instruction& a, const Instruction& b) {
  if (a.operand_count() != b.operand_count()) return false;
  const bool a_swaps = Swaps(a), b_swaps = Swaps(b);
  for (size_t i = 0; i < a.operand_count(); ++i) {
    if (OrderedOperand(a, a_swaps, i) != OrderedOperand(b, b_swaps, i)) return false;
  }
  return true;
}

bool Same(const Instruction& a, const Instruction& b) {
  return a.opcode() == b.opcode() && SameOperands(a, b) && a.shape() == b.shape() &&
         a.called_computations() == b.called_computations() &&
         a.shared_attributes() == b.shared_attributes();
}

size_t HashOf(const Instruction& instruction) {
  size_t hash = CombineHash(static_cast<size_t>(instruction.opcode()), instruction.shape().Hash());
  // Most have none.
  if (!std::holds_alternative<hlo::NoAttributes>(instruction.attributes())) {
    hash = CombineHash(hash, hlo::HashAttributes(instruction.attributes()));
  }
  const bool swaps = Swaps(instruction);
  for (size_t i = 0; i < instruction.operand_count(); ++i) {
    hash = CombineHash(hash, static_cast<size_t>(OrderedOperand(instruction, swaps, i)->id()));
  }
  return hash;
}

// The instructions of one computation, of which no two are the same. Places in one array, as a
// program has thousands: none has memory of its own.
class InstructionTable {
 public:
  // Of at most `count`.
  explicit InstructionTable(size_t count) : places_(std::bit_ceil(2 * count + 1)) {}

  // The same instruction that is there, or this one, which is from now on.
  Instruction* FindOrAdd(Instruction* instruction) {
    const size_t hash = HashOf(*instruction), mask = places_.size() - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      Place& place = places_[i];
      if (place.instruction == nullptr) {
        place = {hash, instruction};
        return instruction;
      }
      if (place.hash == hash && Same(*place.instruction, *instruction)) return place.instruction;
    }
  }

 private:
  struct Place {
    size_t hash = 0;
    Instruction* instruction = nullptr;
  };
  std::vector<Place> places_;
};

// Equal computations, by the first of them.
class ComputationTable {
 public:
  Computation* FirstEqual(Computation* computation) {
    auto known = first_.find(computation);
    if (known != first_.end()) return known->second;
    const size_t hash = hlo::HashComputation(*computation);
    auto [begin, end] = by_hash_.equal_range(hash);
    Computation* first = computation;
    for (auto it = begin; it != end && first == computation; ++it) {
      if (hlo::SameComputation(*it->second, *computation)) first = it->second;
    }
    if (first == computation) by_hash_.emplace(hash, computation);
    first_.emplace(computation, first);
    return first;
  }

 private:
  std::unordered_multimap<size_t, Computation*> by_hash_;
  std::unordered_map<Computation*, Computation*> first_;
};

class Eliminator {
 public:
  Eliminator(Computation& computation, ComputationTable& computations)
      : computation_(computation), computations_(computations) {}

  bool Run() {
    std::vector<Instruction*> instructions;
    for (const auto& owned : computation_.instructions()) instructions.push_back(owned.get());
    InstructionTable table(instructions.size());
    for (Instruction* instruction : instructions) {
      instruction = ShareCalled(instruction);
      if (!CanShare(*instruction)) continue;
      Instruction* earlier = table.FindOrAdd(instruction);
      if (earlier == instruction) continue;
      instruction->ReplaceAllUsesWith(earlier);
      changed_ = true;
    }
    if (changed_) {
      computation_.RemoveDeadInstructions();
      computation_.SortTopologically();
    }
    return changed_;
  }

 private:
  // The instruction, or one that replaced it, calling the first of equal computations.
  Instruction* ShareCalled(Instruction* instruction) {
    if (instruction->called_computations().empty()) return instruction;
    std::vector<Computation*> called = instruction->called_computations();
    for (Computation*& computation : called) computation = computations_.FirstEqual(computation);
    if (called == instruction->called_computations()) return instruction;
    if (instruction->HasSideEffect()) return instruction;
    Instruction* shared =
        computation_.Add(instruction->opcode(), instruction->shape(), instruction->operands(),
                         instruction->shared_attributes(), std::move(called));
    shared->set_metadata(instruction->shared_metadata());
    instruction->ReplaceAllUsesWith(shared);
    changed_ = true;
    return shared;
  }

  Computation& computation_;
  ComputationTable& computations_;
  bool changed_ = false;
};

}  // namespace

bool EliminateCommonSubexpressions(hlo::Module& module) {
  bool changed = false;
  ComputationTable computations;
  module.SortComputations();
  for (const auto& computation : module.computations()) {
    changed |= Eliminator(*computation, computations).Run();
  }
  if (changed) module.RemoveUnreachableComputations();
  return changed;
}

}  // namespace passes
