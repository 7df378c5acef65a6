#include "passes/common_subexpressions.h"

#include <algorithm>
#include <unordered_map>

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

std::vector<Instruction*> OrderedOperands(const Instruction& instruction) {
  std::vector<Instruction*> operands = instruction.operands();
  if (IsCommutative(instruction)) std::ranges::sort(operands, {}, &Instruction::id);
  return operands;
}

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
    table_.reserve(instructions.size());
    for (Instruction* instruction : instructions) {
      instruction = ShareCalled(instruction);
      if (!CanShare(*instruction)) continue;
      Instruction* earlier = FindOrAdd(instruction);
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
                         instruction->attributes(), std::move(called));
    shared->set_metadata(instruction->shared_metadata());
    instruction->ReplaceAllUsesWith(shared);
    changed_ = true;
    return shared;
  }

  Instruction* FindOrAdd(Instruction* instruction) {
    std::vector<Instruction*> operands = OrderedOperands(*instruction);
    size_t hash =
        CombineHash(static_cast<size_t>(instruction->opcode()), instruction->shape().Hash());
    hash = CombineHash(hash, hlo::HashAttributes(instruction->attributes()));
    for (const Instruction* operand : operands) {
      hash = CombineHash(hash, static_cast<size_t>(operand->id()));
    }
    auto [begin, end] = table_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (Same(*it->second, *instruction, operands)) return it->second;
    }
    table_.emplace(hash, instruction);
    return instruction;
  }

  static bool Same(const Instruction& a, const Instruction& b,
                   const std::vector<Instruction*>& operands_of_b) {
    return a.opcode() == b.opcode() && a.shape() == b.shape() &&
           a.called_computations() == b.called_computations() &&
           OrderedOperands(a) == operands_of_b && a.attributes() == b.attributes();
  }

  Computation& computation_;
  ComputationTable& computations_;
  std::unordered_multimap<size_t, Instruction*> table_;
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
