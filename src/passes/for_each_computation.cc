#include "passes/for_each_computation.h"

#include <vector>

namespace passes {

bool ForEachComputation(hlo::Module& module, bool (*rewrite)(hlo::Computation& computation)) {
  std::vector<hlo::Computation*> computations;
  for (const auto& computation : module.computations()) computations.push_back(computation.get());
  bool changed = false;
  for (hlo::Computation* computation : computations) changed |= rewrite(*computation);
  return changed;
}

}  // namespace passes
