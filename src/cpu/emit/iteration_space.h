// How a kernel's iteration space may be joined into fewer, longer dimensions.
#pragma once

#include <map>
#include <set>

#include "cpu/emit/extent.h"
#include "hlo/instruction.h"

namespace cpu {

// Dimensions of `space` before which a joined run must end, so that every access of the
// instructions that `roots` (whose dimensions are `space`) reach stays affine within each run.
// Always contains 0 and the rank.
std::set<int64_t> RunBoundaries(const hlo::Dimensions& space,
                                const std::vector<const hlo::Instruction*>& roots,
                                KernelSizes& sizes);

// Where along each dimension of `space` another operand of a concatenation, or another part of what
// is padded, begins. Only what is plain from constant offsets.
std::map<int64_t, std::set<int64_t>> Seams(const hlo::Dimensions& space,
                                           const std::vector<const hlo::Instruction*>& roots,
                                           KernelSizes& sizes);

}  // namespace cpu
