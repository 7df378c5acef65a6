// What LAPACK's routines take and give as custom calls (hlo/lapack_call.h), and whether a call
// does. A program that comes from elsewhere may say anything, and routines read and write as its
// shapes say.
#pragma once

#include <string_view>

#include "hlo/instruction.h"

namespace cpu {

// Throws hlo::Error if `call`, of a known routine (named without its type's letter), has other
// operands, results or attributes than the routine.
void CheckLapackForm(const hlo::Instruction& call, std::string_view routine);

}  // namespace cpu
