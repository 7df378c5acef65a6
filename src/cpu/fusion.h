// Gathers instructions into kernels.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Replaces groups of instructions of `computation` by composites whose called computation is the
// group:
//  - "cpu.loop": one loop over the elements of the results, which all have the same dimensions, or
//  over rows:
//    then the body may reduce trailing dimensions, and results of the kept dimensions occur too.
//  - "cpu.reduce": reductions of equal inputs' dimensions, with what feeds them.
// An instruction is evaluated inside its consumer's loop where that saves memory traffic; what
// several kernels need is computed once, as a further result of one of them where possible. Expects
// no calls; leaves computations of control flow alone.
void FuseLoops(hlo::Computation& computation);

// True for operations that the kernels of fusion evaluate at any index.
bool IsFusible(const hlo::Instruction& instruction);
// The composite's name ("cpu.scan", "cpu.scatter", "cpu.sort") for operations that are a kernel by
// themselves, else null. FuseLoops wraps them.
const char* SingleKernel(const hlo::Instruction& instruction);
// A reduce_window over a whole dimension up to (or from) each element: a cumulative sum, maximum,
// ….
bool IsScan(const hlo::Instruction& instruction);
// A new view of the same bytes: reshape, bitcast_convert, optimization_barrier.
bool IsAlias(const hlo::Instruction& instruction);
// A transpose that moves the innermost dimension, done by blocks (strided_copy.h).
bool IsBlockTranspose(const hlo::Instruction& instruction);

}  // namespace cpu
