// Loops over whole arrays of which each element goes its own way.
#pragma once

#include "hlo/module.h"

namespace cpu {

// A `while` that runs until a mask has no element left, whose body is element-wise and leaves an
// element as it is once the mask lacks it, becomes a `map` with a loop of scalars. That fuses,
// stays in registers, and takes as many turns for an element as that one (in a kernel: its vector)
// needs, not as the slowest of all does. The numbers are the same. One result of the loop may be
// read. Returns true if the module changed.
bool MakeElementLoops(hlo::Module& module);

}  // namespace cpu
