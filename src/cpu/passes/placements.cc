#include "cpu/passes/engine_passes.h"

#include <string>
#include <vector>

#include "passes/for_each_computation.h"

namespace cpu {
namespace {

bool IsPlacement(const hlo::Instruction& instruction) {
  if (instruction.opcode() != hlo::Opcode::kCustomCall) return false;
  const std::string& target = instruction.as<hlo::CustomCallAttributes>().target;
  return (target == "annotate_device_placement" || target == "MoveToHost" ||
          target == "MoveToDevice") &&
         instruction.operands().size() == 1 &&
         instruction.operand(0)->shape() == instruction.shape();
}

bool RemovePlacements(hlo::Computation& computation) {
  std::vector<hlo::Instruction*> placements;
  for (const auto& instruction : computation.instructions()) {
    if (IsPlacement(*instruction)) placements.push_back(instruction.get());
  }
  for (hlo::Instruction* placement : placements) {
    placement->ReplaceAllUsesWith(placement->operand(0));
    computation.Remove(placement);
  }
  return !placements.empty();
}

}  // namespace

bool ResolvePlacements(hlo::Module& module) {
  return passes::ForEachComputation(module, RemovePlacements);
}

}  // namespace cpu
