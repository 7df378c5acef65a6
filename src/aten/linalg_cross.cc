// The cross product.
#include <ATen/ops/linalg_cross_meta.h>

#include "aten/broadcast.h"
#include "aten/dimension.h"
#include "aten/op.h"
#include "aten/refused_types.h"
#include "aten/structured_check.h"

namespace torch_xla {
namespace {

Value Cross(Builder& b, Value x, Value y, int64_t dimension) {
  auto [u, v] = Broadcast(b, x, y);
  int64_t d = WrapDimension(dimension, u->shape().rank());
  auto part = [&](Value w, int64_t i) { return b.SliceInDim(w, d, i, i + 1); };
  Values components;
  for (int64_t i = 0; i < 3; ++i) {
    int64_t j = (i + 1) % 3, k = (i + 2) % 3;
    components.push_back(
        b.Subtract(b.Multiply(part(u, j), part(v, k)), b.Multiply(part(u, k), part(v, j))));
  }
  return b.Concatenate(components, d);
}

at::Tensor CheckedCross(const at::Tensor& x, const at::Tensor& y, int64_t dimension) {
  CheckArguments<at::meta::structured_linalg_cross>(x, y, dimension);
  CheckKernel(x.scalar_type() != at::kBool, "cross", x.scalar_type());
  return Record<&Cross>(x, y, dimension);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("linalg_cross", &CheckedCross);
  RunBy<&Cross>(+[](const at::Tensor& x, const at::Tensor& y, int64_t dimension) {
    return at::linalg_cross(x, y, dimension);
  });
}

}  // namespace torch_xla
