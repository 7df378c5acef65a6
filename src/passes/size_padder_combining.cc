// Operations that combine elements of a dimension: those that are not true get the neutral element.
#include <algorithm>
#include <optional>
#include <utility>

#include "passes/combiner.h"
#include "passes/size_padder.h"

namespace passes {

using hlo::Computation;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;

Value SizePadder::NeutralOf(const Instruction& instruction, const Computation& body,
                            ElementType type) {
  const std::optional<Opcode> combiner = CombinerOf(body);
  if (!combiner || !HasIdentity(*combiner, type)) {
    Refuse(instruction, "its body has no neutral element that is known");
  }
  return builder_.Constant(hlo::IdentityLiteral(*combiner, type));
}

Value SizePadder::PadReduce(const Instruction& reduce) {
  const Dimensions& reduced = reduce.as<hlo::DimensionsAttributes>().dimensions;
  const size_t count = reduce.operand_count() / 2;
  std::vector<Value> operands = OperandsOf(reduce);
  const bool masks =
      std::ranges::any_of(reduced, [&](int64_t d) { return Varies(reduce.operand(0), d); });
  for (size_t i = 0; masks && i < count; ++i) {
    // Of several operands the initial values are neutral, as StableHLO says they are.
    const Value fill = count > 1 ? operands[count + i]
                                 : NeutralOf(reduce, *reduce.called_computations()[0],
                                             operands[i]->element_type());
    operands[i] = Masked(operands[i], reduce.operand(i), reduced, fill);
  }
  return builder_.Create(Opcode::kReduce, std::move(operands), reduce.attributes(),
                         reduce.called_computations());
}

Value SizePadder::PadDot(const Instruction& dot) {
  const auto& a = dot.as<hlo::DotAttributes>();
  std::vector<Value> operands = OperandsOf(dot);
  const Dimensions* contracted[] = {&a.lhs_contracting_dimensions, &a.rhs_contracting_dimensions};
  for (size_t i = 0; i < 2; ++i) {
    const Value zero = builder_.Zeros(Shape::Scalar(operands[i]->element_type()));
    operands[i] = Masked(operands[i], dot.operand(i), *contracted[i], zero);
  }
  return Same(dot, PaddedShape(&dot), std::move(operands));
}

void SizePadder::FitWindow(const Instruction& instruction, hlo::Window& window, size_t i,
                           int64_t true_size, int64_t size, int64_t result) const {
  // A running total: the window is the whole of what is before, or behind.
  if (window.dimensions[i] == true_size && window.strides[i] == 1 &&
      window.window_dilations[i] == 1 && window.base_dilations[i] == 1 && true_size == result &&
      window.padding_low[i] + window.padding_high[i] == true_size - 1 &&
      (window.padding_low[i] == 0 || window.padding_high[i] == 0)) {
    const bool is_low = window.padding_low[i] != 0;
    window.dimensions[i] = size;
    window.padding_low[i] = is_low ? size - 1 : 0;
    window.padding_high[i] = is_low ? 0 : size - 1;
    return;
  }
  Refuse(instruction, "its window lies over what varies");
}

Value SizePadder::PadReduceWindow(const Instruction& instruction) {
  if (instruction.operand_count() != 2) Refuse(instruction, "it has several operands");
  hlo::Window window = instruction.as<hlo::Window>();
  const Instruction* operand = instruction.operand(0);
  Dimensions masked;
  for (int64_t d = 0; d < operand->shape().rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    const bool is_trivial = window.dimensions[i] == 1 && window.strides[i] == 1 &&
                            window.padding_low[i] == 0 && window.padding_high[i] == 0 &&
                            window.base_dilations[i] == 1;
    if (is_trivial || (!Varies(operand, d) && !Varies(&instruction, d))) continue;
    if (IsJoined(operand, d)) Refuse(instruction, "its dimension is of joined ones");
    FitWindow(instruction, window, i, operand->shape().dimension(d), PaddedSize(operand, d),
              instruction.shape().dimension(d));
    masked.push_back(d);
  }
  Value value = Of(operand);
  if (!masked.empty()) {
    const Value neutral =
        NeutralOf(instruction, *instruction.called_computations()[0], operand->element_type());
    value = Masked(value, operand, masked, neutral);
  }
  return builder_.Create(Opcode::kReduceWindow, {value, Of(instruction.operand(1))}, window,
                         instruction.called_computations());
}

Value SizePadder::PadConvolution(const Instruction& convolution) {
  const auto& a = convolution.as<hlo::ConvolutionAttributes>();
  const Instruction *input = convolution.operand(0), *kernel = convolution.operand(1);
  for (int64_t d = 0; d < input->shape().rank(); ++d) {
    const bool is_batch = d == a.dimensions.input_batch_dimension && a.batch_group_count == 1 &&
                          a.feature_group_count == 1;
    if (Varies(input, d) && !is_batch) Refuse(convolution, "its window lies over what varies");
  }
  if (Varies(kernel)) Refuse(convolution, "its kernel varies");
  return Same(convolution, PaddedShape(&convolution));
}

}  // namespace passes
