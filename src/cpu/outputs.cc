#include "cpu/outputs.h"

#include "cpu/kernel_kind.h"
#include "hlo/opcode.h"

namespace cpu {

using hlo::Instruction;
using hlo::Opcode;

const hlo::Shape& ShapeOf(const Output& output) {
  const hlo::Shape& shape = output.instruction->shape();
  return shape.is_tuple() ? shape.tuple_shapes()[output.index] : shape;
}

int64_t OutputCount(const Instruction* instruction) {
  return instruction->shape().is_tuple()
             ? static_cast<int64_t>(instruction->shape().tuple_shapes().size())
             : 1;
}

namespace {

// Whether each run of the loop's body gives the element as it was: then nobody writes into its
// memory, which may be the operand's.
bool IsInvariant(const Instruction* loop, int64_t index) {
  const hlo::Computation* body = loop->called_computations()[1];
  return Resolve(body->result(index)) == Output{body->parameter(index), 0};
}

}  // namespace

Output Resolve(const Instruction* instruction, int64_t index) {
  switch (instruction->opcode()) {
    case Opcode::kReshape:
    case Opcode::kBitcastConvert:
      return Resolve(instruction->operand(0));
    case Opcode::kOptimizationBarrier:
    case Opcode::kTuple:
      return Resolve(instruction->operand(index));
    case Opcode::kGetTupleElement:
      return Resolve(instruction->operand(0), instruction->tuple_index());
    case Opcode::kWhile:
      if (IsInvariant(instruction, index)) return Resolve(instruction->operand(index));
      return {instruction, index};
    default:
      return {instruction, index};
  }
}

bool MayOverwrite(const Output& value, const Output& source) {
  const Instruction* instruction = value.instruction;
  if (ShapeOf(value).byte_size() != ShapeOf(source).byte_size()) return false;
  int64_t occurrences = 0, number = -1;
  for (size_t i = 0; i < instruction->operand_count(); ++i) {
    const Instruction* operand = instruction->operand(i);
    if (operand->shape().is_tuple()) return false;
    if (Resolve(operand) == source) {
      ++occurrences;
      number = static_cast<int64_t>(i);
    }
  }
  if (occurrences != 1) return false;
  switch (instruction->opcode()) {
    case Opcode::kComposite: {
      const KernelKind* kind = KindOf(*instruction);
      return kind && kind->may_overwrite && kind->may_overwrite(*instruction, number, value.index);
    }
    case Opcode::kDynamicUpdateSlice:
      return number == 0;
    case Opcode::kWhile:
    case Opcode::kAllReduce:
      return number == value.index;
    default:
      return false;
  }
}

}  // namespace cpu
