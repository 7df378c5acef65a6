// Operators that move elements without being views: joining, repeating, padding, masking by
// position, and the gradients of views.
#include <algorithm>
#include <map>

#include "aten/dimension.h"
#include "aten/elementwise.h"
#include "aten/indexing.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "aten/refuse.h"
#include "hlo/size_arithmetic.h"
#include "lazy/part.h"

namespace torch_xla {
namespace {

// --- Joining

// Throws if `next`, the tensor of this number in the list, cannot be put behind `first`.
void CheckJoins(Value first, Value next, int64_t d, int64_t number) {
  const auto refuse = [&](const std::string& eager) {
    Refuse(eager, "cat(): cannot concatenate tensors of shape ", first->shape().ToString(),
           " with ", next->shape().ToString(), " at dimension ", d,
           ". Expected shapes to be equal (except at dimension ", d,
           ") or that either of them was a 1D empty tensor of size (0,).");
  };
  const Dimensions& expected = first->dimensions();
  const Dimensions& found = next->dimensions();
  if (expected.size() != found.size()) {
    refuse(c10::str("Tensors must have same number of dimensions: got ", expected.size(), " and ",
                    found.size()));
  }
  for (int64_t i = 0; i < first->shape().rank(); ++i) {
    if (i == d || expected[i] == found[i]) continue;
    refuse(c10::str("Sizes of tensors must match except in dimension ", d, ". Expected size ",
                    expected[i], " but got size ", found[i], " for tensor number ", number,
                    " in the list."));
  }
}

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
    const auto number = std::find(tensors.begin(), tensors.end(), x) - tensors.begin();
    CheckJoins(kept.front(), x, d, number);
  }
  return kept.size() == 1 ? kept.front() : b.Concatenate(kept, d);
}

Value StackTensors(Builder& b, std::vector<Value> tensors, int64_t dimension) {
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

// Throws if a dimension, of -rank to rank - 1, is named twice.
void CheckFlipped(const Dimensions& dimensions, int64_t rank) {
  std::map<int64_t, int> times;
  for (int64_t d : dimensions) ++times[WrapDimension(d, rank)];
  std::string repeated, eager;
  Dimensions once;
  for (const auto& [d, count] : times) {
    once.push_back(d);
    if (count == 1) continue;
    if (eager.empty()) eager = c10::str("dim ", d, " appears multiple times in the list of dims");
    repeated += c10::str(repeated.empty() ? "" : ", ", d, " (", count, " times)");
  }
  if (repeated.empty()) return;
  Refuse(eager,
         "flip(): expected each dimension to appear at most once. Found dimensions: ", repeated,
         ". Consider changing dims from ", c10::IntArrayRef(dimensions), " to ",
         c10::IntArrayRef(once), ".");
}

Value Flip(Builder& b, Value x, Dimensions dimensions) {
  CheckFlipped(dimensions, x->shape().rank());
  Dimensions wrapped = WrapDimensions(dimensions, x->shape().rank());
  return wrapped.empty() || x->dimensions().empty() ? x : b.Reverse(x, wrapped);
}

// Towards the end, by a shift of less than the dimension's size.
Value RollDimension(Builder& b, Value x, lazy::Index shift, int64_t dimension) {
  int64_t size = x->shape().dimension(dimension);
  if (size == 0) return x;
  if (auto known = shift.known()) {
    if (*known == 0) return x;
    return b.Concatenate({b.SliceInDim(x, dimension, size - *known, size),
                          b.SliceInDim(x, dimension, 0, size - *known)},
                         dimension);
  }
  Value start = b.Subtract(b.ConstantScalar(ElementType::kS64, size), shift);
  return lazy::TakePart(b, b.Concatenate({x, x}, dimension), dimension, {start}, size);
}

Value Roll(Builder& b, Value x, std::vector<lazy::Index> shifts, Dimensions dimensions) {
  if (dimensions.empty()) {
    Value flat = b.Reshape(x, {x->shape().num_elements()});
    return b.Reshape(RollDimension(b, flat, shifts[0], 0), x->dimensions());
  }
  for (size_t i = 0; i < shifts.size(); ++i) x = RollDimension(b, x, shifts[i], dimensions[i]);
  return x;
}

void CheckShifts(at::IntArrayRef shifts, at::IntArrayRef dimensions) {
  if (shifts.empty()) {
    Refuse("`shifts` required", "roll(): expected `shifts` to have at least 1 element.");
  }
  if (shifts.size() == dimensions.size() || (dimensions.empty() && shifts.size() == 1)) return;
  const std::string eager = c10::str("shifts and dimensions must align. shifts: ", shifts.size(),
                                     ", dims:", dimensions.size());
  if (dimensions.empty()) {
    Refuse(eager, "roll(): expected `shifts` ", shifts, " (size=", shifts.size(),
           ") to have exactly 1 element when `dims` is empty.");
  }
  Refuse(eager, "roll(): expected `dims` ", dimensions, " (size=", dimensions.size(),
         ") to match the size of `shifts` ", shifts, " (size=", shifts.size(), ").");
}

at::Tensor RecordRoll(const at::Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dimensions) {
  CheckShifts(shifts, dimensions);
  if (self.numel() == 0) return self.clone();  // whatever the dimensions, as in eager
  TORCH_CHECK_INDEX(dimensions.empty() || self.dim() > 0, "Dimension specified as ",
                    dimensions.empty() ? 0 : dimensions[0], " but tensor has no dimensions");
  std::vector<int64_t> wrapped, places;
  for (int64_t d : dimensions) places.push_back(c10::maybe_wrap_dim(d, self.dim()));
  for (size_t i = 0; i < shifts.size(); ++i) {
    int64_t size = places.empty() ? self.numel() : self.size(places[i]);
    wrapped.push_back(size == 0 ? 0 : (shifts[i] % size + size) % size);
  }
  return Record<&Roll>(self, at::IntArrayRef(wrapped), at::IntArrayRef(places));
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
Value KeepTriangle(Builder& b, Value x, lazy::Index diagonal, bool lower) {
  int64_t rank = x->shape().rank();
  if (rank < 2) throw hlo::Error("tril/triu: input tensor must have at least 2 dimensions");
  Shape plane(ElementType::kS32, {x->shape().dimension(rank - 2), x->shape().dimension(rank - 1)});
  Value offset = b.Subtract(b.Iota(plane, 1), b.Iota(plane, 0));
  auto known = diagonal.known();
  Value limit = known ? b.Full(plane, *known)
                      : Splat(b, b.Convert(diagonal, ElementType::kS32), plane.dimensions());
  Value kept = lower ? b.Le(offset, limit) : b.Ge(offset, limit);
  return ZeroUnless(b, b.BroadcastInDim(kept, x->dimensions(), {rank - 2, rank - 1}), x);
}
Value Tril(Builder& b, Value x, lazy::Index diagonal) { return KeepTriangle(b, x, diagonal, true); }
Value Triu(Builder& b, Value x, lazy::Index diagonal) {
  return KeepTriangle(b, x, diagonal, false);
}

// A diagonal beyond the matrix is as good as the nearest such one.
int64_t ClampDiagonal(const at::Tensor& self, int64_t diagonal) {
  if (self.dim() < 2) return diagonal;
  return std::clamp<int64_t>(diagonal, -self.size(-2), self.size(-1));
}
at::Tensor RecordTril(const at::Tensor& self, int64_t diagonal) {
  return Record<&Tril>(self, ClampDiagonal(self, diagonal));
}
at::Tensor RecordTriu(const at::Tensor& self, int64_t diagonal) {
  return Record<&Triu>(self, ClampDiagonal(self, diagonal));
}

Value Trace(Builder& b, Value x) {
  if (x->shape().rank() != 2) {
    Refuse(c10::str("trace: expected a matrix, but got tensor with dim ", x->shape().rank()),
           "trace(): expected the input tensor ", x->shape().ToString(),
           " to be a matrix (i.e. a 2D tensor).");
  }
  Shape plane(ElementType::kS64, x->dimensions());
  Value diagonal = b.Eq(b.Iota(plane, 0), b.Iota(plane, 1));
  x = b.Convert(x, SumType(x->element_type()));
  return Sum(b, ZeroUnless(b, diagonal, x), {0, 1});
}

// --- Padding

Value Zero(Builder& b, ElementType type) { return b.Zeros(Shape::Scalar(type)); }

// `padding` lists (low, high) from the last dimension backwards; negative crops.
Value ConstantPad(Builder& b, Value x, Dimensions padding, FittingScalar value) {
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

// Where nothing is filled, eager does not look at the number.
at::Tensor ConstantPadOf(const at::Tensor& x, at::IntArrayRef padding, const at::Scalar& value) {
  const bool fills = std::ranges::any_of(padding, [](int64_t count) { return count > 0; });
  return Record<&ConstantPad>(x, padding, fills ? value : at::Scalar(0));
}

// --- Gradients of views, and writing into a part

// Where a slice lies, with torch's clamping.
struct SliceRange {
  int64_t start, step, count;
};
SliceRange MakeRange(int64_t size, std::optional<int64_t> start, std::optional<int64_t> end,
                     int64_t step) {
  auto wrap = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  SliceRange r{wrap(start.value_or(0)), step, 0};
  r.count = hlo::CeilDivide(std::max(r.start, wrap(end.value_or(size))) - r.start, step);
  if (r.count == 0) r.start = 0;
  return r;
}

// A selected index, counted from the front.
int64_t WrapSelected(int64_t index, int64_t size, const char* op) {
  TORCH_CHECK_INDEX(-size <= index && index < size, op, "(): index ", index,
                    " out of range for dimension of size ", size);
  return index < 0 ? index + size : index;
}

// Behind the last of `count` elements.
int64_t EndOfSlice(int64_t start, int64_t step, int64_t count) {
  return count == 0 ? start : start + (count - 1) * step + 1;
}

Value SliceBackward(Builder& b, Value gradient, int64_t dimension, lazy::Index start, int64_t step,
                    int64_t size) {
  return lazy::SpreadPart(b, gradient, dimension, start, step, size);
}
at::Tensor RecordSliceBackward(const at::Tensor& gradient, at::IntArrayRef sizes, int64_t dimension,
                               int64_t start, int64_t end, int64_t step) {
  int64_t d = c10::maybe_wrap_dim(dimension, static_cast<int64_t>(sizes.size()), false);
  TORCH_CHECK(step > 0, "slice step must be positive");
  SliceRange r = MakeRange(sizes[d], start, end, step);
  c10::DimVector part(sizes);
  part[d] = r.count;
  TORCH_CHECK(gradient.sizes() == part, "slice_backward: a gradient of sizes ", gradient.sizes(),
              " is not that of a slice of ", r.count, " elements in dimension ", d, " of ", sizes);
  return Record<&SliceBackward>(gradient, d, r.start, step, sizes[d]);
}

Value SelectBackward(Builder& b, Value gradient, int64_t dimension, lazy::Index index,
                     int64_t size) {
  Dimensions one = gradient->dimensions();
  one.insert(one.begin() + dimension, 1);
  return lazy::SpreadPart(b, b.Reshape(gradient, one), dimension, index, 1, size);
}
at::Tensor RecordSelectBackward(const at::Tensor& gradient, at::IntArrayRef sizes,
                                int64_t dimension, int64_t index) {
  int64_t d = c10::maybe_wrap_dim(dimension, static_cast<int64_t>(sizes.size()), false);
  c10::DimVector part(sizes);
  part.erase(part.begin() + d);
  TORCH_CHECK(gradient.sizes() == part, "select_backward: a gradient of sizes ", gradient.sizes(),
              " is not that of a part of ", sizes);
  return Record<&SelectBackward>(gradient, d, WrapSelected(index, sizes[d], "select_backward"),
                                 sizes[d]);
}

[[noreturn]] void ThrowSourceSize(Value source, const Dimensions& slice) {
  throw hlo::Error("expected src to have a size equal to the slice of self. src size = " +
                   hlo::ToString(source->dimensions()) + ", slice size = " + hlo::ToString(slice));
}

Value SliceScatter(Builder& b, Value x, Value part, int64_t dimension, lazy::Index start,
                   int64_t step, int64_t count) {
  Dimensions slice = x->dimensions();
  slice[dimension] = count;
  if (part->dimensions() != slice) ThrowSourceSize(part, slice);
  return lazy::PutPart(b, x, b.Convert(part, x->element_type()), dimension, start, step);
}
at::Tensor RecordSliceScatter(const at::Tensor& self, const at::Tensor& source, int64_t dimension,
                              std::optional<int64_t> start, std::optional<int64_t> end,
                              int64_t step) {
  int64_t d = c10::maybe_wrap_dim(dimension, self.dim());
  TORCH_CHECK(step > 0, "slice step must be positive");
  SliceRange r = MakeRange(self.size(d), start, end, step);
  return Record<&SliceScatter>(self, source, d, r.start, step, r.count);
}

Value SelectScatter(Builder& b, Value x, Value source, int64_t dimension, lazy::Index index) {
  Dimensions selected = x->dimensions(), one = selected;
  selected.erase(selected.begin() + dimension);
  one[dimension] = 1;
  if (source->dimensions() != selected) ThrowSourceSize(source, selected);
  Value part = b.Convert(b.Reshape(source, one), x->element_type());
  return lazy::PutPart(b, x, part, dimension, index);
}
at::Tensor RecordSelectScatter(const at::Tensor& self, const at::Tensor& source, int64_t dimension,
                               int64_t index) {
  int64_t d = c10::maybe_wrap_dim(dimension, self.dim());
  return Record<&SelectScatter>(self, source, d,
                                WrapSelected(index, self.size(d), "select_scatter"));
}

// --- Diagonals

// True on the diagonal of two dimensions of a shape.
Value OnDiagonal(Builder& b, const Dimensions& shape, int64_t offset, int64_t row, int64_t column) {
  Shape plane(ElementType::kS64, {shape[row], shape[column]});
  Value hit = b.Eq(b.Subtract(b.Iota(plane, 1), b.Iota(plane, 0)), b.Full(plane, offset));
  if (row > column) return b.BroadcastInDim(b.Transpose(hit, {1, 0}), shape, {column, row});
  return b.BroadcastInDim(hit, shape, {row, column});
}

// The other dimensions of `shape`, then the diagonal's length.
Dimensions DiagonalDimensions(const Dimensions& shape, int64_t offset, int64_t row,
                              int64_t column) {
  Dimensions dimensions;
  for (int64_t d : OtherDimensions({row, column}, shape.size())) dimensions.push_back(shape[d]);
  const int64_t rows = shape[row] + std::min<int64_t>(offset, 0);
  const int64_t columns = shape[column] - std::max<int64_t>(offset, 0);
  dimensions.push_back(std::max<int64_t>(std::min(rows, columns), 0));
  return dimensions;
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
  const Dimensions diagonal = DiagonalDimensions(x->dimensions(), offset, row, column);
  if (source->dimensions() != diagonal) ThrowSourceSize(source, diagonal);
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
  if (sizes.empty()) return size == 0 ? Zero(b, gradient->element_type()) : b.Reshape(gradient, {});
  int64_t windows = gradient->shape().dimension(d), rank = gradient->shape().rank();
  std::vector<int64_t> places;
  for (int64_t w = 0; w < windows; ++w) {
    for (int64_t i = 0; i < size; ++i) places.push_back(w * step + i);
  }
  Value ordered = b.Transpose(gradient, MoveDimensionPermutation(rank, rank - 1, d + 1));
  Dimensions merged = sizes;
  merged[d] = windows * size;
  Value slices = b.Reshape(ordered, merged);
  Value zeros = b.Zeros(Shape(gradient->element_type(), sizes));
  return ScatterSlices(b, zeros, b.Constant(hlo::Literal::FromVector(places)), slices, d,
                       Opcode::kAdd);
}

// Eager's zeros without memory; here a constant costs none either.
at::Tensor ZeroTensor(at::IntArrayRef sizes, std::optional<at::ScalarType> type,
                      std::optional<at::Layout> layout, std::optional<at::Device> device,
                      std::optional<bool> pin_memory) {
  return at::zeros(sizes, type, layout, device, pin_memory);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&Concatenate>(+[](at::TensorList x, int64_t dimension) { return at::cat(x, dimension); });
  RunBy<&Roll>(+[](const at::Tensor& x, at::IntArrayRef shifts, at::IntArrayRef dimensions) {
    return at::roll(x, shifts, dimensions);
  });
  RunBy<&Tril>(+[](const at::Tensor& x, int64_t diagonal) { return at::tril(x, diagonal); });
  RunBy<&Triu>(+[](const at::Tensor& x, int64_t diagonal) { return at::triu(x, diagonal); });
  RunBy<&SliceBackward>(+[](const at::Tensor& gradient, int64_t dimension, int64_t start,
                            int64_t step, int64_t size) {
    c10::DimVector sizes(gradient.sizes());
    const int64_t end = EndOfSlice(start, step, sizes[dimension]);
    sizes[dimension] = size;
    return at::slice_backward(gradient, sizes, dimension, start, end, step);
  });
  RunBy<&SelectBackward>(
      +[](const at::Tensor& gradient, int64_t dimension, int64_t index, int64_t size) {
        c10::DimVector sizes(gradient.sizes());
        sizes.insert(sizes.begin() + dimension, size);
        return at::select_backward(gradient, sizes, dimension, index);
      });
  RunBy<&SliceScatter>(+[](const at::Tensor& x, const at::Tensor& part, int64_t dimension,
                           int64_t start, int64_t step, int64_t count) {
    return at::slice_scatter(x, part, dimension, start, EndOfSlice(start, step, count), step);
  });
  RunBy<&SelectScatter>(
      +[](const at::Tensor& x, const at::Tensor& source, int64_t dimension, int64_t index) {
        return at::select_scatter(x, source, dimension, index);
      });
  m.impl("_efficientzerotensor", &ZeroTensor);
  m.impl("cat", [](const at::ITensorListRef& tensors, int64_t dimension) {
    return Record<&Concatenate>(tensors, dimension);
  });
  Register<&StackTensors>(m, "stack");
  Register<&Flip>(m, "flip");
  m.impl("roll", TORCH_FN(RecordRoll));
  Register<&Repeat>(m, "repeat");
  m.impl("tril", TORCH_FN(RecordTril));
  m.impl("triu", TORCH_FN(RecordTriu));
  Register<&Trace>(m, "trace");
  Register<&ConstantPad>(m, "constant_pad_nd", &ConstantPadOf);
  m.impl("slice_backward", TORCH_FN(RecordSliceBackward));
  m.impl("select_backward", TORCH_FN(RecordSelectBackward));
  m.impl("slice_scatter", TORCH_FN(RecordSliceScatter));
  m.impl("select_scatter", TORCH_FN(RecordSelectScatter));
  Register<&DiagonalBackward>(m, "diagonal_backward");
  Register<&DiagonalScatter>(m, "diagonal_scatter");
  Register<&DiagonalEmbed>(m, "diag_embed");
  Register<&UnfoldBackward>(m, "unfold_backward");
}

}  // namespace torch_xla
