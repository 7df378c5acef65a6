// Attention as a composite of the engine's: its body is one of hlo/attention_composite.h, with the
// transpositions of operands and results around it.
#pragma once

#include "hlo/instruction.h"

namespace cpu {

// True for a composite of hlo/attention_composite.h that the engine has a kernel for, which is not
// slower than its decomposition.
bool ServesAttention(const hlo::Instruction& attention);

// Whether the kernel reads operand `index` (or writes result `index`) of such a composite through
// a transposition of these dimensions.
bool ReadsTransposed(const hlo::Instruction& attention, size_t index,
                     const hlo::Dimensions& permutation);
bool WritesTransposed(const hlo::Instruction& attention, size_t index,
                      const hlo::Dimensions& permutation);

}  // namespace cpu
