// A kernel for each operation that is in none yet.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Replaces each instruction that only generated code computes by a composite of it alone:
// "cpu.sort", which is never fused, "cpu.scatter" of what is no row, and the other kinds where
// FuseLoops has not run. Returns true if the module changed.
bool WrapSingleKernels(hlo::Module& module);

}  // namespace cpu
