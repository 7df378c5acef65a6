// Gathers instructions into kernels.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Replaces groups of instructions by composites whose called computation is the group:
//  - "cpu.loop": one loop over the elements of the results, which all have the same dimensions, or
//    over rows: then the body may reduce trailing dimensions, and results of the kept dimensions
//    occur too;
//  - "cpu.reduce": reductions of equal inputs' dimensions, with what feeds them;
//  - "cpu.scan": a running reduction, with what is quickly computed and feeds it;
//  - "cpu.scatter": a scatter of rows, with what feeds them.
// An instruction is evaluated inside its consumer's loop where that saves memory traffic; what
// several kernels need is computed once, as a further result of one of them where possible. Expects
// no calls. Returns true if the module changed.
bool FuseLoops(hlo::Module& module);

}  // namespace cpu
