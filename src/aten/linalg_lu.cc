// LU factorization, and what is computed from it: solutions, inverses, determinants.
#include <ATen/ops/_linalg_det_meta.h>
#include <ATen/ops/_linalg_slogdet_meta.h>
#include <ATen/ops/_linalg_solve_ex_meta.h>
#include <ATen/ops/linalg_inv_ex_meta.h>
#include <ATen/ops/linalg_lu_factor_ex_meta.h>
#include <ATen/ops/linalg_lu_meta.h>
#include <ATen/ops/linalg_lu_solve_meta.h>
#include <ATen/ops/lu_unpack_meta.h>

#include <algorithm>

#include "aten/indexing.h"
#include "aten/lapack.h"
#include "aten/linalg.h"
#include "aten/op.h"
#include "aten/reduction.h"
#include "aten/structured_check.h"
#include "hlo/error.h"
#include "hlo/lapack_call.h"

namespace torch_xla {
namespace {

// --- The factorization

std::array<Value, 3> FactorLu(Builder& b, Value a) {
  auto results = hlo::lapack::Getrf(b, a);
  return {results[0], results[1], results[2]};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> LuFactorEx(const at::Tensor& a, bool pivot,
                                                          bool check_errors) {
  CheckArguments<at::meta::structured_linalg_lu_factor_ex>(a, pivot, check_errors);
  CheckLapackType(a, "lu_cpu");
  TORCH_CHECK(pivot, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
  auto results = Record<&FactorLu>(a);
  if (check_errors) CheckInfo(std::get<2>(results), "torch.linalg.lu_factor_ex", a);
  return results;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> Lu(const at::Tensor& a, bool pivot) {
  CheckArguments<at::meta::structured_linalg_lu>(a, pivot);
  auto [lu, pivots, info] = at::linalg_lu_factor_ex(a, pivot);
  return at::lu_unpack(lu, pivots);
}

// --- Its permutation

// x's values where `place` holds along the last dimension (at one place each), for all of it.
Value ValueAt(Builder& b, Value place, Value x) {
  int64_t last = x->shape().rank() - 1;
  Value picked = Sum(b, b.Select(place, x, Like(b, x, 0)), {last}, /*keep_dimensions=*/true);
  return b.BroadcastTo(picked, x->dimensions());
}

// The order of the rows after the swaps that the pivots tell: row i of L U is row order[i] of the
// matrix. One swap after the other, as each may move what another moved.
Value RowOrder(Builder& b, Value pivots, int64_t rows) {
  int64_t count = pivots->dimensions().back(), last = pivots->shape().rank() - 1;
  Dimensions dimensions = pivots->dimensions(), one = pivots->dimensions();
  dimensions.back() = rows;
  one.back() = 1;
  Value order = Iota(b, dimensions, last, ElementType::kS32);
  if (pivots->shape().num_elements() == 0) return order;
  const Shape number = Shape::Scalar(ElementType::kS32);
  const std::vector<Shape> state = {number, order->shape(), pivots->shape()};
  auto* condition = b.Region("swaps_left", state, [&](Builder& c, const Values& s) -> Values {
    return {c.Lt(s[0], c.ConstantScalar(ElementType::kS32, count))};
  });
  auto* body = b.Region("swap", state, [&](Builder& c, const Values& s) -> Values {
    Values start(pivots->shape().rank(), c.ConstantScalar(ElementType::kS32, int64_t{0}));
    start.back() = s[0];
    Value pivot = c.DynamicSlice(s[2], start, one);
    pivot = c.Subtract(pivot, Like(c, pivot, 1));
    Value place = Iota(c, dimensions, last, ElementType::kS32);
    Value at_step = c.Eq(place, Splat(c, s[0], dimensions));
    Value at_pivot = c.Eq(place, c.BroadcastTo(pivot, dimensions));
    Value swapped = c.Select(at_step, ValueAt(c, at_pivot, s[1]),
                             c.Select(at_pivot, ValueAt(c, at_step, s[1]), s[1]));
    return {c.Add(s[0], c.ConstantScalar(ElementType::kS32, int64_t{1})), swapped, s[2]};
  });
  Value loop =
      b.While({b.ConstantScalar(ElementType::kS32, int64_t{0}), order, pivots}, condition, body);
  return b.GetTupleElement(loop, 1);
}

// inverse[order[i]] = i.
Value InverseOrder(Builder& b, Value order) {
  int64_t n = order->dimensions().back(), rank = order->shape().rank();
  Dimensions pairs = order->dimensions();
  pairs.push_back(n);
  Dimensions leading(rank);
  for (int64_t i = 0; i < rank; ++i) leading[i] = i;
  Value is_there =
      b.Eq(b.BroadcastInDim(order, pairs, leading), Iota(b, pairs, rank, ElementType::kS32));
  Value position = Iota(b, pairs, rank - 1, ElementType::kS32);
  return Sum(b, b.Select(is_there, position, Like(b, position, 0)), {rank - 1});
}

// Rows (or columns) of x in an order: element i of the result is x's at order[i].
Value Reorder(Builder& b, Value x, Value order, bool rows) {
  int64_t rank = x->shape().rank(), dimension = rows ? rank - 2 : rank - 1;
  if (rank == 2) return TakeAlong(b, x, order, dimension);
  Dimensions kept(rank - 1);
  for (int64_t i = 0; i < rank - 1; ++i) kept[i] = i;
  kept.back() = dimension;
  return GatherAlong(b, x, b.BroadcastInDim(order, x->dimensions(), kept), dimension);
}

std::array<Value, 3> UnpackLu(Builder& b, Value lu, Value pivots, bool data, bool permutation) {
  int64_t m = Rows(lu), n = Columns(lu), k = std::min(m, n), rank = lu->shape().rank();
  if (pivots->dimensions() != Batched(lu, {k})) {
    throw hlo::Error("lu_unpack: expected a pivot for each of " + std::to_string(k) +
                     " rows, but got " + lu->shape().ToString() + " and " +
                     pivots->shape().ToString());
  }
  Value nothing = b.Zeros(Shape(lu->element_type(), {0}));
  std::array<Value, 3> results = {nothing, nothing, nothing};
  if (permutation) {
    // Column i of P has its one at row order[i].
    Dimensions square = Batched(lu, {m, m}), kept(rank - 1);
    for (int64_t i = 0; i < rank - 1; ++i) kept[i] = i;
    kept.back() = rank - 1;
    Value order = b.BroadcastInDim(RowOrder(b, pivots, m), square, kept);
    results[0] =
        b.Convert(b.Eq(order, Iota(b, square, rank - 2, ElementType::kS32)), lu->element_type());
  }
  if (data) {
    results[1] = WithUnitDiagonal(b, KeepLower(b, b.SliceInDim(lu, rank - 1, 0, k)));
    results[2] = KeepUpper(b, b.SliceInDim(lu, rank - 2, 0, k));
  }
  return results;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> LuUnpack(const at::Tensor& lu,
                                                        const at::Tensor& pivots, bool data,
                                                        bool permutation) {
  CheckArguments<at::meta::structured_lu_unpack>(lu, pivots, data, permutation);
  return Record<&UnpackLu>(lu, pivots, data, permutation);
}

// --- Systems

// With a = P L U; of the adjoint, a* = U* L* P^T.
Value SolveWithLu(Builder& b, Value lu, Value pivots, Value rhs, bool left, bool adjoint) {
  auto [factors, x] = BroadcastBatches(b, lu, rhs);
  int64_t n = Rows(factors);
  if (IsEmpty(x) || IsEmpty(factors)) return b.Zeros(x->shape());
  Value order = b.BroadcastTo(RowOrder(b, pivots, n), Batched(factors, {n}));
  Triangle lower{.lower = true, .unit_diagonal = true, .adjoint = adjoint, .left = left};
  Triangle upper{.lower = false, .adjoint = adjoint, .left = left};
  // Whether the permutation stands next to the right side, or next to the unknown.
  bool permutes_first = left != adjoint;
  if (permutes_first) x = Reorder(b, x, order, left);
  x = SolveWithTriangle(b, factors, x, permutes_first ? lower : upper);
  x = SolveWithTriangle(b, factors, x, permutes_first ? upper : lower);
  return permutes_first ? x : Reorder(b, x, InverseOrder(b, order), left);
}

at::Tensor LuSolve(const at::Tensor& lu, const at::Tensor& pivots, const at::Tensor& rhs, bool left,
                   bool adjoint) {
  CheckArguments<at::meta::structured_linalg_lu_solve>(lu, pivots, rhs, left, adjoint);
  return Record<&SolveWithLu>(lu, pivots, rhs, left, adjoint);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> SolveEx(const at::Tensor& a,
                                                                   const at::Tensor& rhs, bool left,
                                                                   bool check_errors) {
  CheckArguments<at::meta::structured__linalg_solve_ex>(a, rhs, left, check_errors);
  bool is_vector = at::native::linalg_solve_is_vector_rhs(a, rhs);
  auto [lu, pivots, info] = at::linalg_lu_factor_ex(a);
  at::Tensor x = at::linalg_lu_solve(lu, pivots, is_vector ? rhs.unsqueeze(-1) : rhs, left);
  if (check_errors) CheckInfo(info, "torch.linalg.solve_ex", a);
  return {is_vector ? x.squeeze(-1) : x, lu, pivots, info};
}

Value Identity(Builder& b, Value a) { return IdentityLike(b, a); }

std::tuple<at::Tensor, at::Tensor> InverseEx(const at::Tensor& a, bool check_errors) {
  CheckArguments<at::meta::structured_linalg_inv_ex>(a, check_errors);
  auto [inverse, lu, pivots, info] = at::_linalg_solve_ex(a, Record<&Identity>(a));
  if (check_errors) CheckInfo(info, "linalg.inv_ex", a);
  return {inverse, info};
}

// For torch's kernels, which swap whatever rows the pivots name.
void RequirePivots(const at::Tensor& lu, const at::Tensor& pivots) {
  const int64_t rows = lu.size(-2);
  at::DimVector sizes(lu.sizes().slice(0, lu.dim() - 2));
  sizes.push_back(std::min(rows, lu.size(-1)));
  bool fits = pivots.scalar_type() == at::kInt && pivots.sizes() == at::IntArrayRef(sizes);
  if (fits && pivots.numel() > 0) {
    const auto [least, largest] = at::aminmax(pivots);
    fits = least.item<int>() >= 1 && largest.item<int>() <= rows;
  }
  if (!fits) throw hlo::Error("pivots that name no rows, of which the program takes care");
}

// --- Determinants
//
// A matrix in row-major order is its transpose to LAPACK, and has the same determinant: eager
// factorizes the transpose of a real contiguous matrix, and autograd counts on it.
at::Tensor AsFactored(const at::Tensor& a) {
  return a.is_contiguous() && !a.is_complex() ? a.mT() : a;
}

// The permutation's: 1, or -1 for an odd number of swaps.
Value Parity(Builder& b, Value pivots) {
  int64_t last = pivots->shape().rank() - 1;
  Value own = Iota(b, pivots->dimensions(), last, ElementType::kS32);
  Value swaps = b.Ne(pivots, b.Add(own, Like(b, own, 1)));
  Value count = Sum(b, b.Convert(swaps, ElementType::kS32), {last});
  Value is_odd = b.And(count, Like(b, count, 1));
  return b.Subtract(Like(b, is_odd, 1), b.Add(is_odd, is_odd));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> Determinant(const at::Tensor& a) {
  CheckArguments<at::meta::structured__linalg_det>(a);
  auto [lu, pivots, info] = at::linalg_lu_factor_ex(AsFactored(a));
  at::Tensor product = lu.diagonal(0, -2, -1).prod(-1);
  return {product * Record<&Parity>(pivots), lu, pivots};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> SignAndLogDeterminant(
    const at::Tensor& a) {
  CheckArguments<at::meta::structured__linalg_slogdet>(a);
  auto [lu, pivots, info] = at::linalg_lu_factor_ex(AsFactored(a));
  at::Tensor diagonal = lu.diagonal(0, -2, -1);
  at::Tensor sign = diagonal.sgn().prod(-1) * Record<&Parity>(pivots);
  return {sign, diagonal.abs().log().sum(-1), lu, pivots};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RegisterLapack<&LuFactorEx>(m, "linalg_lu_factor_ex");
  m.impl("linalg_lu", &Lu);
  m.impl("lu_unpack", &LuUnpack);
  m.impl("linalg_lu_solve", &LuSolve);
  m.impl("_linalg_solve_ex", &SolveEx);
  m.impl("linalg_inv_ex", &InverseEx);
  m.impl("_linalg_det", &Determinant);
  m.impl("_linalg_slogdet", &SignAndLogDeterminant);
  RunBy<&FactorLu>(+[](const at::Tensor& a) { return at::linalg_lu_factor_ex(a); });
  RunBy<&UnpackLu>(
      +[](const at::Tensor& lu, const at::Tensor& pivots, bool data, bool permutation) {
        RequirePivots(lu, pivots);
        return at::lu_unpack(lu, pivots, data, permutation);
      });
  RunBy<&SolveWithLu>(+[](const at::Tensor& lu, const at::Tensor& pivots, const at::Tensor& rhs,
                          bool left, bool adjoint) {
    RequirePivots(lu, pivots);
    return at::linalg_lu_solve(lu, pivots, rhs, left, adjoint);
  });
  RunBy<&Identity>(+[](const at::Tensor& a) {
    return at::eye(a.size(-1), a.options()).expand(a.sizes()).contiguous();
  });
  RunBy<&Parity>(+[](const at::Tensor& pivots) {
    const at::Tensor own = at::arange(1, pivots.size(-1) + 1, at::kInt);
    const at::Tensor is_odd = pivots.ne(own).sum(-1).bitwise_and(1);
    return at::rsub(is_odd, 1, 2).to(at::kInt);
  });
}

}  // namespace torch_xla
