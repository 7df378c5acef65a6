// Brings a module to the form that fusion expects.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Inlines calls and composites (but those that the engine computes itself, such as chlo.erf),
// expands what no kernel does, simplifies.
void Prepare(hlo::Module& module, bool single_device);

}  // namespace cpu
