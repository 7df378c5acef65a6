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

std::array<Value, 3> SymmetricEigen(Builder& b, Value a, bool lower, bool vectors) {
  auto eigen = hlo::lapack::Syevd(b, a, lower, vectors);
  Value none = b.Zeros(Shape(a->element_type(), {0}));
  return {eigen.values, vectors ? eigen.vectors : none, eigen.info};
}

std::tuple<at::Tensor, at::Tensor> Eigh(const at::Tensor& a, c10::string_view triangle,
                                        bool vectors) {
  CheckArguments<at::meta::structured__linalg_eigh>(a, triangle, vectors);
  CheckLapackType(a, "linalg_eigh_cpu");
  bool lower = triangle == "L" || triangle == "l";
  auto [values, columns, info] = Record<&SymmetricEigen>(a, lower, vectors);
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

std::array<Value, 4> DecomposeBySingularValues(Builder& b, Value a, bool full, bool vectors) {
  if (!vectors) {
    auto svd = hlo::lapack::Gesdd(b, a, SingularVectors::kNone);
    Value none = b.Zeros(Shape(a->element_type(), {0}));
    return {none, svd.s, none, svd.info};
  }
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
  auto [u, s, vh, info] = Record<&DecomposeBySingularValues>(a, full, vectors);
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
}

}  // namespace torch_xla
