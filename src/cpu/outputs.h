// Which array is whose memory: the outputs of a computation's instructions, views of them, and who
// may write where.
#pragma once

#include <compare>
#include <cstdint>

#include "hlo/instruction.h"

namespace cpu {

// One array that an instruction produces.
struct Output {
  const hlo::Instruction* instruction;
  int64_t index;
  auto operator<=>(const Output&) const = default;
};

const hlo::Shape& ShapeOf(const Output& output);
int64_t OutputCount(const hlo::Instruction* instruction);

// Whose memory a value is: views lead to what they view.
Output Resolve(const hlo::Instruction* instruction, int64_t index = 0);

// Calls f(output) for each array that the instruction reads.
template <typename F>
void ForEachOperand(const hlo::Instruction* instruction, F&& f) {
  for (const hlo::Instruction* operand : instruction->operands()) {
    const int64_t count = operand->shape().is_tuple() ? OutputCount(operand) : 1;
    for (int64_t k = 0; k < count; ++k) f(Resolve(operand, k));
  }
}

// True if `value`'s instruction may write it to the memory of its operand `source`.
bool MayOverwrite(const Output& value, const Output& source);

}  // namespace cpu
