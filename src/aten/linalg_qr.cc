// QR factorization: Householder's reflectors, and the orthogonal matrices that they make.
#include <ATen/ops/linalg_qr_meta.h>

#include <algorithm>

#include "aten/lapack.h"
#include "aten/linalg.h"
#include "aten/op.h"
#include "aten/structured_check.h"
#include "hlo/lapack_call.h"

namespace torch_xla {
namespace {

std::pair<Value, Value> Reflectors(Builder& b, Value a) {
  auto results = hlo::lapack::Geqrf(b, a);
  return {results[0], results[1]};
}

std::tuple<at::Tensor, at::Tensor> Geqrf(const at::Tensor& a) {
  TORCH_CHECK(a.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  CheckLapackType(a, "geqrf_cpu");
  return Record<&Reflectors>(a);
}

// What `name` asks of reflectors and their factors.
void CheckReflectors(const char* name, const at::Tensor& packed, const at::Tensor& tau) {
  TORCH_CHECK(packed.dim() >= 2, name, ": input must have at least 2 dimensions.");
  TORCH_CHECK(packed.dim() - tau.dim() == 1, name,
              ": Expected tau to have one dimension less than input, but got tau.ndim equal to ",
              tau.dim(), " and input.ndim is equal to ", packed.dim());
  TORCH_CHECK(tau.sizes().slice(0, tau.dim() - 1) == packed.sizes().slice(0, packed.dim() - 2),
              name, ": Expected batch dimensions of tau to be equal to input.shape[:-2], but got ",
              tau.sizes());
  TORCH_CHECK(tau.scalar_type() == packed.scalar_type(), name, ": tau dtype ", tau.scalar_type(),
              " does not match input dtype ", packed.scalar_type());
  at::native::checkSameDevice(name, tau, packed, "tau");
}

at::Tensor HouseholderProduct(const at::Tensor& packed, const at::Tensor& tau) {
  constexpr const char* kName = "torch.linalg.householder_product";
  CheckReflectors(kName, packed, tau);
  TORCH_CHECK(packed.size(-1) >= tau.size(-1), kName,
              ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  TORCH_CHECK(packed.size(-2) >= packed.size(-1), kName,
              ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  CheckLapackType(packed, "orgqr_cpu");
  return Record<&hlo::lapack::Orgqr>(packed, tau);
}

Value Rotate(Builder& b, Value packed, Value tau, Value other, bool left, bool transpose) {
  // No reflectors, no rotation.
  if (IsEmpty(packed) || IsEmpty(tau) || IsEmpty(other)) return other;
  return hlo::lapack::Ormqr(b, packed, tau, other, left, transpose);
}

at::Tensor Ormqr(const at::Tensor& packed, const at::Tensor& tau, const at::Tensor& other,
                 bool left, bool transpose) {
  constexpr const char* kName = "torch.ormqr";
  CheckReflectors(kName, packed, tau);
  CheckLapackType(packed, "ormqr_cpu");
  TORCH_CHECK(other.dim() >= 2, kName, ": other must have at least 2 dimensions.");
  TORCH_CHECK(packed.dim() == other.dim(), kName,
              ": Expected other to have the same number of dimensions as input, but got "
              "other.ndim equal to ",
              other.dim(), " and input.ndim is equal to ", packed.dim());
  int64_t side = left ? -2 : -1;
  TORCH_CHECK(other.size(side) >= tau.size(-1), kName, ": other.shape[", side,
              "] must be greater than or equal to tau.shape[-1]");
  TORCH_CHECK(other.size(side) == packed.size(-2), kName, ": other.shape[", side,
              "] must be equal to input.shape[-2]");
  TORCH_CHECK(std::min(other.size(side), packed.size(-1)) == tau.size(-1), kName,
              ": tau.shape[-1] must be equal to min(other.shape[", side, "], input.shape[-1])");
  int64_t batch = packed.dim() - 2;
  TORCH_CHECK(other.sizes().slice(0, batch) == packed.sizes().slice(0, batch), kName,
              ": Expected batch dimensions of other to be equal to input.shape[:-2], but got ",
              other.sizes());
  TORCH_CHECK(other.scalar_type() == packed.scalar_type(), kName,
              ": Expected input and other to have the same dtype, but input has dtype ",
              packed.scalar_type(), " and other has dtype ", other.scalar_type());
  at::native::checkSameDevice(kName, other, packed, "other");
  // LAPACK has as many columns of reflectors as factors.
  return Record<&Rotate>(packed.narrow(-1, 0, tau.size(-1)), tau, other, left, transpose);
}

std::tuple<at::Tensor, at::Tensor> Qr(const at::Tensor& a, c10::string_view mode) {
  CheckArguments<at::meta::structured_linalg_qr>(a, mode);
  auto [compute_q, reduced] = at::native::_parse_qr_mode(mode);
  auto [packed, tau] = at::geqrf(a);
  int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  at::Tensor r = (reduced ? packed.narrow(-2, 0, k) : packed).triu();
  if (!compute_q) return {at::empty({0}, a.options()), r};
  if (!reduced && m > n) {
    packed = at::constant_pad_nd(packed, {0, m - n});
  } else {
    packed = packed.narrow(-1, 0, k);
  }
  return {at::linalg_householder_product(packed, tau), r};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RegisterLapack<&Geqrf>(m, "geqrf");
  RegisterLapack<&HouseholderProduct>(m, "linalg_householder_product");
  RegisterLapack<&Ormqr>(m, "ormqr");
  m.impl("linalg_qr", &Qr);
  RunBy<&Reflectors>(+[](const at::Tensor& a) { return at::geqrf(a); });
  RunBy<&hlo::lapack::Orgqr>(+[](const at::Tensor& packed, const at::Tensor& tau) {
    return at::linalg_householder_product(packed, tau);
  });
  RunBy<&Rotate>(+[](const at::Tensor& packed, const at::Tensor& tau, const at::Tensor& other,
                     bool left,
                     bool transpose) { return at::ormqr(packed, tau, other, left, transpose); });
}

}  // namespace torch_xla
