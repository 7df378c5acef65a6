// Gives contractions the elementwise operations that follow them.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Replaces a dot_general or convolution, with the chain of bias, residual, activation and scale
// after it, by a composite "cpu.dot" or "cpu.convolution" (library_call.h), which does them while
// its result is in the cache. Only where that saves a loop: the last value of the chain is one that
// is kept in memory anyway. Run it before FuseLoops, which sees composites as calls. Returns true
// if the module changed.
bool FuseEpilogues(hlo::Module& module);

}  // namespace cpu
