// Making complex numbers.
#include "aten/broadcast.h"
#include "aten/op.h"

namespace torch_xla {
namespace {

Value Complex(Builder& b, Value real, Value imaginary) {
  if (hlo::BitWidth(real->element_type()) < 32) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "StableHLO has no complex numbers of half precision");
  }
  auto [re, im] = Broadcast(b, real, imaginary);
  return b.Complex(re, im);
}

Value Polar(Builder& b, Value magnitude, Value angle) {
  auto [r, a] = Broadcast(b, magnitude, angle);
  return b.Complex(b.Multiply(r, b.Unary(Opcode::kCosine, a)),
                   b.Multiply(r, b.Unary(Opcode::kSine, a)));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  Register<&Complex>(m, "complex");
  Register<&Polar>(m, "polar");
}

}  // namespace torch_xla
