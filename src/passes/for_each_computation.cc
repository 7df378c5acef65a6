#include "passes/for_each_computation.h"

#include <vector>

namespace passes {

bool ForEachComputation(hlo::Module& module,
                        const std::function<bool(hlo::Computation& computation)>& rewrite) {
  std::vector<hlo::Computation*> computations;
  for (const auto& computation : module.computations()) computations.push_back(computation.get());
  bool changed = false;
  for (hlo::Computation* computation : computations) changed |= rewrite(*computation);
  return changed;
}

bool RewriteEach(hlo::Computation& computation,
                 const std::function<bool(const hlo::Instruction&)>& is_found,
                 const std::function<bool(hlo::Instruction*)>& rewrite) {
  std::vector<hlo::Instruction*> found;
  for (const auto& instruction : computation.instructions()) {
    if (is_found(*instruction)) found.push_back(instruction.get());
  }
  bool changed = false;
  for (hlo::Instruction* instruction : found) changed |= rewrite(instruction);
  if (!changed) return false;
  computation.SortTopologically();
  computation.RemoveDeadInstructions();
  return true;
}

}  // namespace passes
