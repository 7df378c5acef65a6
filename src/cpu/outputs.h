// Which array is whose memory: the outputs of a computation's instructions, views of them, and who
// may write where.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>

#include "hlo/hash.h"
#include "hlo/instruction.h"
#include "process/small_memory.h"

namespace cpu {

// One array that an instruction produces.
struct Output {
  const hlo::Instruction* instruction;
  int64_t index;
  auto operator<=>(const Output&) const = default;
};

struct HashOfOutput {
  size_t operator()(const Output& output) const {
    return hlo::CombineHash(reinterpret_cast<uintptr_t>(output.instruction),
                            static_cast<size_t>(output.index));
  }
};

// By arrays. In no order that two runs of a program would share: to look into, not to walk through.
template <typename T>
using OutputMap = std::unordered_map<Output, T, HashOfOutput, std::equal_to<Output>,
                                     process::SmallAllocator<std::pair<const Output, T>>>;

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
