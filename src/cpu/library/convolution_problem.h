// StableHLO's convolution in the terms of the library's three routines: forward, gradient of the
// input, gradient of the weights. All three speak of one forward convolution x * w = y.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/instruction.h"

namespace cpu {

// A tensor in a buffer: element (i0, i1, …) lies at offset + sum(i * stride).
struct StridedView {
  hlo::Dimensions dimensions, strides;
  int64_t offset = 0;
};

struct ConvolutionProblem {
  enum class Kind { kForward, kInputGradient, kWeightGradient };
  Kind kind = Kind::kForward;

  int64_t batch = 1, groups = 1;
  int64_t inputs = 1, outputs = 1;  // channels of x and y, all groups together
  hlo::Dimensions x, w, y;          // spatial sizes
  hlo::Dimensions stride, dilation, padding_low;

  // x: [batch, inputs, spatial...], y: [batch, outputs, spatial...],
  // w: [groups, outputs / groups, inputs / groups, spatial...]. Strides of w are negative where the
  // kernel has to be flipped.
  StridedView x_view, w_view, y_view;

  int64_t rank() const { return static_cast<int64_t>(x.size()); }
  // What y's size demands at the far end; may be negative where the stride leaves elements over.
  int64_t PaddingHigh(int64_t dimension) const {
    return (y[dimension] - 1) * stride[dimension] + (w[dimension] - 1) * dilation[dimension] + 1 -
           x[dimension] - padding_low[dimension];
  }
  double FloatingPointOperations() const;
};

// nullopt where no routine does it: strides together with base dilation, both group counts, some
// paddings.
std::optional<ConvolutionProblem> RecognizeConvolution(const hlo::Instruction& convolution);

// True if each image and channel of a view of [batch, channels, spatial...] lies row after row.
bool HasDensePixels(const StridedView& view);

// True if operands and results are all of this type.
bool IsAllOf(hlo::ElementType type, const hlo::Instruction& convolution,
             const hlo::Shape& result_shape);

}  // namespace cpu
