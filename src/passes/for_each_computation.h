// For rewrites that look at one computation at a time.
#pragma once

#include "hlo/module.h"

namespace passes {

// Calls `rewrite` for each computation that the module has now, not for those that it adds. Returns
// true if one of the calls did.
bool ForEachComputation(hlo::Module& module, bool (*rewrite)(hlo::Computation& computation));

}  // namespace passes
