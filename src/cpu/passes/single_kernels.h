// A kernel for each operation that is in none yet.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Replaces each instruction that only generated code computes by a composite of it alone:
// "cpu.scatter" and "cpu.sort", which are never fused, and "cpu.loop", "cpu.reduce" and "cpu.scan"
// where FuseLoops has not run. Returns true if the module changed.
bool WrapSingleKernels(hlo::Module& module);

}  // namespace cpu
