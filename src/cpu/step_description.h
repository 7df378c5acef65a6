// What a step of a program computes, for profiles: in the terms of XLA's profilers, which the
// viewers know.
#pragma once

#include "cpu/executable.h"
#include "hlo/instruction.h"

namespace cpu {

// Work and traffic are counted from the instruction: two for a multiplication with an addition, one
// for any other arithmetic on an element; each operand read and each result written once.
StepDescription Describe(const hlo::Instruction& instruction);

}  // namespace cpu
