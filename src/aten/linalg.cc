// Linear algebra that StableHLO has: triangular systems and Cholesky's
// factorisation.
#include "aten/broadcast.h"
#include "aten/dimension.h"
#include "aten/elementwise.h"
#include "aten/matmul.h"
#include "aten/op.h"
#include "aten/reduction.h"

namespace torch_xla {
namespace {

// Both with the same batch dimensions, those before the last two.
std::pair<Value, Value> BroadcastBatches(Builder& b, Value x, Value y) {
  auto batch = [](Value v) {
    return Dimensions(v->dimensions().begin(), v->dimensions().end() - 2);
  };
  Dimensions common = BroadcastDimensions(batch(x), batch(y));
  auto stretch = [&](Value v) {
    Dimensions full = common;
    full.insert(full.end(), v->dimensions().end() - 2, v->dimensions().end());
    return b.BroadcastTo(v, full);
  };
  return {stretch(x), stretch(y)};
}

Value SolveTriangular(Builder& b, Value a, Value rhs, bool upper, bool left, bool unit_diagonal) {
  auto [matrix, right] = BroadcastBatches(b, a, rhs);
  hlo::TriangularSolveAttributes attributes;
  attributes.left_side = left;
  attributes.lower = !upper;
  attributes.unit_diagonal = unit_diagonal;
  return b.TriangularSolve(matrix, right, attributes);
}

// The older operator: returns the matrix too.
std::pair<Value, Value> TriangularSolve(Builder& b, Value rhs, Value a, bool upper, bool transpose,
                                        bool unit_diagonal) {
  auto [matrix, right] = BroadcastBatches(b, a, rhs);
  hlo::TriangularSolveAttributes attributes;
  attributes.lower = !upper;
  attributes.unit_diagonal = unit_diagonal;
  if (transpose) attributes.transpose_a = hlo::Transpose::kTranspose;
  return {b.TriangularSolve(matrix, right, attributes), matrix};
}

Value KeepTriangle(Builder& b, Value x, bool lower) {
  int64_t rank = x->shape().rank();
  Shape plane(ElementType::kS32, {x->shape().dimension(rank - 2), x->shape().dimension(rank - 1)});
  Value row = b.Iota(plane, 0), column = b.Iota(plane, 1);
  Value kept = lower ? b.Ge(row, column) : b.Le(row, column);
  return ZeroUnless(b, b.BroadcastInDim(kept, x->dimensions(), {rank - 2, rank - 1}), x);
}

// The factor and, for each matrix, 0, or 1 where it is not positive definite
// (LAPACK would say which minor).
std::pair<Value, Value> CholeskyEx(Builder& b, Value a, bool upper, bool check_errors) {
  Value factor = KeepTriangle(b, b.Cholesky(a, true), true);
  int64_t rank = a->shape().rank();
  Value invalid = b.Reduce(Opcode::kOr, IsNan(b, factor), {rank - 2, rank - 1});
  Value info = b.Convert(invalid, ElementType::kS32);
  if (upper) factor = SwapLastTwo(b, factor);
  return {factor, info};
}

// a = L L^T: L y = rhs, L^T x = y.
Value CholeskySolve(Builder& b, Value rhs, Value factor, bool upper) {
  auto [matrix, right] = BroadcastBatches(b, factor, rhs);
  hlo::TriangularSolveAttributes first, second;
  first.lower = second.lower = !upper;
  (upper ? first : second).transpose_a = hlo::Transpose::kTranspose;
  return b.TriangularSolve(matrix, b.TriangularSolve(matrix, right, first), second);
}

Value Cross(Builder& b, Value x, Value y, int64_t dimension) {
  auto [u, v] = Broadcast(b, x, y);
  int64_t d = WrapDimension(dimension, u->shape().rank());
  if (u->shape().dimension(d) != 3) {
    throw hlo::Error("linalg.cross: inputs dimension " + std::to_string(dimension) +
                     " must have length 3. Got " + x->shape().ToString() + " and " +
                     y->shape().ToString());
  }
  auto part = [&](Value w, int64_t i) { return b.SliceInDim(w, d, i, i + 1); };
  Values components;
  for (int64_t i = 0; i < 3; ++i) {
    int64_t j = (i + 1) % 3, k = (i + 2) % 3;
    components.push_back(
        b.Subtract(b.Multiply(part(u, j), part(v, k)), b.Multiply(part(u, k), part(v, j))));
  }
  return b.Concatenate(components, d);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  Register<&SolveTriangular>(m, "linalg_solve_triangular");
  Register<&TriangularSolve>(m, "triangular_solve");
  Register<&CholeskyEx>(m, "linalg_cholesky_ex");
  Register<&CholeskySolve>(m, "_cholesky_solve_helper");
  Register<&Cross>(m, "linalg_cross");
}

}  // namespace torch_xla
