// Types that kernels do not compute in.
#pragma once

#include "hlo/module.h"

namespace passes {

// Integers of 2 and 4 bits are computed in those of 8, and floating point numbers of 8 bits in f32;
// after each operation they are rounded to their type again. So are factors of triangular systems
// of 16 bits. Parameters and results of the entry keep their types. Throws Error(kUnimplemented)
// for what has no such form: bits of another width, and calls of somebody else's code.
bool WidenTypes(hlo::Module& module);

}  // namespace passes
