// Sorting, order statistics, searches and running reductions.
#include "aten/sort.h"

#include "aten/dimension.h"
#include "aten/elementwise.h"
#include "aten/indexing.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "aten/twin.h"

namespace torch_xla {
namespace {

// Whether x sorts before y in ascending order, NaN last.
Value Before(Builder& b, Value x, Value y) {
  if (IsPred(x)) return b.And(b.Not(x), y);
  Value less = b.Lt(x, y);
  if (!IsFloatValue(x)) return less;
  return b.Or(less, b.And(IsNan(b, y), b.Not(IsNan(b, x))));
}

// Zeros are one number, and so are NaNs, the largest: in the order of all bits a sort needs no more
// than keys. The engine knows this form, which is JAX's.
Value Canonical(Builder& b, Value x) {
  x = b.Select(b.Eq(x, Like(b, x, 0.0)), Like(b, x, 0.0), x);
  return b.Select(IsNan(b, x), Like(b, x, kNaN), x);
}

// The same as Before, for sorting.
Value SortsBefore(Builder& b, Value x, Value y) {
  if (!IsFloatValue(x)) return Before(b, x, y);
  return b.Compare(Canonical(b, x), Canonical(b, y), hlo::ComparisonDirection::kLt,
                   hlo::ComparisonType::kTotalOrder);
}

hlo::Computation* Comparator(Builder& b, ElementType type, bool descending) {
  Shape value = Shape::Scalar(type), index = Shape::Scalar(ElementType::kS64);
  return b.Region(descending ? "descending" : "ascending", {value, value, index, index},
                  [=](Builder& r, const Values& p) -> Values {
                    return {descending ? SortsBefore(r, p[1], p[0]) : SortsBefore(r, p[0], p[1])};
                  });
}

std::pair<Value, Value> ScalarWithIndex(Builder& b, Value x) {
  return {x, b.Zeros(Shape::Scalar(ElementType::kS64))};
}

std::pair<Value, Value> SortStable(Builder& b, Value x, std::optional<bool> stable,
                                   Dimension dimension, bool descending) {
  if (x->dimensions().empty()) return ScalarWithIndex(b, x);
  return SortWithIndices(b, x, dimension, descending, stable.value_or(false));
}
std::pair<Value, Value> Sort(Builder& b, Value x, Dimension dimension, bool descending) {
  return SortStable(b, x, false, dimension, descending);
}

std::pair<Value, Value> TopK(Builder& b, Value x, int64_t k, Dimension dimension, bool largest,
                             bool sorted) {
  if (x->dimensions().empty()) {
    if (k > 1) throw hlo::Error("selected index k out of range");
    return ScalarWithIndex(b, x);
  }
  if (k < 0 || k > x->shape().dimension(dimension)) {
    throw hlo::Error("selected index k out of range: " + std::to_string(k) + " of " +
                     x->shape().ToString());
  }
  auto [values, indices] = SortWithIndices(b, x, dimension, largest, false);
  return {b.SliceInDim(values, dimension, 0, k), b.SliceInDim(indices, dimension, 0, k)};
}

// Element `position` of the sorted dimension, and where it came from.
std::pair<Value, Value> NthAlong(Builder& b, Value x, int64_t dimension, int64_t position,
                                 bool keep) {
  if (x->dimensions().empty()) return ScalarWithIndex(b, x);
  auto [values, indices] = SortWithIndices(b, x, dimension, false, true);
  Value value = b.SliceInDim(values, dimension, position, position + 1);
  Value index = b.SliceInDim(indices, dimension, position, position + 1);
  if (keep) return {value, index};
  Dimensions squeezed = x->dimensions();
  squeezed.erase(squeezed.begin() + dimension);
  return {b.Reshape(value, squeezed), b.Reshape(index, squeezed)};
}

void RequireKth(int64_t k, int64_t size, int64_t dimension) {
  TORCH_CHECK_INDEX(size > 0, "kthvalue(): Expected reduction dim ", dimension,
                    " to have non-zero size.");
  TORCH_CHECK(k >= 1 && k <= size, "kthvalue(): selected number k out of range for dimension ",
              dimension);
}

std::pair<Value, Value> KthValue(Builder& b, Value x, int64_t k, Dimension dimension, bool keep) {
  int64_t size = x->dimensions().empty() ? 1 : x->shape().dimension(dimension);
  RequireKth(k, size, dimension.value);
  return NthAlong(b, x, dimension, k - 1, keep);
}

// A NaN among the elements is the median.
std::pair<Value, Value> MedianDimension(Builder& b, Value x, Dimension dimension, bool keep) {
  if (x->dimensions().empty()) return ScalarWithIndex(b, x);
  int64_t size = x->shape().dimension(dimension);
  if (size == 0)
    throw hlo::Error(hlo::ErrorCode::kOutOfRange,
                     "median(): Expected reduction dim to have non-zero size.");
  auto [value, index] = NthAlong(b, x, dimension, (size - 1) / 2, keep);
  if (!IsFloatValue(x)) return {value, index};
  Value has_nan = b.Reduce(Opcode::kOr, IsNan(b, x), {dimension});
  has_nan = b.Reshape(has_nan, value->dimensions());
  // The first NaN in the order of the elements.
  Value nan_position = ArgMax(b, x, dimension);
  nan_position = b.Reshape(nan_position, index->dimensions());
  return {b.Select(has_nan, Like(b, value, kNaN), value), b.Select(has_nan, nan_position, index)};
}
Value Median(Builder& b, Value x) {
  int64_t size = x->shape().num_elements();
  if (size == 0) return Like(b, b.Zeros(Shape::Scalar(x->element_type())), kNaN);
  return MedianDimension(b, b.Reshape(x, {size}), Dimension{0}, false).first;
}

// The median of what is not NaN: sorted, NaN stands last. NaN where there is nothing else.
std::pair<Value, Value> NanMedianDimension(Builder& b, Value x, Dimension dimension, bool keep) {
  if (x->dimensions().empty() || !IsFloatValue(x)) return MedianDimension(b, x, dimension, keep);
  int64_t size = x->shape().dimension(dimension);
  if (size == 0)
    throw hlo::Error(hlo::ErrorCode::kOutOfRange,
                     "nanmedian(): Expected reduction dim to have non-zero size.");
  auto [values, indices] = SortWithIndices(b, x, dimension, false, true);
  Value counted = b.Convert(b.Not(IsNan(b, x)), ElementType::kS64);
  Value count = Sum(b, counted, {dimension}, true);
  Value one = b.Full(count->shape(), int64_t{1});
  Value position = b.Divide(b.Subtract(b.Maximum(count, one), one), b.Add(one, one));
  Dimensions shape = KeepDimensions(x->dimensions(), {dimension});
  if (!keep) shape.erase(shape.begin() + dimension);
  return {b.Reshape(GatherAlong(b, values, position, dimension), shape),
          b.Reshape(GatherAlong(b, indices, position, dimension), shape)};
}
Value NanMedian(Builder& b, Value x) {
  int64_t size = x->shape().num_elements();
  if (size == 0) return Median(b, x);
  return NanMedianDimension(b, b.Reshape(x, {size}), Dimension{0}, false).first;
}

// --- Running reductions: windows that reach back to the start

hlo::Window RunningWindow(Value x, int64_t dimension) {
  hlo::Window window = hlo::Window::Trivial(x->shape().rank());
  int64_t size = x->shape().dimension(dimension);
  window.dimensions[dimension] = size;
  window.padding_low[dimension] = size - 1;
  return window;
}

Value Running(Builder& b, Opcode combiner, Value x, int64_t dimension) {
  if (x->dimensions().empty() || x->shape().num_elements() == 0) return x;
  ElementType type = x->element_type();
  Value identity = b.Constant(hlo::IdentityLiteral(combiner, type));
  return b.ReduceWindow(x, identity, RunningWindow(x, dimension), b.ScalarCombiner(combiner, type));
}

template <Opcode combiner>
Value RunningReduction(Builder& b, Value x, Dimension dimension, std::optional<ElementType> dtype) {
  ElementType type = dtype.value_or(SumType(x->element_type()));
  if (type == ElementType::kPred && x->shape().rank() > 0 && x->shape().num_elements() > 0) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented, "running sums of truth values");
  }
  x = ToAccumulation(b, Cast(b, x, type));
  return b.Convert(Running(b, combiner, x, dimension), type);
}

// Values and the positions of the latest among equals; NaN wins and stays.
template <bool largest>
std::pair<Value, Value> RunningExtreme(Builder& b, Value x, Dimension dimension) {
  if (x->dimensions().empty() || x->shape().num_elements() == 0) {
    return {x, b.Zeros(Shape(ElementType::kS64, x->dimensions()))};
  }
  constexpr Opcode kExtreme = largest ? Opcode::kMaximum : Opcode::kMinimum;
  const ElementType type = x->element_type();
  const Shape value = Shape::Scalar(type), position = Shape::Scalar(ElementType::kS64);
  auto* later = b.Region("running_extreme", {value, position, value, position},
                         [](Builder& r, const Values& p) -> Values {
                           Value wins = largest ? r.Ge(p[2], p[0]) : r.Le(p[2], p[0]);
                           if (IsFloatValue(p[2])) wins = r.Or(wins, IsNan(r, p[2]));
                           return {r.Select(wins, p[2], p[0]), r.Select(wins, p[3], p[1])};
                         });
  Value lowest = b.Constant(hlo::IdentityLiteral(kExtreme, type)), none = b.Zeros(position);
  Value running =
      b.Create(Opcode::kReduceWindow, {x, Iota(b, x->dimensions(), dimension), lowest, none},
               RunningWindow(x, dimension), {later});
  return {b.GetTupleElement(running, 0), b.GetTupleElement(running, 1)};
}

// In twice the width, as in eager: the gradient takes exponentials of differences of such sums.
Value LogCumulativeSumExp(Builder& b, Value x, Dimension dimension) {
  if (x->dimensions().empty() || x->shape().num_elements() == 0) return x;
  ElementType type = x->element_type();
  x = b.Convert(x, IsComplexValue(x) ? ElementType::kC128 : ElementType::kF64);
  Shape scalar = Shape::Scalar(x->element_type());
  auto* join = b.Region("log_add_exp", {scalar, scalar}, [](Builder& r, const Values& p) -> Values {
    return {LogAddExp(r, p[0], p[1])};
  });
  Value sums = b.ReduceWindow(x, b.ConstantScalar(x->element_type(), -kInfinity),
                              RunningWindow(x, dimension), join);
  return b.Convert(sums, type);
}

// The most frequent value, the smallest among the equally frequent, and where it stands last: the
// end of the longest run of the sorted elements.
std::pair<Value, Value> Mode(Builder& b, Value x, Dimension dimension, bool keep) {
  if (x->dimensions().empty()) return ScalarWithIndex(b, x);
  int64_t size = x->shape().dimension(dimension);
  if (size == 0) {
    throw hlo::Error(hlo::ErrorCode::kOutOfRange, "mode(): Expected reduction dim " +
                                                      std::to_string(dimension.value) +
                                                      " to have non-zero size.");
  }
  auto [values, indices] = SortWithIndices(b, x, dimension, false, true);
  Value position = Iota(b, x->dimensions(), dimension);
  Value zero = b.Zeros(position->shape());
  Value begins = b.Eq(position, zero);
  if (size > 1) {
    Value begin = b.SliceInDim(begins, dimension, 0, 1);
    Value differs = b.Ne(b.SliceInDim(values, dimension, 1, size),
                         b.SliceInDim(values, dimension, 0, size - 1));
    begins = b.Concatenate({begin, differs}, dimension);
  }
  Value start = Running(b, Opcode::kMaximum, b.Select(begins, position, zero), dimension);
  Value best = ArgMax(b, b.Subtract(position, start), dimension);
  Dimensions kept = KeepDimensions(x->dimensions(), {dimension});
  best = b.Reshape(best, kept);
  Dimensions shape = kept;
  if (!keep) shape.erase(shape.begin() + dimension);
  return {b.Reshape(GatherAlong(b, values, best, dimension), shape),
          b.Reshape(GatherAlong(b, indices, best, dimension), shape)};
}

// --- Searches

void CheckSide(const std::string& side, bool right) {
  if (side != "left" && side != "right") {
    throw hlo::Error("torch.searchsorted(): side can only be 'left' or 'right' but got " + side);
  }
  if (right && side == "left") {
    throw hlo::Error(
        "torch.searchsorted(): side and right can't be set to opposites, got side of left while "
        "right was True");
  }
}

Value SearchSorted(Builder& b, Value boundaries, Value values, bool int32, bool right,
                   std::optional<std::string> side, std::optional<Value> sorter) {
  if (boundaries->shape().rank() == 0) throw hlo::Error("the boundaries must have a dimension");
  if (side) CheckSide(*side, right);
  if (sorter) boundaries = GatherAlong(b, boundaries, *sorter, boundaries->shape().rank() - 1);
  Values pair = {boundaries, values};
  PromoteAll(b, pair);
  bool to_right = right || (side && *side == "right");
  ElementType type = int32 ? ElementType::kS32 : ElementType::kS64;
  Value count = CountBelow(b, pair[0], pair[1], to_right);
  if (IsFloatValue(pair[1])) {  // NaN belongs behind everything, other NaNs included
    Value size = b.Full(count->shape(), pair[0]->dimensions().back());
    count = b.Select(IsNan(b, pair[1]), size, count);
  }
  return b.Convert(count, type);
}
Value SearchSortedNumber(Builder& b, Value boundaries, Scalar value, bool int32, bool right,
                         std::optional<std::string> side, std::optional<Value> sorter) {
  return SearchSorted(b, boundaries, value, int32, right, side, sorter);
}
Value Bucketize(Builder& b, Value values, Value boundaries, bool int32, bool right) {
  return SearchSorted(b, boundaries, values, int32, right, std::nullopt, std::nullopt);
}
Value BucketizeNumber(Builder& b, Scalar value, Value boundaries, bool int32, bool right) {
  return Bucketize(b, value, boundaries, int32, right);
}

// What `index` names in each row; a single row serves all.
Value FromRows(Builder& b, Value rows, Value index) {
  if (rows->shape().rank() == 1) return TakeRows(b, rows, index);
  return GatherAlong(b, rows, index, rows->shape().rank() - 1);
}

Value IsBelow(Builder& b, Value boundary, Value value, bool right) {
  return right ? b.Not(Before(b, value, boundary)) : Before(b, boundary, value);
}

// Few boundaries: all comparisons, summed.
Value CountByComparing(Builder& b, Value boundaries, Value values, bool right) {
  int64_t rank = values->shape().rank();
  Dimensions pairs = values->dimensions();
  pairs.push_back(boundaries->dimensions().back());
  bool is_shared = boundaries->shape().rank() == 1;
  Dimensions of_boundaries = is_shared ? Dimensions{rank} : OtherDimensions({rank - 1}, rank + 1);
  Value full = b.BroadcastInDim(boundaries, pairs, of_boundaries);
  Value value = b.BroadcastInDim(values, pairs, AllDimensions(rank));
  return Sum(b, b.Convert(IsBelow(b, full, value, right), ElementType::kS64), {rank});
}

// Many: the number's binary digits, the highest first.
Value CountByHalving(Builder& b, Value boundaries, Value values, bool right) {
  int64_t size = boundaries->dimensions().back(), step = 1;
  while (step * 2 <= size) step *= 2;
  Shape shape(ElementType::kS64, values->dimensions());
  Value count = b.Zeros(shape);
  for (; step > 0; step /= 2) {
    Value next = b.Add(count, b.Full(shape, step));
    Value last = b.Subtract(next, b.Full(shape, int64_t{1}));
    Value inside = b.Le(next, b.Full(shape, size));
    Value boundary = FromRows(b, boundaries, b.Minimum(last, b.Full(shape, size - 1)));
    Value moves = b.And(inside, IsBelow(b, boundary, values, right));
    count = b.Select(moves, next, count);
  }
  return count;
}

// --- Without a program: sorts of programs leave equal elements in their order

using Sorted = std::tuple<at::Tensor, at::Tensor>;

Sorted RunSort(const at::Tensor& x, int64_t dimension, bool descending) {
  return at::sort(x, /*stable=*/true, dimension, descending);
}
Sorted RunSortStable(const at::Tensor& x, std::optional<bool>, int64_t dimension, bool descending) {
  return RunSort(x, dimension, descending);
}
// Which of equal elements torch's own operators select is not defined: they are only asked what
// they refuse.
Sorted RunTopK(const at::Tensor& x, int64_t k, int64_t dimension, bool largest, bool sorted) {
  if (x.is_complex()) return at::topk(x, k, dimension, largest, sorted);
  TORCH_CHECK(k >= 0 && k <= (x.dim() == 0 ? 1 : x.size(dimension)),
              "selected index k out of range");
  auto [values, indices] = RunSort(x, dimension, largest);
  if (x.dim() == 0) return {values, indices};
  return {values.narrow(dimension, 0, k), indices.narrow(dimension, 0, k)};
}
Sorted RunKthValue(const at::Tensor& x, int64_t k, int64_t dimension, bool keep) {
  if (x.is_complex() || x.numel() == 0) return at::kthvalue(x, k, dimension, keep);
  RequireKth(k, x.dim() == 0 ? 1 : x.size(dimension), dimension);
  auto [values, indices] = RunSort(x, dimension, false);
  if (x.dim() == 0) return {values, indices};
  if (!keep) return {values.select(dimension, k - 1), indices.select(dimension, k - 1)};
  return {values.narrow(dimension, k - 1, 1), indices.narrow(dimension, k - 1, 1)};
}

}  // namespace

std::pair<Value, Value> SortWithIndices(Builder& b, Value x, int64_t dimension, bool descending,
                                        bool stable) {
  Value index = Iota(b, x->dimensions(), dimension);
  Value sorted =
      b.Sort({x, index}, dimension, stable, Comparator(b, x->element_type(), descending));
  return {b.GetTupleElement(sorted, 0), b.GetTupleElement(sorted, 1)};
}

Value CountBelow(Builder& b, Value boundaries, Value values, bool right) {
  constexpr int64_t kFew = 64;
  bool is_few = boundaries->dimensions().back() <= kFew;
  return is_few ? CountByComparing(b, boundaries, values, right)
                : CountByHalving(b, boundaries, values, right);
}

Value CumulativeSum(Builder& b, Value x, int64_t dimension) {
  return Running(b, Opcode::kAdd, x, dimension);
}

Value CumulativeMaximum(Builder& b, Value x, int64_t dimension) {
  return Running(b, Opcode::kMaximum, x, dimension);
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&Sort>(&RunSort);
  RunBy<&SortStable>(&RunSortStable);
  RunBy<&TopK>(&RunTopK);
  RunBy<&KthValue>(&RunKthValue);
  Register<&Sort>(m, "sort");
  Register<&SortStable>(m, "sort.stable");
  Register<&TopK>(m, "topk");
  Register<&KthValue>(m, "kthvalue");
  Register<&Median>(m, "median");
  Register<&MedianDimension>(m, "median.dim");
  Register<&NanMedian>(m, "nanmedian");
  Register<&NanMedianDimension>(m, "nanmedian.dim");
  Register<&Mode>(m, "mode");
  Register<&RunningReduction<Opcode::kAdd>>(m, "cumsum");
  Register<&RunningReduction<Opcode::kMultiply>>(m, "cumprod");
  Register<&RunningExtreme<true>>(m, "cummax");
  Register<&RunningExtreme<false>>(m, "cummin");
  Register<&LogCumulativeSumExp>(m, "logcumsumexp");
  Register<&Twin<0, &LogCumulativeSumExp>::Lower>(m, "_logcumsumexp");
  Register<&SearchSorted>(m, "searchsorted.Tensor");
  Register<&SearchSortedNumber>(m, "searchsorted.Scalar");
  Register<&Bucketize>(m, "bucketize.Tensor");
  Register<&BucketizeNumber>(m, "bucketize.Scalar");
  // torch's kernels name another one of equal elements.
  lazy::Op<&MedianDimension>::kind().eager_form = nullptr;
  lazy::Op<&NanMedianDimension>::kind().eager_form = nullptr;
  lazy::Op<&Mode>::kind().eager_form = nullptr;
}

}  // namespace torch_xla
