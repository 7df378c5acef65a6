// What kernels can compute, by the instruction alone.
#pragma once

#include "hlo/instruction.h"

namespace cpu {

// True for operations that the kernels of fusion evaluate at any index.
bool IsFusible(const hlo::Instruction& instruction);
// A concatenation that a loop computes as quickly as it is copied: of few parts, in runs of
// vectors.
bool IsFusibleConcatenate(const hlo::Instruction& instruction);
// A reduce that a kernel computes.
bool IsReduction(const hlo::Instruction& instruction);
// A reduce_window over a whole dimension up to (or from) each element: a cumulative sum or
// maximum, for example.
bool IsScan(const hlo::Instruction& instruction);
// A scatter of one array whose updates are rows of some elements, which go to rows.
bool ScattersRows(const hlo::Instruction& instruction);
// True if the engine has numbers of all operands' types.
bool HasNativeOperands(const hlo::Instruction& instruction);
// A new view of the same bytes: reshape, bitcast_convert, optimization_barrier.
bool IsView(const hlo::Instruction& instruction);
// A transpose that moves the innermost dimension, done by blocks (strided_copy.h).
bool IsBlockTranspose(const hlo::Instruction& instruction);

}  // namespace cpu
