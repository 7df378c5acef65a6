// The factorization of symmetric or Hermitian indefinite matrices.
#include <ATen/ops/linalg_ldl_factor_ex_meta.h>
#include <ATen/ops/linalg_ldl_solve_meta.h>

#include "aten/lapack.h"
#include "aten/linalg.h"
#include "aten/op.h"
#include "aten/structured_check.h"
#include "hlo/lapack_call.h"

namespace torch_xla {
namespace {

std::array<Value, 3> FactorLdl(Builder& b, Value a, bool hermitian) {
  auto results = hlo::lapack::Sytrf(b, KeepLower(b, a), hermitian);
  return {results[0], results[1], results[2]};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> LdlFactorEx(const at::Tensor& a, bool hermitian,
                                                           bool check_errors) {
  CheckArguments<at::meta::structured_linalg_ldl_factor_ex>(a, hermitian, check_errors);
  auto results = Record<&FactorLdl>(a, hermitian);
  if (check_errors) CheckInfo(std::get<2>(results), "torch.linalg.ldl_factor_ex", a);
  return results;
}

Value SolveWithLdl(Builder& b, Value ld, Value pivots, Value rhs, bool hermitian) {
  auto [factors, x] = BroadcastBatches(b, ld, rhs);
  if (IsEmpty(factors) || IsEmpty(x)) return b.Zeros(x->shape());
  Value swaps = b.BroadcastTo(pivots, Batched(factors, {Columns(factors)}));
  return hlo::lapack::Sytrs(b, factors, swaps, x, hermitian);
}

at::Tensor LdlSolve(const at::Tensor& ld, const at::Tensor& pivots, const at::Tensor& rhs,
                    bool hermitian) {
  CheckArguments<at::meta::structured_linalg_ldl_solve>(ld, pivots, rhs, hermitian);
  return Record<&SolveWithLdl>(ld, pivots, rhs, hermitian);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RegisterLapack<&LdlFactorEx>(m, "linalg_ldl_factor_ex");
  RegisterLapack<&LdlSolve>(m, "linalg_ldl_solve");
  RunBy<&FactorLdl>(
      +[](const at::Tensor& a, bool hermitian) { return at::linalg_ldl_factor_ex(a, hermitian); });
  // Of the solution torch's kernel reads whatever rows the pivots name.
}

}  // namespace torch_xla
