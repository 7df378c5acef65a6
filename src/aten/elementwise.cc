// What the element-wise families share.
#include "aten/elementwise.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "aten/op.h"
#include "aten/promotion.h"

namespace torch_xla {

ElementType SignedIntegerAsWide(ElementType type) {
  switch (hlo::BitWidth(type)) {
    case 64:
      return ElementType::kS64;
    case 32:
      return ElementType::kS32;
    default:
      return ElementType::kS16;
  }
}

void RequireReal(Value x) {
  if (IsComplexValue(x)) throw hlo::Error("not implemented for complex numbers");
}
void RequireIntegers(Value x) {
  if (!IsIntegral(x) || IsPred(x)) throw hlo::Error("implemented for integers only");
}
void RequireFloats(Value x) {
  if (!IsFloatValue(x)) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented, "implemented for floating-point numbers only");
  }
}

Value Magnitude(Builder& b, Value x) {
  return IsPred(x) || hlo::IsUnsignedInteger(x->element_type()) ? x : b.Abs(x);
}

Value Reciprocal(Builder& b, Value x) { return b.Divide(Like(b, x, 1), x); }

Value Conjugate(Builder& b, Value x) {
  return IsComplexValue(x) ? b.Complex(b.Real(x), b.Negate(b.Imag(x))) : x;
}

Value SignBit(Builder& b, Value x) {
  if (IsPred(x)) return b.Full(x->shape(), int64_t{0});
  if (IsFloatValue(x)) x = b.BitcastConvert(x, SignedIntegerAsWide(x->element_type()));
  return b.Lt(x, b.Zeros(x->shape()));
}

Value CopySignFrom(Builder& b, Value x, Value y) {
  Value magnitude = b.Abs(x);
  return b.Select(SignBit(b, y), b.Negate(magnitude), magnitude);
}

Value IsNan(Builder& b, Value x) {
  if (IsIntegral(x)) return b.Full(x->shape().WithElementType(ElementType::kPred), int64_t{0});
  return b.Ne(x, x);
}

Value Truncate(Builder& b, Value x) {
  if (IsIntegral(x)) return x;
  return b.Select(b.Lt(x, Like(b, x, 0)), b.Unary(Opcode::kCeil, x), b.Unary(Opcode::kFloor, x));
}

Value Cast(Builder& b, Value x, ElementType type) {
  if (type == ElementType::kPred) return ToPred(b, x);
  if (IsComplexValue(x) && !hlo::IsComplex(type)) x = b.Real(x);
  // Without infinities torch takes the largest number; HLO none.
  if (type == ElementType::kF8E4M3FN && x->element_type() != type) {
    x = b.Convert(x, PromoteTypes(x->element_type(), ElementType::kF32));
    x = b.Clamp(ScalarLike(b, x, -448), x, ScalarLike(b, x, 448));
  }
  // torch defines it for bytes alone; other integers are HLO's nearest.
  if (type == ElementType::kU8 && hlo::IsFloat(x->element_type())) {
    x = b.Convert(x, PromoteTypes(x->element_type(), ElementType::kF32));
    // What s64 does not have is a multiple of 256, or no number.
    Value has_integer = b.Lt(b.Abs(x), Like(b, x, 0x1p63));
    x = b.Convert(ZeroUnless(b, has_integer, x), ElementType::kS64);
  }
  return b.Convert(x, type);
}

Value FloorRemainder(Builder& b, Value x, Value y) {
  Value remainder = b.Remainder(x, y);
  if (hlo::IsUnsignedInteger(x->element_type())) return remainder;
  Value zero = b.Zeros(x->shape());
  Value differs = b.Ne(b.Lt(y, zero), b.Lt(remainder, zero));
  Value adjust = b.And(b.Ne(remainder, zero), differs);
  return b.Select(adjust, b.Add(remainder, y), remainder);
}

// A floating quotient is rounded from (x - x mod y) / y, so that 1 // 0.1 is 9 as in Python.
Value FloorDivide(Builder& b, Value x, Value y) {
  Value zero = b.Zeros(x->shape());
  if (IsIntegral(x)) {
    Value quotient = b.Divide(x, y);
    if (hlo::IsUnsignedInteger(x->element_type())) return quotient;
    Value differs = b.Ne(b.Lt(x, zero), b.Lt(y, zero));
    Value inexact = b.Ne(b.Multiply(quotient, y), x);
    return b.Select(b.And(differs, inexact), b.Subtract(quotient, b.Full(x->shape(), int64_t{1})),
                    quotient);
  }
  // One less if the remainder has the other sign, and not the larger remainder: y may be infinite.
  Value remainder = b.Remainder(x, y);
  Value differs = b.Ne(b.Lt(y, zero), b.Lt(remainder, zero));
  Value is_above = b.And(b.Ne(remainder, zero), differs);
  Value exact = b.Divide(b.Subtract(x, remainder), y);
  exact = b.Select(is_above, b.Subtract(exact, Like(b, x, 1)), exact);
  Value rounded = b.Unary(Opcode::kRoundNearestEven, exact);
  Value quotient = b.Divide(x, y);
  Value signed_zero = b.Select(SignBit(b, quotient), Like(b, x, -0.0), zero);
  Value result = b.Select(b.Eq(rounded, zero), signed_zero, rounded);
  return b.Select(b.Eq(y, zero), quotient, result);
}

Value ZeroUnless(Builder& b, Value predicate, Value x) {
  return b.Select(predicate, x, b.Zeros(x->shape()));
}

Value OneMinus(Builder& b, Value x) { return b.Subtract(Like(b, x, 1), x); }

Value SigmoidBackward(Builder& b, Value gradient, Value y) {
  return b.Multiply(gradient, Conjugate(b, b.Multiply(y, OneMinus(b, y))));
}

Value TanhBackward(Builder& b, Value gradient, Value y) {
  return b.Multiply(gradient, Conjugate(b, OneMinus(b, b.Multiply(y, y))));
}

// The same with the operand of the larger real part in front.
Value ComplexLogAddExp(Builder& b, Value x, Value y) {
  Value swap = b.Lt(b.Real(x), b.Real(y));
  Value large = b.Select(swap, y, x), small = b.Select(swap, x, y);
  Value sum = b.Add(large, b.Unary(Opcode::kLogPlusOne, b.Exp(b.Subtract(small, large))));
  Value real = b.Real(large);
  Value is_infinite = b.Eq(b.Abs(real), Like(b, real, kInfinity));
  return b.Select(b.And(is_infinite, b.Eq(real, b.Real(small))), large, sum);
}

Value LogAddExp(Builder& b, Value x, Value y) {
  if (IsComplexValue(x)) return ComplexLogAddExp(b, x, y);
  Value large = b.Maximum(x, y);
  Value difference = b.Negate(b.Abs(b.Subtract(x, y)));
  Value sum = b.Add(large, b.Unary(Opcode::kLogPlusOne, b.Exp(difference)));
  // Two equal infinities differ by NaN.
  return b.Select(b.Eq(x, y), b.Add(x, Like(b, x, std::numbers::ln2)), sum);
}

namespace {

// torch's kernels wrap floats that an integer type does not hold; the lowering has the nearest
// signed one, and 0 for NaN. Throws for unsigned types.
at::Tensor ToNearest(const at::Tensor& x, at::ScalarType type) {
  if (x.numel() == 0) return x.to(type);
  const int bits = static_cast<int>(8 * c10::elementSize(type));
  const bool is_signed = c10::isSignedType(type);
  const double low = is_signed ? -std::ldexp(1.0, bits - 1) : 0;
  const double high = std::ldexp(1.0, is_signed ? bits - 1 : bits);  // the first beyond
  const auto [least, largest] = at::aminmax(x);                      // NaN if there is one
  if (least.item<double>() >= low && largest.item<double>() < high) return x.to(type);
  TORCH_CHECK(is_signed, "numbers that the integer type does not hold");
  const at::Tensor is_held = (x >= low).logical_and_(x < high);
  const int64_t most = std::numeric_limits<int64_t>::max() >> (64 - bits);
  at::Tensor result = at::where(is_held, x, at::zeros({}, x.options())).to(type);
  result.masked_fill_(x >= high, most);
  return result.masked_fill_(x < low, -most - 1);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&Cast>(+[](const at::Tensor& x, at::ScalarType type) {
    // Without the warning that torch gives where the user converts.
    at::Tensor real = x.is_complex() && !at::isComplexType(type) ? at::real(x) : x;
    if (at::isFloatingType(real.scalar_type()) && at::isIntegralType(type, false)) {
      return ToNearest(real, type);
    }
    return real.to(type);
  });
}

}  // namespace torch_xla
