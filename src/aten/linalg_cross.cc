// The cross product.
#include "aten/broadcast.h"
#include "aten/dimension.h"
#include "aten/op.h"

namespace torch_xla {
namespace {

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

TORCH_LIBRARY_IMPL(aten, XLA, m) { Register<&Cross>(m, "linalg_cross"); }

}  // namespace torch_xla
