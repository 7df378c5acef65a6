// Calls and private functions exist for the program's author; the engine sees one body.
#pragma once

#include "hlo/module.h"

namespace passes {

// Replaces every `call`, in the entry and in the regions of while, if, case, reduce, …, by a copy
// of its callee's instructions, and drops the functions that nothing reaches any more. Metadata
// stays that of the callee's instructions. Returns true if the module changed.
bool InlineCalls(hlo::Module& module);

}  // namespace passes
