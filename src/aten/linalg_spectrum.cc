// Eigenvalues, singular values, and the pseudo-inverse.
#include <ATen/CompositeExplicitAutogradNonFunctionalFunctions.h>
#include <ATen/ops/_linalg_eigh_meta.h>
#include <ATen/ops/_linalg_svd_meta.h>

#include "aten/lapack.h"
#include "aten/linalg.h"
#include "aten/op.h"
#include "aten/structured_check.h"
#include "hlo/lapack_call.h"
#include "lazy/op.h"

namespace torch_xla {
namespace {

using hlo::lapack::SingularVectors;

// --- Symmetric matrices

using Pair = std::pair<Value, Value>;

std::array<Value, 3> SymmetricEigen(Builder& b, Value a, bool lower) {
  auto eigen = hlo::lapack::Syevd(b, a, lower, /*vectors=*/true);
  return {eigen.values, eigen.vectors, eigen.info};
}
Pair SymmetricEigenvalues(Builder& b, Value a, bool lower) {
  auto eigen = hlo::lapack::Syevd(b, a, lower, /*vectors=*/false);
  return {eigen.values, eigen.info};
}

std::tuple<at::Tensor, at::Tensor> Eigh(const at::Tensor& a, c10::string_view triangle,
                                        bool vectors) {
  CheckArguments<at::meta::structured__linalg_eigh>(a, triangle, vectors);
  CheckLapackType(a, "linalg_eigh_cpu");
  bool lower = triangle == "L" || triangle == "l";
  if (!vectors) {
    auto [values, info] = Record<&SymmetricEigenvalues>(a, lower);
    CheckInfo(info, "linalg.eigh", a);
    return {values, at::empty({0}, a.options())};
  }
  auto [values, columns, info] = Record<&SymmetricEigen>(a, lower);
  CheckInfo(info, "linalg.eigh", a);
  return {values, columns};
}

// --- Others

std::array<Value, 3> GeneralEigen(Builder& b, Value a, bool vectors) {
  auto eigen = hlo::lapack::Geev(b, a, vectors);
  return {eigen.values, eigen.vectors, eigen.info};
}

std::tuple<at::Tensor, at::Tensor> EigenOf(const at::Tensor& a, const char* name, bool vectors) {
  at::native::squareCheckInputs(a, name);
  (void)c10::toComplexType(a.scalar_type());  // throws for types without one
  CheckLapackType(a, "linalg_eig_out_cpu");
  auto [values, columns, info] = Record<&GeneralEigen>(a, vectors);
  TORCH_CHECK(at::isfinite(a).all().item<bool>(), "torch.", name,
              ": input tensor should not contain infs or NaNs.");
  CheckInfo(info, name, a);
  return {values, columns};
}

std::tuple<at::Tensor, at::Tensor> Eig(const at::Tensor& a) {
  return EigenOf(a, "linalg.eig", /*vectors=*/true);
}
at::Tensor EigenValues(const at::Tensor& a) {
  return std::get<0>(EigenOf(a, "linalg.eigvals", /*vectors=*/false));
}

// --- Singular values

Pair SingularValues(Builder& b, Value a) {
  auto svd = hlo::lapack::Gesdd(b, a, SingularVectors::kNone);
  return {svd.s, svd.info};
}

std::array<Value, 4> DecomposeBySingularValues(Builder& b, Value a, bool full) {
  auto svd = hlo::lapack::Gesdd(b, a, full ? SingularVectors::kAll : SingularVectors::kThin);
  // Of no columns (or rows), any orthogonal matrix will do.
  if (IsEmpty(a)) return {IdentityLike(b, svd.u), svd.s, IdentityLike(b, svd.vh), svd.info};
  return {svd.u, svd.s, svd.vh, svd.info};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> Svd(const at::Tensor& a, bool full, bool vectors,
                                                   std::optional<c10::string_view> driver) {
  CheckArguments<at::meta::structured__linalg_svd>(a, full, vectors, driver);
  TORCH_CHECK(!driver,
              "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs "
              "with cuSOLVER backend.");
  if (!vectors) {
    auto [s, info] = Record<&SingularValues>(a);
    CheckInfo(info, "linalg.svd", a);
    const at::Tensor none = at::empty({0}, a.options());
    return {none, s, none};
  }
  auto [u, s, vh, info] = Record<&DecomposeBySingularValues>(a, full);
  CheckInfo(info, "linalg.svd", a);
  return {u, s, vh};
}

// torch's own, which calls the operators above; it keeps it from devices of this kind.
at::Tensor PseudoInverse(const at::Tensor& a, const std::optional<at::Tensor>& atol,
                         const std::optional<at::Tensor>& rtol, bool hermitian) {
  return at::compositeexplicitautogradnonfunctional::linalg_pinv(a, atol, rtol, hermitian);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RegisterLapack<&Eigh>(m, "_linalg_eigh");
  RegisterLapack<&Eig>(m, "linalg_eig");
  RegisterLapack<&EigenValues>(m, "_linalg_eigvals");
  RegisterLapack<&Svd>(m, "_linalg_svd");
  recording::NameKind(lazy::Op<&DecomposeBySingularValues>::kind(), "_linalg_svd");
  m.impl("linalg_pinv.atol_rtol_tensor", &PseudoInverse);
  // Of vectors the signs depend on whose LAPACK it is: they stay those of the program.
  RunBy<&SymmetricEigenvalues>(+[](const at::Tensor& a, bool lower) {
    RequireFinite(a);
    return std::tuple(at::linalg_eigvalsh(a, lower ? "L" : "U"), SuccessOf(a));
  });
  RunBy<&SingularValues>(+[](const at::Tensor& a) {
    RequireFinite(a);
    return std::tuple(at::linalg_svdvals(a), SuccessOf(a));
  });
}

}  // namespace torch_xla
