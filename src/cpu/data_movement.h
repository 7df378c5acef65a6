// Steps that only move bytes: block transposes, concatenations, updates of a region.
#pragma once

#include "cpu/step_sequence.h"
#include "hlo/instruction.h"

namespace cpu {

// Null if the instruction is none of them.
NativeStep::Function BindDataMovement(const hlo::Instruction& instruction);

}  // namespace cpu
