// Sorting with a compiled comparator.
#pragma once

#include "cpu/program.h"
#include "hlo/instruction.h"

namespace cpu {

// A stable merge sort of all rows along the sort's dimension. `comparator` receives pointers to two
// elements of every operand (a0, b0, a1, b1, …) and to a byte that it sets to whether a precedes b.
NativeStep::Function BindSort(const hlo::Instruction& sort, KernelFunction comparator);

}  // namespace cpu
