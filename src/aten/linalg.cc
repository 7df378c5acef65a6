#include "aten/linalg.h"

#include <utility>

#include "aten/broadcast.h"
#include "aten/elementwise.h"
#include "aten/matmul.h"
#include "hlo/error.h"

namespace torch_xla {

Dimensions BatchDimensions(Value x) {
  if (x->shape().rank() < 2) {
    throw hlo::Error("expected matrices, but got " + x->shape().ToString());
  }
  return Dimensions(x->dimensions().begin(), x->dimensions().end() - 2);
}

Dimensions Batched(Value x, const Dimensions& last) {
  Dimensions dimensions = BatchDimensions(x);
  dimensions.insert(dimensions.end(), last.begin(), last.end());
  return dimensions;
}

std::pair<Value, Value> BroadcastBatches(Builder& b, Value x, Value y) {
  Dimensions common = BroadcastDimensions(BatchDimensions(x), BatchDimensions(y));
  auto stretch = [&](Value v) {
    Dimensions full = common;
    full.insert(full.end(), {Rows(v), Columns(v)});
    return b.BroadcastTo(v, full);
  };
  return {stretch(x), stretch(y)};
}

Value RowNumbers(Builder& b, Value x) {
  return Iota(b, x->dimensions(), x->shape().rank() - 2, ElementType::kS32);
}
Value ColumnNumbers(Builder& b, Value x) {
  return Iota(b, x->dimensions(), x->shape().rank() - 1, ElementType::kS32);
}

Value KeepLower(Builder& b, Value x) {
  return ZeroUnless(b, b.Ge(RowNumbers(b, x), ColumnNumbers(b, x)), x);
}
Value KeepUpper(Builder& b, Value x) {
  return ZeroUnless(b, b.Le(RowNumbers(b, x), ColumnNumbers(b, x)), x);
}

Value WithUnitDiagonal(Builder& b, Value x) {
  return b.Select(b.Eq(RowNumbers(b, x), ColumnNumbers(b, x)), Like(b, x, 1), x);
}
Value IdentityLike(Builder& b, Value x) { return WithUnitDiagonal(b, Like(b, x, 0)); }

Value ConjugateTranspose(Builder& b, Value x) {
  Value transposed = SwapLastTwo(b, x);
  if (!IsComplexValue(x)) return transposed;
  return b.Complex(b.Real(transposed), b.Negate(b.Imag(transposed)));
}

Value SolveWithTriangle(Builder& b, Value triangle, Value rhs, const Triangle& form) {
  hlo::TriangularSolveAttributes attributes;
  attributes.left_side = form.left;
  attributes.lower = form.lower;
  attributes.unit_diagonal = form.unit_diagonal;
  if (form.adjoint) attributes.transpose_a = hlo::Transpose::kAdjoint;
  return b.TriangularSolve(triangle, rhs, attributes);
}

}  // namespace torch_xla
