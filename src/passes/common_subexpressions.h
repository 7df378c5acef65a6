// Equal work is done once.
#pragma once

#include "hlo/module.h"

namespace passes {

// Within each computation, replaces an instruction by an earlier one with the same opcode, shape,
// operands (in either order for commutative operations), attributes and equal called computations.
// Parameters, side effects, rng and optimization_barrier stay. Called computations that are equal
// to an earlier one are shared. Returns true if the module changed.
bool EliminateCommonSubexpressions(hlo::Module& module);

}  // namespace passes
