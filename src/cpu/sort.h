// Binds a sort to the library's routine (library/sort.h).
#pragma once

#include <vector>

#include "cpu/step_sequence.h"
#include "hlo/instruction.h"

namespace cpu {

// A stable sort of all rows along the sort's dimension. Results that nobody reads (`is_read`, one
// for each) are not written. `comparator` is the sort's, compiled; it is called only where its
// order is not a plain comparison that the library knows. It receives pointers to two elements of
// every operand (a0, b0, a1, b1, …) and to a byte that it sets to whether a precedes b.
NativeStep::Function BindSort(const hlo::Instruction& sort, std::vector<bool> is_read,
                              KernelFunction comparator);

}  // namespace cpu
