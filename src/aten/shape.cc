// Operators that move elements without being views: joining, repeating, padding, masking by
// position, and the gradients of views.
#include <algorithm>

#include "aten/broadcast.h"
#include "aten/constant.h"
#include "aten/dimension.h"
#include "aten/elementwise.h"
#include "aten/indexing.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"

namespace torch_xla {
namespace {

// --- Joining

// Empty one-dimensional tensors are left out, as torch has always done.
Value Concatenate(Builder& b, std::vector<Value> tensors, int64_t dimension) {
  PromoteAll(b, tensors);
  Values kept;
  for (Value x : tensors) {
    if (x->dimensions().empty())
      throw hlo::Error("zero-dimensional tensor (at position 0) cannot be concatenated");
    if (x->dimensions() != Dimensions{0}) kept.push_back(x);
  }
  if (kept.empty()) return tensors.front();
  int64_t d = WrapDimension(dimension, kept.front()->shape().rank());
  for (Value x : kept) {
    if (x->dimensions().size() != kept.front()->dimensions().size() ||
        KeepDimensions(x->dimensions(), {d}) != KeepDimensions(kept.front()->dimensions(), {d})) {
      throw hlo::Error("Sizes of tensors must match except in dimension " + std::to_string(d) +
                       ". Expected " + kept.front()->shape().ToString() + " but got " +
                       x->shape().ToString());
    }
  }
  return kept.size() == 1 ? kept.front() : b.Concatenate(kept, d);
}

Value Stack(Builder& b, std::vector<Value> tensors, int64_t dimension) {
  PromoteAll(b, tensors);
  Dimensions dimensions = tensors.front()->dimensions();
  int64_t d = WrapDimension(dimension, static_cast<int64_t>(dimensions.size()) + 1);
  Dimensions with_new = dimensions;
  with_new.insert(with_new.begin() + d, 1);
  for (Value& x : tensors) {
    if (x->dimensions() != dimensions) {
      throw hlo::Error("stack expects each tensor to be equal size, but got " +
                       hlo::ToString(dimensions) + " at entry 0 and " +
                       hlo::ToString(x->dimensions()));
    }
    x = b.Reshape(x, with_new);
  }
  return tensors.size() == 1 ? tensors.front() : b.Concatenate(tensors, d);
}

// --- Reordering and repeating

Value Flip(Builder& b, Value x, Dimensions dimensions) {
  Dimensions wrapped = WrapDimensions(dimensions, x->shape().rank());
  return wrapped.empty() || x->dimensions().empty() ? x : b.Reverse(x, wrapped);
}

Value RollDimension(Builder& b, Value x, int64_t shift, int64_t dimension) {
  int64_t size = x->shape().dimension(dimension);
  if (size == 0) return x;
  int64_t start = ((-shift % size) + size) % size;
  if (start == 0) return x;
  return b.Concatenate(
      {b.SliceInDim(x, dimension, start, size), b.SliceInDim(x, dimension, 0, start)}, dimension);
}

Value Roll(Builder& b, Value x, Dimensions shifts, Dimensions dimensions) {
  if (dimensions.empty()) {
    if (shifts.size() != 1) {
      throw hlo::Error("shifts and dimensions must align. shifts: " +
                       std::to_string(shifts.size()) + ", dims:0");
    }
    Value flat = b.Reshape(x, {x->shape().num_elements()});
    return b.Reshape(RollDimension(b, flat, shifts[0], 0), x->dimensions());
  }
  if (shifts.size() != dimensions.size()) {
    throw hlo::Error("shifts and dimensions must align. shifts: " + std::to_string(shifts.size()) +
                     ", dims:" + std::to_string(dimensions.size()));
  }
  if (x->dimensions().empty()) {
    throw hlo::Error(hlo::ErrorCode::kOutOfRange, "Dimension specified as " +
                                                      std::to_string(dimensions[0]) +
                                                      " but tensor has no dimensions");
  }
  for (size_t i = 0; i < shifts.size(); ++i) {
    x = RollDimension(b, x, shifts[i], WrapDimension(dimensions[i], x->shape().rank()));
  }
  return x;
}

// Each dimension [n] becomes [repeats, n], merged.
Value Repeat(Builder& b, Value x, Dimensions repeats) {
  if (repeats.size() < x->dimensions().size()) {
    throw hlo::Error(
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
        "tensor");
  }
  size_t leading = repeats.size() - x->dimensions().size();
  Dimensions split, places, merged;
  for (size_t i = 0; i < repeats.size(); ++i) {
    int64_t size = i < leading ? 1 : x->shape().dimension(i - leading);
    split.push_back(repeats[i]);
    if (i >= leading) {
      places.push_back(static_cast<int64_t>(split.size()));
      split.push_back(size);
    }
    merged.push_back(repeats[i] * size);
  }
  return b.Reshape(b.BroadcastInDim(x, split, places), merged);
}

// --- Masks by position

// Elements of the last two dimensions whose column minus row is at most (lower) or at least the
// diagonal.
Value Triangle(Builder& b, Value x, int64_t diagonal, bool lower) {
  int64_t rank = x->shape().rank();
  if (rank < 2) throw hlo::Error("tril/triu: input tensor must have at least 2 dimensions");
  Shape plane(ElementType::kS32, {x->shape().dimension(rank - 2), x->shape().dimension(rank - 1)});
  Value offset = b.Subtract(b.Iota(plane, 1), b.Iota(plane, 0));
  Value limit = b.Full(plane, diagonal);
  Value kept = lower ? b.Le(offset, limit) : b.Ge(offset, limit);
  return ZeroUnless(b, b.BroadcastInDim(kept, x->dimensions(), {rank - 2, rank - 1}), x);
}
Value Tril(Builder& b, Value x, int64_t diagonal) { return Triangle(b, x, diagonal, true); }
Value Triu(Builder& b, Value x, int64_t diagonal) { return Triangle(b, x, diagonal, false); }

Value Trace(Builder& b, Value x) {
  if (x->shape().rank() != 2) throw hlo::Error("trace: expected a matrix");
  Shape plane(ElementType::kS64, x->dimensions());
  Value diagonal = b.Eq(b.Iota(plane, 0), b.Iota(plane, 1));
  x = b.Convert(x, SumType(x->element_type()));
  return Sum(b, ZeroUnless(b, diagonal, x), {0, 1});
}

// --- Padding

Value Zero(Builder& b, ElementType type) { return b.Zeros(Shape::Scalar(type)); }

// `padding` lists (low, high) from the last dimension backwards; negative crops.
Value ConstantPad(Builder& b, Value x, Dimensions padding, Scalar value) {
  int64_t rank = x->shape().rank(), count = static_cast<int64_t>(padding.size()) / 2;
  if (padding.size() % 2 != 0 || count > rank) {
    throw hlo::Error(
        "Length of pad must be even and at most twice the number of dimensions of the input, " +
        x->shape().ToString() + ", but got " + std::to_string(padding.size()));
  }
  Dimensions low(rank, 0), high(rank, 0), interior(rank, 0);
  for (int64_t i = 0; i < count; ++i) {
    low[rank - 1 - i] = padding[2 * i];
    high[rank - 1 - i] = padding[2 * i + 1];
  }
  return b.Pad(x, b.Convert(value, x->element_type()), low, high, interior);
}

enum class Border { kReflect, kReplicate };

// For each padded position the element that it copies.
std::vector<int64_t> BorderSources(int64_t size, int64_t low, int64_t high, Border border) {
  std::vector<int64_t> sources;
  for (int64_t i = -low; i < size + high; ++i) {
    int64_t source = i;
    if (border == Border::kReflect) {
      if (source < 0) source = -source;
      if (source >= size) source = 2 * (size - 1) - source;
    } else {
      source = std::clamp<int64_t>(source, 0, size - 1);
    }
    sources.push_back(source);
  }
  return sources;
}

void CheckReflection(Value x, int64_t dimension, int64_t low, int64_t high) {
  int64_t size = x->shape().dimension(dimension);
  if (low < size && high < size) return;
  throw hlo::Error(
      "Padding size should be less than the corresponding input dimension, but got: padding (" +
      std::to_string(low) + ", " + std::to_string(high) + ") at dimension " +
      std::to_string(dimension) + " of input " + x->shape().ToString());
}

Value SourceConstant(Builder& b, const std::vector<int64_t>& sources) {
  return b.Constant(hlo::Literal::FromVector(sources));
}

template <Border border>
Value BorderPad(Builder& b, Value x, Dimensions padding) {
  int64_t rank = x->shape().rank();
  for (size_t i = 0; i + 1 < padding.size(); i += 2) {
    int64_t d = rank - 1 - static_cast<int64_t>(i) / 2;
    if (border == Border::kReflect) CheckReflection(x, d, padding[i], padding[i + 1]);
    auto sources = BorderSources(x->shape().dimension(d), padding[i], padding[i + 1], border);
    x = TakeAlong(b, x, SourceConstant(b, sources), d);
  }
  return x;
}
template <Border border>
Value BorderPadBackward(Builder& b, Value gradient, Value x, Dimensions padding) {
  int64_t rank = x->shape().rank();
  auto* add = b.ScalarCombiner(Opcode::kAdd, gradient->element_type());
  for (size_t i = 0; i + 1 < padding.size(); i += 2) {
    int64_t d = rank - 1 - static_cast<int64_t>(i) / 2;
    auto sources = BorderSources(x->shape().dimension(d), padding[i], padding[i + 1], border);
    Dimensions into = gradient->dimensions();
    into[d] = x->shape().dimension(d);
    gradient = ScatterSlices(b, b.Zeros(Shape(gradient->element_type(), into)),
                             SourceConstant(b, sources), gradient, d, add);
  }
  return gradient;
}

// --- Gradients of views, and writing into a part

// Where a slice lies, with torch's clamping.
struct SliceRange {
  int64_t start, end, step, count;
};
SliceRange MakeRange(int64_t size, std::optional<int64_t> start, std::optional<int64_t> end,
                     int64_t step) {
  auto wrap = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  SliceRange r{wrap(start.value_or(0)), wrap(end.value_or(size)), step, 0};
  r.end = std::max(r.start, r.end);
  r.count = (r.end - r.start + step - 1) / step;
  return r;
}

// `part` at the places of a slice of `size` elements along a dimension, `padding` elsewhere.
Value Spread(Builder& b, Value part, Value padding, int64_t dimension, const SliceRange& r,
             int64_t size) {
  int64_t rank = part->shape().rank();
  Dimensions low(rank, 0), high(rank, 0), interior(rank, 0);
  if (r.count == 0) {
    low[dimension] = size;
  } else {
    low[dimension] = r.start;
    interior[dimension] = r.step - 1;
    high[dimension] = size - r.start - ((r.count - 1) * r.step + 1);
  }
  return b.Pad(part, padding, low, high, interior);
}

Value SliceBackward(Builder& b, Value gradient, Dimensions sizes, int64_t dimension, int64_t start,
                    int64_t end, int64_t step) {
  int64_t d = WrapDimension(dimension, sizes.size());
  SliceRange r = MakeRange(sizes[d], start, end, step);
  return Spread(b, gradient, Zero(b, gradient->element_type()), d, r, sizes[d]);
}

Value SelectBackward(Builder& b, Value gradient, Dimensions sizes, int64_t dimension,
                     int64_t index) {
  int64_t d = WrapDimension(dimension, sizes.size());
  if (index < 0) index += sizes[d];
  Dimensions one = sizes;
  one[d] = 1;
  SliceRange r{index, index + 1, 1, 1};
  return Spread(b, b.Reshape(gradient, one), Zero(b, gradient->element_type()), d, r, sizes[d]);
}

Value ReplaceSlice(Builder& b, Value x, Value part, int64_t dimension, const SliceRange& r) {
  if (r.count == 0) return x;
  part = b.Convert(part, x->element_type());
  int64_t size = x->shape().dimension(dimension);
  if (r.step == 1) {
    Values starts(x->shape().rank(), b.ConstantScalar(ElementType::kS64, int64_t{0}));
    starts[dimension] = b.ConstantScalar(ElementType::kS64, r.start);
    return b.DynamicUpdateSlice(x, part, starts);
  }
  Value spread = Spread(b, part, Zero(b, x->element_type()), dimension, r, size);
  Value ones = b.Full(Shape(ElementType::kPred, part->dimensions()), int64_t{1});
  Value mask = Spread(b, ones, Zero(b, ElementType::kPred), dimension, r, size);
  return b.Select(mask, spread, x);
}

Value SliceScatter(Builder& b, Value x, Value source, Dimension dimension,
                   std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  return ReplaceSlice(b, x, source, dimension,
                      MakeRange(x->shape().dimension(dimension), start, end, step));
}
Value SelectScatter(Builder& b, Value x, Value source, Dimension dimension, int64_t index) {
  int64_t d = dimension;
  if (index < 0) index += x->shape().dimension(d);
  Dimensions one = x->dimensions();
  one[d] = 1;
  return ReplaceSlice(b, x, b.Reshape(source, one), d, {index, index + 1, 1, 1});
}

// --- Diagonals

// True on the diagonal of two dimensions of a shape.
Value OnDiagonal(Builder& b, const Dimensions& shape, int64_t offset, int64_t row, int64_t column) {
  Shape plane(ElementType::kS64, {shape[row], shape[column]});
  Value hit = b.Eq(b.Subtract(b.Iota(plane, 1), b.Iota(plane, 0)), b.Full(plane, offset));
  if (row > column) return b.BroadcastInDim(b.Transpose(hit, {1, 0}), shape, {column, row});
  return b.BroadcastInDim(hit, shape, {row, column});
}

// The diagonal (x's last dimension) placed in two dimensions of `shape`; zero elsewhere. Stretched
// along the longer of them, it lies on the diagonal when read along rows or columns.
Value PlaceDiagonal(Builder& b, Value x, const Dimensions& shape, int64_t offset, int64_t row,
                    int64_t column) {
  Dimensions others = OtherDimensions({row, column}, shape.size());
  // Along columns: element k of the diagonal is at column k + max(offset, 0).
  int64_t length = x->shape().dimension(x->shape().rank() - 1);
  int64_t first = std::max<int64_t>(offset, 0);
  Dimensions low(x->shape().rank(), 0), high = low, interior = low;
  low.back() = first;
  high.back() = shape[column] - first - length;
  Value along = b.Pad(x, Zero(b, x->element_type()), low, high, interior);
  // Dimensions must ascend: move the diagonal to the column's place among the others.
  int64_t place = 0;
  for (int64_t d : others) place += d < column ? 1 : 0;
  int64_t rank = along->shape().rank();
  Value moved = b.Transpose(along, MoveDimensionPermutation(rank, rank - 1, place));
  Dimensions targets = others;
  targets.insert(targets.begin() + place, column);
  Value spread = b.BroadcastInDim(moved, shape, targets);
  return ZeroUnless(b, OnDiagonal(b, shape, offset, row, column), spread);
}

Value DiagonalBackward(Builder& b, Value gradient, Dimensions sizes, int64_t offset, int64_t dim1,
                       int64_t dim2) {
  int64_t rank = static_cast<int64_t>(sizes.size());
  return PlaceDiagonal(b, gradient, sizes, offset, WrapDimension(dim1, rank),
                       WrapDimension(dim2, rank));
}

Value DiagonalScatter(Builder& b, Value x, Value source, int64_t offset, int64_t dim1,
                      int64_t dim2) {
  int64_t rank = x->shape().rank();
  int64_t row = WrapDimension(dim1, rank), column = WrapDimension(dim2, rank);
  Value placed =
      PlaceDiagonal(b, b.Convert(source, x->element_type()), x->dimensions(), offset, row, column);
  return b.Select(OnDiagonal(b, x->dimensions(), offset, row, column), placed, x);
}

Value DiagonalEmbed(Builder& b, Value x, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t rank = x->shape().rank() + 1;
  int64_t row = WrapDimension(dim1, rank), column = WrapDimension(dim2, rank);
  if (row == column) throw hlo::Error("diagonal dimensions cannot be identical");
  int64_t size = x->shape().dimension(rank - 2) + std::abs(offset);
  Dimensions shape(x->dimensions().begin(), x->dimensions().end() - 1);
  for (int64_t d : {std::min(row, column), std::max(row, column)})
    shape.insert(shape.begin() + d, size);
  return PlaceDiagonal(b, x, shape, offset, row, column);
}

// --- Windows

// The gradient of unfold: windows of `size` every `step` elements, summed where they overlap.
Value UnfoldBackward(Builder& b, Value gradient, Dimensions sizes, int64_t dimension, int64_t size,
                     int64_t step) {
  int64_t d = WrapDimension(dimension, sizes.size());
  if (sizes.empty()) return b.Reshape(gradient, {});
  int64_t windows = gradient->shape().dimension(d), rank = gradient->shape().rank();
  std::vector<int64_t> places;
  for (int64_t w = 0; w < windows; ++w) {
    for (int64_t i = 0; i < size; ++i) places.push_back(w * step + i);
  }
  Value ordered = b.Transpose(gradient, MoveDimensionPermutation(rank, rank - 1, d + 1));
  Dimensions merged = sizes;
  merged[d] = windows * size;
  Value slices = b.Reshape(ordered, merged);
  ElementType type = gradient->element_type();
  return ScatterSlices(b, b.Zeros(Shape(type, sizes)), SourceConstant(b, places), slices, d,
                       b.ScalarCombiner(Opcode::kAdd, type));
}

// Eager's zeros without memory; here a constant costs none either.
at::Tensor ZeroTensor(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
                      std::optional<at::Layout> layout, std::optional<at::Device> device,
                      std::optional<bool> pin_memory) {
  return at::zeros(sizes, type, layout, device, pin_memory);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("_efficientzerotensor", &ZeroTensor);
  m.impl("cat", [](const at::ITensorListRef& tensors, int64_t dimension) {
    return Record<&Concatenate>(tensors, dimension);
  });
  Register<&Stack>(m, "stack");
  Register<&Flip>(m, "flip");
  Register<&Roll>(m, "roll");
  Register<&Repeat>(m, "repeat");
  Register<&Tril>(m, "tril");
  Register<&Triu>(m, "triu");
  Register<&Trace>(m, "trace");
  Register<&ConstantPad>(m, "constant_pad_nd");
  for (const char* name : {"reflection_pad1d", "reflection_pad2d", "reflection_pad3d"}) {
    Register<&BorderPad<Border::kReflect>>(m, name);
    Register<&BorderPadBackward<Border::kReflect>>(m, (std::string(name) + "_backward").c_str());
  }
  for (const char* name : {"replication_pad1d", "replication_pad2d", "replication_pad3d"}) {
    Register<&BorderPad<Border::kReplicate>>(m, name);
    Register<&BorderPadBackward<Border::kReplicate>>(m, (std::string(name) + "_backward").c_str());
  }
  Register<&SliceBackward>(m, "slice_backward");
  Register<&SelectBackward>(m, "select_backward");
  Register<&SliceScatter>(m, "slice_scatter");
  Register<&SelectScatter>(m, "select_scatter");
  Register<&DiagonalBackward>(m, "diagonal_backward");
  Register<&DiagonalScatter>(m, "diagonal_scatter");
  Register<&DiagonalEmbed>(m, "diag_embed");
  Register<&UnfoldBackward>(m, "unfold_backward");
}

}  // namespace torch_xla
