// How a convolution runs through oneDNN, decided when it is bound: which activations are copied,
// how the work is cut, which primitives do the parts, and where the scratch memory holds what.
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cpu/library/convolution_problem.h"
#include "cpu/memory.h"
#include "hlo/shape.h"
#include "hlo/size_arithmetic.h"

namespace cpu {

// Activations go in and come out channels-last, as they are when the program has them so and
// through a copy when not, of as much at a time as the cache holds; weights are brought into the
// blocked format that the routine asks for. The work is cut over the batch, over rows of the result
// or over its channels, one thread each.
struct ConvolutionPlan {
  using Kind = ConvolutionProblem::Kind;

  // The part of the work that one library call does.
  struct Slice {
    int64_t batch_begin, batch_end;
    int64_t row_begin, row_end;          // of y's first spatial dimension; forward only
    int64_t channel_begin, channel_end;  // of the result: y's forward, x's backward, w's outputs
  };

  // What distinguishes the primitives of a call: sizes of a slice and its padding.
  struct Variant {
    int64_t batch, x_rows, y_rows, padding_low, channels;
    auto operator<=>(const Variant&) const = default;
  };

  struct Primitive {
    dnnl::primitive primitive;
    dnnl::memory::desc x, w, y, scratchpad;
  };

  // A part of the way between the plain weights of a block and the library's format.
  struct WeightReorder {
    dnnl::reorder primitive;
    dnnl::memory::desc from, to;
  };

  // Weights of a channel block in the library's format, at `offset` in the scratch memory.
  struct WeightBlock {
    int64_t channel_begin = 0, channel_end = 0;
    dnnl::memory::desc format;
    int64_t offset = 0;
    int64_t plain_offset = 0;                  // of its first byte among the plain weights
    std::vector<WeightReorder> reorders = {};  // between the program's order and the format
  };

  // Whether the library works on an activation where it lies, on a copy of all of it, or on one of
  // what a slice needs.
  enum class Staging { kNone, kWhole, kSlices };

  // Where an activation tensor lies while the call runs.
  struct Activation {
    StridedView view;            // in the program's buffer
    hlo::ElementType type;       // of the program's buffer
    hlo::ElementType used_type;  // as given to the library
    Staging staging = Staging::kNone;
    int64_t offset = 0;       // of the copy of all of it in the scratch memory
    hlo::Dimensions strides;  // channels-last
    int64_t bytes() const {
      return AlignedSize(hlo::Product(view.dimensions) *
                         static_cast<int64_t>(hlo::ByteWidth(used_type)));
    }
  };

  ConvolutionProblem problem;
  hlo::Shape result_shape;
  bool has_epilogue = false;
  hlo::ElementType type = hlo::ElementType::kF32;  // of the operands as given to the library

  Activation x, y;
  hlo::Dimensions staged_strides;  // the result's row-major order in terms of its staged copy

  // The weights, or their gradient, where they are plain: in the program's buffer, or packed at
  // `w_offset` in the scratch memory.
  hlo::ElementType w_type = hlo::ElementType::kF32;  // of the program's buffer
  bool w_packed = false;
  int64_t w_offset = 0;
  StridedView plain_w;
  hlo::ElementType plain_w_type = hlo::ElementType::kF32;

  std::vector<Slice> slices;
  std::map<Variant, Primitive> primitives;
  std::vector<WeightBlock> blocks;
  std::string implementation;  // the library's name of it
  int64_t scratch_bytes = 0;

  const Activation& result() const { return problem.kind == Kind::kForward ? y : x; }
  const Activation& operand() const { return problem.kind == Kind::kForward ? x : y; }
  int64_t result_channels() const {
    return problem.kind == Kind::kInputGradient ? problem.inputs : problem.outputs;
  }
  bool CutsChannels() const {
    return slices[0].channel_end != result_channels() || slices[0].channel_begin != 0;
  }
  // Rows of x that a slice's rows of y read: [first, second).
  std::pair<int64_t, int64_t> InputRows(const Slice& slice) const;
  Variant VariantOf(const Slice& slice) const;
  const Primitive& PrimitiveOf(const Slice& slice) const { return primitives.at(VariantOf(slice)); }
};

// `lhs` and `rhs` are the types of the operands, `result_shape` is the program's result; with
// `has_epilogue` the library gives f32, which the epilogue finishes. Throws dnnl::error where
// oneDNN has no implementation, and std::invalid_argument where it has a slow one only.
ConvolutionPlan PlanConvolution(const ConvolutionProblem& problem, hlo::ElementType lhs,
                                hlo::ElementType rhs, const hlo::Shape& result_shape,
                                bool has_epilogue);

// A part of it, in convolution_slices.cc: cuts the work, by what the activations' staging says is
// copied. Where a thread would keep too much memory for its copies, it stages them whole instead.
void PlanConvolutionSlices(ConvolutionPlan& plan);

// Strides of [batch, channels, spatial...] with the channels minor-most.
hlo::Dimensions ChannelsLastStrides(int64_t channels, const hlo::Dimensions& spatial);

}  // namespace cpu
