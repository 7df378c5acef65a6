#include "aten/view_flags.h"

#include "aten/op.h"

namespace torch_xla {
namespace {

Value ConjugateOf(Builder& b, Value x) { return b.Complex(b.Real(x), b.Negate(b.Imag(x))); }
Value NegativeOf(Builder& b, Value x) { return b.Negate(x); }

[[maybe_unused]] const bool flags_have_forms = [] {
  RunBy<&ConjugateOf>(+[](const at::Tensor& x) { return at::conj_physical(x); });
  RunBy<&NegativeOf>(+[](const at::Tensor& x) { return at::neg(x); });
  return true;
}();

}  // namespace

lazy::Value ResolveFlags(const at::Tensor& tensor, lazy::Value value) {
  if (tensor.is_conj()) {
    lazy::OperandList operands;
    operands.Add(value);
    value = {lazy::Op<&ConjugateOf>::Record(operands, {}), 0};
  }
  if (tensor.is_neg()) {
    lazy::OperandList operands;
    operands.Add(value);
    value = {lazy::Op<&NegativeOf>::Record(operands, {}), 0};
  }
  return value;
}

}  // namespace torch_xla
