// What the rewrites of a program have to know of the library's products.
#pragma once

#include "hlo/instruction.h"

namespace cpu {

// True if the product can read its right operand, a convert, where the convert's operand lies, and
// convert each number on the way: the converted matrix then is in no memory.
bool ReadsThroughConvert(const hlo::Instruction& dot);

}  // namespace cpu
