#include "cpu/passes/engine_passes.h"

#include <algorithm>
#include <vector>

#include "hlo/builder.h"
#include "hlo/size_arithmetic.h"
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

const hlo::ConvolutionAttributes& AttributesOf(const Instruction& convolution) {
  return convolution.as<ConvolutionAttributes>();
}

int64_t RankOf(const Instruction& convolution) {
  return static_cast<int64_t>(AttributesOf(convolution).dimensions.input_spatial_dimensions.size());
}

bool AreAll(const Dimensions& values, int64_t value) {
  return std::ranges::all_of(values, [&](int64_t v) { return v == value; });
}

bool IsReversed(const hlo::Window& window, int64_t dimension) {
  return !window.reversal.empty() && window.reversal[dimension];
}

// Of something, along one dimension or three. The library has kernels for two.
bool IsOfLinesOrVolumes(const Instruction& convolution) {
  if (convolution.opcode() != Opcode::kConvolution) return false;
  const auto is_empty = [](const Instruction* x) { return x->shape().num_elements() == 0; };
  if (is_empty(&convolution) || std::ranges::any_of(convolution.operands(), is_empty)) return false;
  const int64_t rank = RankOf(convolution);
  return hlo::IsFloat(convolution.element_type()) && (rank == 1 || rank == 3) &&
         AreAll(AttributesOf(convolution).window.base_dilations, 1);
}

// One input and one output of each group, and no step of the window is left out.
bool IsDepthwise(const Instruction& convolution) {
  const auto& a = AttributesOf(convolution);
  const Dimensions& kernel = convolution.operand(1)->dimensions();
  const int64_t channels =
      convolution.operand(0)->dimensions()[a.dimensions.input_feature_dimension];
  return channels > 1 && a.feature_group_count == channels && a.batch_group_count == 1 &&
         kernel[a.dimensions.kernel_output_feature_dimension] == channels &&
         AreFew(hlo::ProductOf(kernel, a.dimensions.kernel_spatial_dimensions),
                *convolution.operand(0)) &&
         AreAll(a.window.strides, 1);
}

// Its gradient by the weights: the channels are the batch, and the batch is summed over.
bool IsDepthwiseGradient(const Instruction& convolution) {
  const auto& a = AttributesOf(convolution);
  const int64_t channels = convolution.operand(0)->dimensions()[a.dimensions.input_batch_dimension];
  return channels > 1 && a.batch_group_count == channels && a.feature_group_count == 1 &&
         convolution.dimensions()[a.dimensions.output_feature_dimension] == channels &&
         AreFew(hlo::ProductOf(convolution.dimensions(), a.dimensions.output_spatial_dimensions),
                *convolution.operand(0)) &&
         std::ranges::count(a.window.reversal, true) == 0;
}

Value InOrder(Builder& b, Value x, const Dimensions& order) {
  return std::ranges::is_sorted(order) ? x : b.Transpose(x, order);
}

ElementType SumType(const Instruction& convolution) {
  return convolution.element_type() == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32;
}

// `first`, `second`, and the spatial ones.
Dimensions Order(int64_t first, int64_t second, const Dimensions& spatial) {
  Dimensions order = {first, second};
  order.insert(order.end(), spatial.begin(), spatial.end());
  return order;
}

// With the window's padding: [batch, feature, spatial...], in the type of the sums.
Value PaddedInput(Builder& b, const Instruction& convolution) {
  const auto& a = AttributesOf(convolution);
  const auto& d = a.dimensions;
  Value x = InOrder(
      b, convolution.operand(0),
      Order(d.input_batch_dimension, d.input_feature_dimension, d.input_spatial_dimensions));
  if (!AreAll(a.window.padding_low, 0) || !AreAll(a.window.padding_high, 0)) {
    x = b.Pad(x, b.ConstantScalar(x->element_type(), int64_t{0}), Order(0, 0, a.window.padding_low),
              Order(0, 0, a.window.padding_high), Dimensions(x->shape().rank(), 0));
  }
  return b.Convert(x, SumType(convolution));
}

// [output feature, input feature, spatial...], in the type of the sums.
Value Kernel(Builder& b, const Instruction& convolution) {
  const auto& d = AttributesOf(convolution).dimensions;
  Value kernel = InOrder(b, convolution.operand(1),
                         Order(d.kernel_output_feature_dimension, d.kernel_input_feature_dimension,
                               d.kernel_spatial_dimensions));
  return b.Convert(kernel, SumType(convolution));
}

// [batch, feature, spatial...] in the order and type of the convolution's result.
Value AsResult(Builder& b, Value value, const Instruction& convolution) {
  const auto& d = AttributesOf(convolution).dimensions;
  const Dimensions places =
      Order(d.output_batch_dimension, d.output_feature_dimension, d.output_spatial_dimensions);
  Dimensions order(places.size());
  for (size_t i = 0; i < places.size(); ++i) order[places[i]] = static_cast<int64_t>(i);
  return b.Convert(InOrder(b, value, order), convolution.element_type());
}

// The sizes of a result along the spatial dimensions.
Dimensions ResultSizes(const Instruction& convolution) {
  Dimensions sizes;
  for (int64_t d : AttributesOf(convolution).dimensions.output_spatial_dimensions) {
    sizes.push_back(convolution.dimensions()[d]);
  }
  return sizes;
}

// Where position `index`, in row-major order, of these sizes lies.
Dimensions PositionOf(int64_t index, const Dimensions& sizes) {
  Dimensions position(sizes.size());
  for (size_t i = sizes.size(); i-- > 0; index /= sizes[i]) position[i] = index % sizes[i];
  return position;
}

// What a window's element at `position`, in steps of `steps`, reads of [batch, feature,
// spatial...]: `sizes` elements, each `strides` apart.
Value Shifted(Builder& b, Value x, const Dimensions& position, const Dimensions& steps,
              const Dimensions& sizes, const Dimensions& strides) {
  for (size_t i = 0; i < position.size(); ++i) {
    const int64_t from = position[i] * steps[i], extent = (sizes[i] - 1) * strides[i] + 1;
    x = b.SliceInDim(x, static_cast<int64_t>(i) + 2, from, from + extent, strides[i]);
  }
  return x;
}

// The weights at a position: [feature].
Value WeightsAt(Builder& b, Value kernel, const hlo::Window& window, const Dimensions& position) {
  const int64_t channels = kernel->dimensions()[0];
  for (size_t i = 0; i < position.size(); ++i) {
    const auto d = static_cast<int64_t>(i) + 2;
    const int64_t size = kernel->dimensions()[d];
    const int64_t at =
        IsReversed(window, static_cast<int64_t>(i)) ? size - 1 - position[i] : position[i];
    kernel = b.SliceInDim(kernel, d, at, at + 1);
  }
  return b.Reshape(kernel, {channels});
}

Value Expanded(Builder& b, const Instruction& convolution) {
  const hlo::Window& window = AttributesOf(convolution).window;
  Value x = PaddedInput(b, convolution), w = Kernel(b, convolution);
  const Dimensions kernel(w->dimensions().begin() + 2, w->dimensions().end());
  const Dimensions lengths = ResultSizes(convolution);
  const Dimensions sizes = Order(x->dimensions()[0], w->dimensions()[0], lengths);
  const Dimensions ones(lengths.size(), 1);
  Value sum = nullptr;
  for (int64_t k = 0; k < hlo::Product(kernel); ++k) {
    const Dimensions position = PositionOf(k, kernel);
    Value shifted = Shifted(b, x, position, window.window_dilations, lengths, ones);
    Value weights = WeightsAt(b, w, window, position);
    Value product = b.Multiply(shifted, b.BroadcastInDim(weights, sizes, {1}));
    sum = sum == nullptr ? product : b.Add(sum, product);
  }
  return AsResult(b, sum, convolution);
}

Value ExpandedGradient(Builder& b, const Instruction& convolution) {
  const hlo::Window& window = AttributesOf(convolution).window;
  Value x = PaddedInput(b, convolution), gradient = Kernel(b, convolution);
  const int64_t channels = x->dimensions()[0];
  const Dimensions lengths(gradient->dimensions().begin() + 2, gradient->dimensions().end());
  const Dimensions kernel = ResultSizes(convolution);
  Dimensions summed = {1};
  for (size_t i = 0; i < kernel.size(); ++i) summed.push_back(static_cast<int64_t>(i) + 2);
  std::vector<Value> sums;
  for (int64_t k = 0; k < hlo::Product(kernel); ++k) {
    Value shifted =
        Shifted(b, x, PositionOf(k, kernel), window.strides, lengths, window.window_dilations);
    Value sum = b.Reduce(Opcode::kAdd, b.Multiply(shifted, gradient), summed);
    sums.push_back(b.Reshape(sum, {1, channels, 1}));
  }
  return AsResult(b, b.Reshape(b.Concatenate(sums, 2), Order(1, channels, kernel)), convolution);
}

bool ExpandDepthwiseIn(hlo::Computation& computation) {
  Builder builder(&computation);
  return passes::RewriteEach(computation, IsOfLinesOrVolumes, [&](Value convolution) {
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
