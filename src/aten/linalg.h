// What the families of linear algebra share. A matrix is the last two dimensions; those before
// them are the batch.
#pragma once

#include "aten/lowering.h"

namespace torch_xla {

inline int64_t Rows(Value x) { return x->shape().dimension(x->shape().rank() - 2); }
inline int64_t Columns(Value x) { return x->shape().dimension(x->shape().rank() - 1); }
inline bool IsEmpty(Value x) { return x->shape().num_elements() == 0; }

// The batch's dimensions, and with others after them.
Dimensions BatchDimensions(Value x);
Dimensions Batched(Value x, const Dimensions& last);
// Both with the same batch dimensions.
std::pair<Value, Value> BroadcastBatches(Builder& b, Value x, Value y);

// For each element of a matrix of x's shape, its row and its column (s32).
Value RowNumbers(Builder& b, Value x);
Value ColumnNumbers(Builder& b, Value x);
// Zero above (below) the diagonal.
Value KeepLower(Builder& b, Value x);
Value KeepUpper(Builder& b, Value x);
// Identity matrices in x's shape.
Value IdentityLike(Builder& b, Value x);
// x with ones on its diagonal.
Value WithUnitDiagonal(Builder& b, Value x);
Value ConjugateTranspose(Builder& b, Value x);

// Solves op(triangle) x = rhs, or x op(triangle) = rhs unless `left`; op is the conjugate transpose
// if `adjoint`. Only the triangle is read.
struct Triangle {
  bool lower = true, unit_diagonal = false, adjoint = false, left = true;
};
Value SolveWithTriangle(Builder& b, Value triangle, Value rhs, const Triangle& form);

}  // namespace torch_xla
