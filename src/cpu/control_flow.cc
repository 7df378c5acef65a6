#include "cpu/control_flow.h"

#include <algorithm>
#include <vector>

namespace cpu {

bool CallsSteps(hlo::Opcode opcode) {
  return opcode == hlo::Opcode::kWhile || opcode == hlo::Opcode::kIf ||
         opcode == hlo::Opcode::kCase;
}

bool RewriteSteps(hlo::Module& module,
                  const std::function<bool(hlo::Computation& computation)>& rewrite) {
  std::vector<hlo::Computation*> found, pending = {module.entry()};
  while (!pending.empty()) {
    hlo::Computation* computation = pending.back();
    pending.pop_back();
    if (std::ranges::find(found, computation) != found.end()) continue;
    found.push_back(computation);
    for (const auto& instruction : computation->instructions()) {
      if (!CallsSteps(instruction->opcode())) continue;
      for (hlo::Computation* called : instruction->called_computations()) pending.push_back(called);
    }
  }
  bool changed = false;
  for (hlo::Computation* computation : found) changed |= rewrite(*computation);
  if (!changed) return false;
  module.RemoveUnreachableComputations();
  module.SortComputations();
  return true;
}

}  // namespace cpu
