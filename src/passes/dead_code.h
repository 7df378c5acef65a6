// Work that nothing sees is not done.
#pragma once

#include "hlo/module.h"

namespace passes {

// Drops instructions that reach neither a result nor a side effect (also inside called
// computations), loop-carried values of `while` that neither its condition, the other values nor
// the caller use, operands of `if` and `case` that no branch uses, and computations that the entry
// does not reach. The entry's parameters stay. Returns true if the module changed.
bool EliminateDeadCode(hlo::Module& module);

}  // namespace passes
