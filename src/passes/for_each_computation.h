// For rewrites that look at one computation at a time.
#pragma once

#include <functional>

#include "hlo/module.h"

namespace passes {

// Calls `rewrite` for each computation that the module has now, not for those that it adds. Returns
// true if one of the calls did.
bool ForEachComputation(hlo::Module& module,
                        const std::function<bool(hlo::Computation& computation)>& rewrite);

// Calls `rewrite` for each instruction that the computation has now and of which `is_found` holds;
// it tells whether it has replaced the instruction. If one was, puts the computation in order,
// without what is dead then, and returns true.
bool RewriteEach(hlo::Computation& computation,
                 const std::function<bool(const hlo::Instruction&)>& is_found,
                 const std::function<bool(hlo::Instruction*)>& rewrite);

}  // namespace passes
