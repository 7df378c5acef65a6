#include "cpu/passes/engine_passes.h"

#include <vector>

#include "hlo/builder.h"
#include "passes/for_each_computation.h"

namespace cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Values = std::vector<Instruction*>;

// The slice that a gather takes which is told no positions, once for each row of nothing.
Instruction* SlicesAtTheOrigin(hlo::Builder& builder, const Instruction& gather) {
  const auto& a = gather.as<hlo::GatherAttributes>();
  Instruction* slice = builder.Slice(gather.operand(0), hlo::Dimensions(a.slice_sizes.size(), 0),
                                     a.slice_sizes, hlo::Dimensions(a.slice_sizes.size(), 1));
  hlo::Dimensions kept;
  for (int64_t dimension : a.offset_dims) kept.push_back(gather.dimensions()[dimension]);
  return builder.BroadcastInDim(builder.Reshape(slice, kept), gather.dimensions(), a.offset_dims);
}

// What stands for the results of an instruction; empty if it stays.
Values Replacements(hlo::Builder& builder, const Instruction& instruction) {
  auto fill = [&](Instruction* scalar, const hlo::Shape& shape) {
    return builder.BroadcastInDim(scalar, shape.dimensions(), {});
  };
  const hlo::Shape& shape = instruction.shape();
  switch (instruction.opcode()) {
    case Opcode::kReduce: {
      if (instruction.operand(0)->shape().num_elements() != 0) return {};
      const size_t count = instruction.operand_count() / 2;
      Values values;
      for (size_t i = 0; i < count; ++i) {
        values.push_back(fill(instruction.operand(count + i),
                              shape.is_tuple() ? shape.tuple_shapes()[i] : shape));
      }
      return values;
    }
    case Opcode::kFft: {
      if (instruction.operand(0)->shape().num_elements() != 0) return {};
      return {
          fill(builder.Constant(hlo::Literal(hlo::Shape::Scalar(shape.element_type()))), shape)};
    }
    case Opcode::kSelectAndScatter:
      if (instruction.operand(1)->shape().num_elements() != 0) return {};
      return {fill(instruction.operand(2), shape)};
    case Opcode::kReduceWindow: {
      if (shape.is_tuple() || instruction.operand(0)->shape().num_elements() != 0) return {};
      return {fill(instruction.operand(1), shape)};
    }
    case Opcode::kGather:
      if (!instruction.as<hlo::GatherAttributes>().start_index_map.empty() ||
          !instruction.as<hlo::GatherAttributes>().operand_batching_dims.empty()) {
        return {};
      }
      return {SlicesAtTheOrigin(builder, instruction)};
    case Opcode::kPad:
      if (instruction.operand(0)->shape().num_elements() != 0) return {};
      return {fill(instruction.operand(1), shape)};
    case Opcode::kRngBitGenerator: {
      const hlo::Shape& bits = shape.tuple_shapes()[1];
      if (bits.num_elements() != 0) return {};
      return {instruction.operand(0), builder.Constant(hlo::Literal(bits))};
    }
    default:
      return {};
  }
}

bool Expand(hlo::Computation& computation) {
  hlo::Builder builder(&computation);
  Values all;
  for (const auto& instruction : computation.instructions()) all.push_back(instruction.get());
  bool changed = false;
  for (Instruction* instruction : all) {
    const Values values = Replacements(builder, *instruction);
    if (values.empty()) continue;
    changed = true;
    if (!instruction->shape().is_tuple()) {
      instruction->ReplaceAllUsesWith(values[0]);
      continue;
    }
    const Values users = instruction->users();
    for (Instruction* user : users) user->ReplaceAllUsesWith(values[user->tuple_index()]);
  }
  if (changed) computation.SortTopologically();
  return changed;
}

}  // namespace

bool ExpandEmpty(hlo::Module& module) { return passes::ForEachComputation(module, Expand); }

}  // namespace cpu
