// Distances between the rows of matrices, each with each (cdist) and among themselves (pdist).
#include "aten/indexing.h"
#include "aten/linalg.h"
#include "aten/op.h"
#include "aten/reduction.h"

namespace torch_xla {
namespace {

// x[..., i, :] - y[..., j, :] at [..., i, j, :].
Value Differences(Builder& b, Value x, Value y) {
  auto [u, v] = BroadcastBatches(b, x, y);
  Dimensions pairs = Batched(u, {Rows(u), Rows(v), Columns(u)});
  int64_t rank = u->shape().rank();
  Dimensions first(rank), second(rank);
  for (int64_t i = 0; i < rank; ++i) first[i] = second[i] = i;
  first[rank - 1] = rank;
  second[rank - 2] = rank - 1;
  second[rank - 1] = rank;
  return b.Subtract(b.BroadcastInDim(u, pairs, first), b.BroadcastInDim(v, pairs, second));
}

Value EachWithEach(Builder& b, Value x, Value y, double p) {
  Value differences = Differences(b, x, y);
  return NormOver(b, differences, p, {differences->shape().rank() - 1}, /*keep=*/false);
}

// The derivative of the distance by each element of the difference. Where the distance has none, 0.
Value Slopes(Builder& b, Value differences, Value distances, double p) {
  Value zero = Like(b, differences, 0);
  if (p == 0) return zero;
  Value sign = b.Unary(Opcode::kSign, differences), size = b.Abs(differences);
  if (p == 1) return sign;
  if (p == kInfinity) return b.Select(b.Eq(size, distances), sign, zero);
  Value exponent = Like(b, differences, p - 1);
  Value slope = b.Multiply(sign, b.Power(b.Divide(size, distances), exponent));
  Value has_none = b.Eq(distances, zero);
  if (p < 1) has_none = b.Or(has_none, b.Eq(differences, zero));
  return b.Select(has_none, zero, slope);
}

// The gradient by x's rows.
Value EachWithEachBackward(Builder& b, Value gradient, Value x, Value y, double p,
                           Value distances) {
  Value differences = Differences(b, x, y);
  const Dimensions& pairs = differences->dimensions();
  int64_t rank = differences->shape().rank();
  Dimensions leading(rank - 1);
  for (int64_t i = 0; i < rank - 1; ++i) leading[i] = i;
  auto spread = [&](Value v) { return b.BroadcastInDim(v, pairs, leading); };
  if (p == 2) {  // one division for a pair
    Value zero = Like(b, distances, 0);
    Value shares = b.Select(b.Eq(distances, zero), zero, b.Divide(gradient, distances));
    return Sum(b, b.Multiply(spread(shares), differences), {rank - 2});
  }
  Value slopes = Slopes(b, differences, spread(distances), p);
  return Sum(b, b.Multiply(spread(gradient), slopes), {rank - 2});
}

Value Cdist(Builder& b, Value x, Value y, double p, std::optional<int64_t> mode) {
  auto require = [](bool holds, const std::string& message) {
    if (!holds) throw hlo::Error(message);
  };
  require(x->shape().rank() >= 2 && y->shape().rank() >= 2,
          "cdist only supports at least 2D tensors");
  require(Columns(x) == Columns(y),
          "X1 and X2 must have the same number of columns. X1: " + std::to_string(Columns(x)) +
              " X2: " + std::to_string(Columns(y)));
  require(IsFloatValue(x) && IsFloatValue(y), "cdist only supports floating-point dtypes");
  require(p >= 0, "cdist only supports non-negative p values");
  require(mode.value_or(0) >= 0 && mode.value_or(0) <= 2, "possible modes: 0, 1, 2");
  return EachWithEach(b, x, y, p);
}

// The roots of |x|^2 - 2 x y + |y|^2, by one product of rows [-2 x, |x|^2, 1] and [y, 1, |y|^2] as
// in eager: what is rounded is the same.
Value EuclideanDistances(Builder& b, Value first, Value second) {
  const bool is_of_one_type = first->element_type() == second->element_type();
  if (!is_of_one_type || !IsFloatValue(first)) {
    throw hlo::Error("the distances are of two tensors of one floating-point type, and not of " +
                     first->shape().ToString() + " and " + second->shape().ToString());
  }
  auto [x, y] = BroadcastBatches(b, first, second);
  const int64_t last = x->shape().rank() - 1;
  const auto square = [&](Value v) { return Sum(b, b.Multiply(v, v), {last}, /*keep=*/true); };
  Value of_x = square(x), of_y = square(y);
  Value left = b.Concatenate({b.Multiply(x, Like(b, x, -2)), of_x, Like(b, of_x, 1)}, last);
  Value right = b.Concatenate({y, Like(b, of_y, 1), of_y}, last);
  hlo::DotAttributes attributes;
  for (int64_t d = 0; d < last - 1; ++d) attributes.lhs_batching_dimensions.push_back(d);
  attributes.rhs_batching_dimensions = attributes.lhs_batching_dimensions;
  attributes.lhs_contracting_dimensions = attributes.rhs_contracting_dimensions = {last};
  Value squares = b.DotGeneral(left, right, attributes);
  return b.Sqrt(b.Maximum(squares, Like(b, squares, 0)));
}

// --- Pairs of rows i < j of one matrix, in the order (0, 1), (0, 2), …, (1, 2), …

// Where the pairs that begin with row `i` start: s64.
Value StartOf(Builder& b, Value i, int64_t n) {
  Value before = b.Multiply(i, b.Subtract(Like(b, i, 2.0 * static_cast<double>(n) - 1), i));
  return b.Divide(before, Like(b, i, 2));
}

// Rows i and j of each pair. i solves a quadratic equation: the root is a guess, which is then
// corrected.
std::pair<Value, Value> RowsOfPairs(Builder& b, int64_t n) {
  Value pair = Iota(b, {n * (n - 1) / 2}, 0);
  Value x = b.Convert(pair, ElementType::kF64);
  Value half = Like(b, x, static_cast<double>(n) - 0.5);
  Value root = b.Sqrt(b.Subtract(b.Multiply(half, half), b.Add(x, x)));
  Value i = b.Convert(b.Subtract(half, root), ElementType::kS64);
  Value one = Like(b, i, 1);
  i = b.Select(b.Gt(StartOf(b, i, n), pair), b.Subtract(i, one), i);
  i = b.Select(b.Le(StartOf(b, b.Add(i, one), n), pair), b.Add(i, one), i);
  return {i, b.Add(b.Add(i, one), b.Subtract(pair, StartOf(b, i, n)))};
}

Value Pdist(Builder& b, Value x, double p) {
  int64_t n = Rows(x);
  if (n < 2) return b.Zeros(Shape(x->element_type(), {0}));
  auto [i, j] = RowsOfPairs(b, n);
  // Which rows a pair has takes as long as a row of some vectors: it is computed before, for many
  // pairs at a time. (The longest rows hide it, and of the shortest several pairs are in a vector.)
  // They take twice the result's memory, for which many have no room.
  constexpr int64_t kShortest = 8, kLongest = 256, kMostPairs = int64_t{1} << 22;
  const int64_t width = x->shape().dimension(1), pairs = i->shape().num_elements();
  if (width >= kShortest && width <= kLongest && pairs <= kMostPairs) {
    i = b.OptimizationBarrier({b.Convert(i, ElementType::kS32)});
    j = b.OptimizationBarrier({b.Convert(j, ElementType::kS32)});
  }
  Value differences = b.Subtract(TakeRows(b, x, i), TakeRows(b, x, j));
  return NormOver(b, differences, p, {1}, /*keep=*/false);
}

// As the gradient of cdist(x, x), from the pairs' numbers in both halves of a square.
Value PdistBackward(Builder& b, Value gradient, Value x, double p, Value distances) {
  int64_t n = Rows(x);
  if (n < 2 || IsEmpty(x)) return b.Zeros(x->shape());
  Value row = Iota(b, {n, n}, 0), column = Iota(b, {n, n}, 1);
  Value i = b.Minimum(row, column), j = b.Maximum(row, column), one = Like(b, i, 1);
  Value on_diagonal = b.Eq(row, column);
  Value pair = b.Add(StartOf(b, i, n), b.Subtract(b.Subtract(j, i), one));
  pair = b.Select(on_diagonal, Like(b, pair, 0), pair);
  auto square = [&](Value v) {
    Value taken = TakeRows(b, v, pair);
    return b.Select(on_diagonal, Like(b, taken, 0), taken);
  };
  return EachWithEachBackward(b, square(gradient), x, x, p, square(distances));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  Register<&Cdist>(m, "_cdist_forward");
  Register<&EuclideanDistances>(m, "_euclidean_dist");
  Register<&EachWithEachBackward>(m, "_cdist_backward");
  Register<&Pdist>(m, "_pdist_forward");
  Register<&PdistBackward>(m, "_pdist_backward");
  lazy::Op<&PdistBackward>::kind().eager_form = nullptr;  // torch's kernel divides by no columns
}

}  // namespace torch_xla
