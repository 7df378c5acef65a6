#include "cpu/passes/expand_depthwise.h"

#include <algorithm>
#include <vector>

#include "hlo/builder.h"
#include "passes/for_each_computation.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::ConvolutionAttributes;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using Value = Instruction*;

// Positions of a small operand and of a larger one: the library's time hardly grows with them, but
// it copies its operands. With 31 positions 8 x 256 x 500 elements take 1.6 ms as sums and 16 by
// the library, 2 x 64 x 100 elements 0.35 and 0.17 (AVX-512, one thread).
constexpr int64_t kMostPositions = 8, kMostOfLarge = 32;
constexpr int64_t kLargeElements = 1 << 17;

bool AreFew(int64_t positions, const Instruction& operand) {
  const bool is_large = operand.shape().num_elements() >= kLargeElements;
  return positions <= (is_large ? kMostOfLarge : kMostPositions);
}

// The one spatial dimension's part of a window.
struct Line {
  int64_t stride, low, high, dilation;
  bool is_reversed;
};

Line LineOf(const hlo::Window& window) {
  return {window.strides[0], window.padding_low[0], window.padding_high[0],
          window.window_dilations[0], !window.reversal.empty() && window.reversal[0]};
}

// And of something.
bool IsAlongOneDimension(const Instruction& convolution) {
  if (convolution.opcode() != Opcode::kConvolution) return false;
  const auto& a = convolution.as<ConvolutionAttributes>();
  const auto is_empty = [](const Instruction* x) { return x->shape().num_elements() == 0; };
  if (is_empty(&convolution) || std::ranges::any_of(convolution.operands(), is_empty)) return false;
  return hlo::IsFloat(convolution.element_type()) &&
         a.dimensions.input_spatial_dimensions.size() == 1 && a.window.base_dilations[0] == 1;
}

// One input and one output of each group, and no step of the window is left out.
bool IsDepthwise(const Instruction& convolution) {
  const auto& a = convolution.as<ConvolutionAttributes>();
  const Dimensions& kernel = convolution.operand(1)->dimensions();
  const int64_t channels =
      convolution.operand(0)->dimensions()[a.dimensions.input_feature_dimension];
  return channels > 1 && a.feature_group_count == channels && a.batch_group_count == 1 &&
         kernel[a.dimensions.kernel_output_feature_dimension] == channels &&
         AreFew(kernel[a.dimensions.kernel_spatial_dimensions[0]], *convolution.operand(0)) &&
         a.window.strides[0] == 1;
}

// Its gradient by the weights: the channels are the batch, and the batch is summed over.
bool IsDepthwiseGradient(const Instruction& convolution) {
  const auto& a = convolution.as<ConvolutionAttributes>();
  const int64_t channels = convolution.operand(0)->dimensions()[a.dimensions.input_batch_dimension];
  return channels > 1 && a.batch_group_count == channels && a.feature_group_count == 1 &&
         convolution.dimensions()[a.dimensions.output_feature_dimension] == channels &&
         AreFew(convolution.dimensions()[a.dimensions.output_spatial_dimensions[0]],
                *convolution.operand(0)) &&
         !LineOf(a.window).is_reversed;
}

Value InOrder(Builder& b, Value x, const Dimensions& order) {
  return std::ranges::is_sorted(order) ? x : b.Transpose(x, order);
}

ElementType SumType(const Instruction& convolution) {
  return convolution.element_type() == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32;
}

// [batch, feature, spatial], in the type of the sums.
Value PaddedInput(Builder& b, const Instruction& convolution, const Line& line) {
  const auto& d = convolution.as<ConvolutionAttributes>().dimensions;
  Value x =
      InOrder(b, convolution.operand(0),
              {d.input_batch_dimension, d.input_feature_dimension, d.input_spatial_dimensions[0]});
  if (line.low != 0 || line.high != 0) {
    x = b.Pad(x, b.ConstantScalar(x->element_type(), int64_t{0}), {0, 0, line.low},
              {0, 0, line.high}, {0, 0, 0});
  }
  return b.Convert(x, SumType(convolution));
}

// [output feature, input feature, spatial], in the type of the sums.
Value Kernel(Builder& b, const Instruction& convolution) {
  const auto& d = convolution.as<ConvolutionAttributes>().dimensions;
  Value kernel = InOrder(b, convolution.operand(1),
                         {d.kernel_output_feature_dimension, d.kernel_input_feature_dimension,
                          d.kernel_spatial_dimensions[0]});
  return b.Convert(kernel, SumType(convolution));
}

// [batch, feature, spatial] in the order and type of the convolution's result.
Value AsResult(Builder& b, Value value, const Instruction& convolution) {
  const auto& d = convolution.as<ConvolutionAttributes>().dimensions;
  Dimensions order(3);
  order[d.output_batch_dimension] = 0;
  order[d.output_feature_dimension] = 1;
  order[d.output_spatial_dimensions[0]] = 2;
  return b.Convert(InOrder(b, value, order), convolution.element_type());
}

Value Expanded(Builder& b, const Instruction& convolution) {
  const auto& a = convolution.as<ConvolutionAttributes>();
  const Line line = LineOf(a.window);
  Value x = PaddedInput(b, convolution, line), w = Kernel(b, convolution);
  const int64_t channels = w->dimensions()[0], positions = w->dimensions()[2];
  const int64_t length = convolution.dimensions()[a.dimensions.output_spatial_dimensions[0]];
  const Dimensions sizes = {x->dimensions()[0], channels, length};
  Value sum = nullptr;
  for (int64_t k = 0; k < positions; ++k) {
    const int64_t from = k * line.dilation, place = line.is_reversed ? positions - 1 - k : k;
    Value shifted = b.SliceInDim(x, 2, from, from + length);
    Value weight = b.Reshape(b.SliceInDim(w, 2, place, place + 1), {channels});
    Value product = b.Multiply(shifted, b.BroadcastInDim(weight, sizes, {1}));
    sum = sum == nullptr ? product : b.Add(sum, product);
  }
  return AsResult(b, sum, convolution);
}

Value ExpandedGradient(Builder& b, const Instruction& convolution) {
  const auto& a = convolution.as<ConvolutionAttributes>();
  const Line line = LineOf(a.window);
  Value x = PaddedInput(b, convolution, line), gradient = Kernel(b, convolution);
  const int64_t channels = x->dimensions()[0];
  const int64_t extent = (gradient->dimensions()[2] - 1) * line.dilation + 1;
  const int64_t positions = convolution.dimensions()[a.dimensions.output_spatial_dimensions[0]];
  std::vector<Value> sums;
  for (int64_t k = 0; k < positions; ++k) {
    const int64_t from = k * line.stride;
    Value shifted = b.SliceInDim(x, 2, from, from + extent, line.dilation);
    Value sum = b.Reduce(Opcode::kAdd, b.Multiply(shifted, gradient), {1, 2});
    sums.push_back(b.Reshape(sum, {1, channels, 1}));
  }
  return AsResult(b, b.Concatenate(sums, 2), convolution);
}

bool ExpandDepthwiseIn(hlo::Computation& computation) {
  Builder builder(&computation);
  return passes::RewriteEach(computation, IsAlongOneDimension, [&](Value convolution) {
    const bool is_forward = IsDepthwise(*convolution);
    if (!is_forward && !IsDepthwiseGradient(*convolution)) return false;
    builder.set_metadata(convolution->shared_metadata());
    convolution->ReplaceAllUsesWith(is_forward ? Expanded(builder, *convolution)
                                               : ExpandedGradient(builder, *convolution));
    return true;
  });
}

}  // namespace

bool ExpandDepthwise(hlo::Module& module) {
  return passes::ForEachComputation(module, ExpandDepthwiseIn);
}

}  // namespace cpu
