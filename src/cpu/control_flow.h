// Which of a module's computations run as steps, and which are part of one.
#pragma once

#include <functional>

#include "hlo/module.h"

namespace cpu {

// True for while, if and case: the computations that they call are programs of steps. What other
// instructions call (the body of a reduce, of a kernel) is part of their own step.
bool CallsSteps(hlo::Opcode opcode);

// Calls `rewrite` once for each computation whose instructions become steps: the entry, and what
// control flow calls. Returns true if one of the calls did; then computations that nothing reaches
// any more are dropped, and callees stand before callers.
bool RewriteSteps(hlo::Module& module,
                  const std::function<bool(hlo::Computation& computation)>& rewrite);

}  // namespace cpu
