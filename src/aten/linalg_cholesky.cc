// Cholesky's factorization, and what is computed from its factor.
#include <ATen/ops/linalg_cholesky_ex_meta.h>

#include "aten/lapack.h"
#include "aten/linalg.h"
#include "aten/op.h"
#include "aten/reduction.h"
#include "aten/structured_check.h"
#include "hlo/lapack_call.h"

namespace torch_xla {
namespace {

using Pair = std::pair<Value, Value>;

// The factor and, for each matrix, the order of the first leading minor that is not positive, or 0.
Pair FactorWithLapack(Builder& b, Value a, bool upper) {
  auto results = hlo::lapack::Potrf(b, a, !upper);
  return {upper ? KeepUpper(b, results[0]) : KeepLower(b, results[0]), results[1]};
}

// StableHLO's operation does not say which minor: 1 stands for any.
Pair FactorWithHlo(Builder& b, Value a, bool upper) {
  Value given = upper ? ConjugateTranspose(b, a) : a;
  Value factor = KeepLower(b, b.Cholesky(given, true));
  int64_t rank = a->shape().rank();
  Value invalid = b.Reduce(Opcode::kOr, b.Ne(factor, factor), {rank - 2, rank - 1});
  if (upper) factor = ConjugateTranspose(b, factor);
  return {factor, b.Convert(invalid, ElementType::kS32)};
}

std::tuple<at::Tensor, at::Tensor> CholeskyEx(const at::Tensor& a, bool upper, bool check_errors) {
  CheckArguments<at::meta::structured_linalg_cholesky_ex>(a, upper, check_errors);
  auto results =
      DeviceHasLapack() ? Record<&FactorWithLapack>(a, upper) : Record<&FactorWithHlo>(a, upper);
  if (check_errors) CheckInfo(std::get<1>(results), "linalg.cholesky_ex", a);
  return results;
}

at::Tensor Cholesky(const at::Tensor& a, bool upper) {
  TORCH_WARN_ONCE(
      "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a "
      "future PyTorch release.");
  if (a.numel() == 0) return at::empty_like(a);  // whatever its shape
  at::native::squareCheckInputs(a, "cholesky");
  CheckLapackType(a, "cholesky_cpu");
  auto [factor, info] = at::linalg_cholesky_ex(a, upper, /*check_errors=*/false);
  CheckInfo(info, "cholesky", a);
  return factor;
}

// With a = L L*, or U* U: two triangular systems.
Value SolveWithFactor(Builder& b, Value rhs, Value factor, bool upper) {
  auto [triangle, right] = BroadcastBatches(b, factor, rhs);
  Triangle first{.lower = !upper, .adjoint = upper}, second{.lower = !upper, .adjoint = !upper};
  return SolveWithTriangle(b, triangle, SolveWithTriangle(b, triangle, right, first), second);
}

// The inverse of the factored matrix and, where the factor is singular, the number of its first
// zero on the diagonal.
Pair InverseFromFactor(Builder& b, Value factor, bool upper) {
  int64_t n = Columns(factor), rank = factor->shape().rank();
  if (IsEmpty(factor)) {
    return {factor, b.Zeros(Shape(ElementType::kS32, BatchDimensions(factor)))};
  }
  Value row = RowNumbers(b, factor), column = ColumnNumbers(b, factor);
  Value zero = b.And(b.Eq(row, column), b.Eq(factor, Like(b, factor, 0)));
  Value number = b.Select(zero, row, Like(b, row, static_cast<double>(n)));
  Value first = Min(b, number, {rank - 2, rank - 1});
  Value singular = b.Lt(first, Like(b, first, static_cast<double>(n)));
  Value info = b.Select(singular, b.Add(first, Like(b, first, 1)), Like(b, first, 0));
  return {SolveWithFactor(b, IdentityLike(b, factor), factor, upper), info};
}

at::Tensor CholeskyInverse(const at::Tensor& factor, bool upper) {
  at::native::squareCheckInputs(factor, "cholesky_inverse");
  CheckLapackType(factor, "cholesky_inverse_out_cpu");
  auto [inverse, info] = Record<&InverseFromFactor>(factor, upper);
  CheckInfo(info, "cholesky_inverse", factor);
  return inverse;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("linalg_cholesky_ex", &CholeskyEx);
  m.impl("cholesky", &Cholesky);
  Register<&SolveWithFactor>(m, "_cholesky_solve_helper");
  m.impl("cholesky_inverse", &CholeskyInverse);
  RunBy<&FactorWithLapack>(
      +[](const at::Tensor& a, bool upper) { return at::linalg_cholesky_ex(a, upper); });
  RunBy<&InverseFromFactor>(+[](const at::Tensor& factor, bool upper) {
    return std::tuple(at::cholesky_inverse(factor, upper), SuccessOf(factor));
  });
}

}  // namespace torch_xla
