#include "lazy/part.h"

namespace lazy {
namespace {

using hlo::Builder;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Shape;

// From the first to the last of `count` elements.
int64_t Extent(int64_t count, int64_t stride) { return count == 0 ? 0 : (count - 1) * stride + 1; }

std::vector<hlo::Value> Starts(Builder& b, int64_t rank, int64_t dimension, Index start) {
  std::vector<hlo::Value> starts(rank, b.ConstantScalar(ElementType::kS64, int64_t{0}));
  starts[dimension] = start;
  return starts;
}

// `part`, `stride` apart from `start` on, among zeros.
hlo::Value PadApart(Builder& b, hlo::Value part, int64_t dimension, int64_t start, int64_t stride,
                    int64_t size) {
  const int64_t rank = part->shape().rank(), count = part->shape().dimension(dimension);
  Dimensions low(rank, 0), high(rank, 0), interior(rank, 0);
  low[dimension] = start;
  high[dimension] = size - start - Extent(count, stride);
  interior[dimension] = stride - 1;
  return b.Pad(part, b.ConstantScalar(part->element_type(), int64_t{0}), low, high, interior);
}

// x with the elements `stride` apart, from `start` on, replaced: they are moved to their places and
// chosen by a mask of these places.
hlo::Value PutApart(Builder& b, hlo::Value x, hlo::Value part, int64_t dimension, int64_t start,
                    int64_t stride) {
  const int64_t size = x->shape().dimension(dimension);
  hlo::Value ones = b.Full(Shape(ElementType::kPred, part->dimensions()), int64_t{1});
  return b.Select(PadApart(b, ones, dimension, start, stride, size),
                  PadApart(b, part, dimension, start, stride, size), x);
}

}  // namespace

hlo::Value TakePart(Builder& b, hlo::Value x, int64_t dimension, Index start, int64_t size,
                    int64_t stride) {
  const int64_t extent = Extent(size, stride);
  if (auto known = start.known()) {
    return b.SliceInDim(x, dimension, *known, *known + extent, stride);
  }
  Dimensions sizes = x->dimensions();
  sizes[dimension] = extent;
  hlo::Value part = b.DynamicSlice(x, Starts(b, x->shape().rank(), dimension, start), sizes);
  return stride == 1 ? part : b.SliceInDim(part, dimension, 0, extent, stride);
}

hlo::Value PutPart(Builder& b, hlo::Value x, hlo::Value part, int64_t dimension, Index start,
                   int64_t stride) {
  if (part->shape().num_elements() == 0) return x;
  const std::vector<hlo::Value> starts = Starts(b, x->shape().rank(), dimension, start);
  if (stride == 1) {
    return part->dimensions() == x->dimensions() ? part : b.DynamicUpdateSlice(x, part, starts);
  }
  if (auto known = start.known()) return PutApart(b, x, part, dimension, *known, stride);
  // What lies between the first and the last element keeps its values.
  const int64_t extent = Extent(part->shape().dimension(dimension), stride);
  hlo::Value between = TakePart(b, x, dimension, start, extent);
  return b.DynamicUpdateSlice(x, PutApart(b, between, part, dimension, 0, stride), starts);
}

hlo::Value SpreadPart(Builder& b, hlo::Value part, int64_t dimension, Index start, int64_t stride,
                      int64_t size) {
  Dimensions whole = part->dimensions();
  whole[dimension] = size;
  hlo::Value zeros = b.Zeros(Shape(part->element_type(), whole));
  if (part->shape().num_elements() == 0) return zeros;
  if (auto known = start.known()) return PadApart(b, part, dimension, *known, stride, size);
  const int64_t extent = Extent(part->shape().dimension(dimension), stride);
  if (stride != 1) part = PadApart(b, part, dimension, 0, stride, extent);
  return b.DynamicUpdateSlice(zeros, part, Starts(b, part->shape().rank(), dimension, start));
}

}  // namespace lazy
