// Checks that a module is well formed: order, users, shapes (by shape_inference.h), called
// computations' signatures, aliases. Run on everything that comes from outside and, in tests, after
// every pass.
#pragma once

#include "hlo/module.h"

namespace hlo {

// Throws Error that names the computation and the instruction.
void VerifyModule(const Module& module);

}  // namespace hlo
