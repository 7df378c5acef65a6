// Functions of one element: rounding, signs, exponentials, trigonometry, special functions.
#include <cmath>
#include <numbers>

#include "aten/complex_functions.h"
#include "aten/elementwise.h"
#include "aten/limits.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/small_forms.h"
#include "aten/special.h"

namespace torch_xla {
namespace {

using std::numbers::ln2;

template <Opcode opcode>
Value Unary(Builder& b, Value x) {
  return b.Unary(opcode, x);
}

// Rounding leaves integers as they are.
template <Opcode opcode>
Value Rounded(Builder& b, Value x) {
  return IsIntegral(x) ? x : b.Unary(opcode, x);
}

Value Negative(Builder& b, Value x) {
  if (IsPred(x)) {
    throw hlo::Error(
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
        "invert a "
        "mask, use the `~` or `logical_not()` operator instead.");
  }
  return b.Negate(x);
}

Value Sign(Builder& b, Value x) {
  if (IsPred(x)) return x;
  if (!hlo::IsUnsignedInteger(x->element_type())) {
    Value sign = b.Unary(Opcode::kSign, x);
    if (!IsFloatValue(x)) return sign;
    // torch's sign of NaN and of -0 is 0.
    Value is_signed = b.Gt(b.Abs(x), Like(b, x, 0));
    return b.Select(is_signed, sign, Like(b, x, 0));
  }
  return b.Minimum(x, Like(b, x, 1));
}

Value Sgn(Builder& b, Value x) {
  return IsComplexValue(x) ? b.Unary(Opcode::kSign, x) : Sign(b, x);
}

Value Fraction(Builder& b, Value x) { return b.Subtract(x, Truncate(b, x)); }

Value RoundDecimals(Builder& b, Value x, int64_t decimals) {
  if (IsIntegral(x)) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented, "integers are not rounded to decimals");
  }
  Value scale = Like(b, x, std::pow(10.0, std::abs(static_cast<double>(decimals))));
  if (decimals >= 0)
    return b.Divide(b.Unary(Opcode::kRoundNearestEven, b.Multiply(x, scale)), scale);
  return b.Multiply(b.Unary(Opcode::kRoundNearestEven, b.Divide(x, scale)), scale);
}

Value Exp2(Builder& b, Value x) {
  return IsComplexValue(x) ? ComplexExp2(b, x) : b.Power(Like(b, x, 2), x);
}

Value Asinh(Builder& b, Value x) {
  if (IsComplexValue(x)) return ComplexAsinh(b, x);
  Value a = b.Abs(x), one = Like(b, x, 1);
  Value square = b.Multiply(a, a);
  Value near = b.Unary(Opcode::kLogPlusOne,
                       b.Add(a, b.Divide(square, b.Add(one, b.Sqrt(b.Add(square, one))))));
  Value far = b.Add(b.Log(a), Like(b, x, ln2));
  Value result = b.Select(b.Lt(a, Like(b, x, 1e9)), near, far);
  return b.Select(SignBit(b, x), b.Negate(result), result);
}

Value Asin(Builder& b, Value x) {
  if (IsComplexValue(x)) return ComplexAsin(b, x);
  Value one = Like(b, x, 1);
  Value adjacent = b.Sqrt(b.Multiply(b.Subtract(one, x), b.Add(one, x)));
  return b.Binary(Opcode::kAtan2, x, adjacent);
}

Value Atanh(Builder& b, Value x) {
  if (IsComplexValue(x)) return ComplexAtanh(b, x);
  Value sum =
      b.Subtract(b.Unary(Opcode::kLogPlusOne, x), b.Unary(Opcode::kLogPlusOne, b.Negate(x)));
  return b.Multiply(Like(b, x, 0.5), sum);
}

Value Atan(Builder& b, Value x) {
  if (IsComplexValue(x)) return ComplexAtan(b, x);
  return b.Binary(Opcode::kAtan2, x, Like(b, x, 1));
}

Value Acosh(Builder& b, Value x) {
  if (IsComplexValue(x)) return ComplexAcosh(b, x);
  Value one = Like(b, x, 1);
  Value t = b.Subtract(x, one);
  // NaN below 1, where one root is.
  Value root = b.Multiply(b.Sqrt(t), b.Sqrt(b.Add(x, one)));
  Value near = b.Unary(Opcode::kLogPlusOne, b.Add(t, root));
  Value far = b.Add(b.Log(x), Like(b, x, ln2));
  return b.Select(b.Lt(x, Like(b, x, 1e9)), near, far);
}

// exp(x - ln 2), which overflows no earlier than the result does.
Value HalfExp(Builder& b, Value x) { return b.Exp(b.Subtract(x, Like(b, x, ln2))); }

Value Cosh(Builder& b, Value x) {
  if (IsComplexValue(x)) return ComplexCosh(b, x);
  return b.Add(HalfExp(b, x), HalfExp(b, b.Negate(x)));
}

Value Sinh(Builder& b, Value x) {
  if (IsComplexValue(x)) return ComplexSinh(b, x);
  Value direct = b.Subtract(HalfExp(b, x), HalfExp(b, b.Negate(x)));
  Value e = b.Unary(Opcode::kExponentialMinusOne, x);
  Value near = b.Multiply(Like(b, x, 0.5), b.Add(e, b.Divide(e, b.Add(e, Like(b, x, 1)))));
  return b.Select(b.Lt(b.Abs(x), Like(b, x, 1)), near, direct);
}

Value Sinc(Builder& b, Value x) {
  Value scaled = b.Multiply(x, Like(b, x, std::numbers::pi));
  Value quotient = b.Divide(b.Unary(Opcode::kSine, scaled), scaled);
  return b.Select(b.Eq(x, Like(b, x, 0)), Like(b, x, 1), quotient);
}

Value Logit(Builder& b, Value x, std::optional<double> eps) {
  if (eps) x = b.Clamp(ScalarLike(b, x, *eps), x, ScalarLike(b, x, 1 - *eps));
  return b.Log(b.Divide(x, b.Subtract(Like(b, x, 1), x)));
}

Value LogitBackward(Builder& b, Value gradient, Value x, std::optional<double> eps) {
  Value one = Like(b, x, 1);
  Value result = b.Divide(gradient, b.Multiply(x, b.Subtract(one, x)));
  double low = eps.value_or(0);
  Value inside = b.And(b.Ge(x, Like(b, x, low)), b.Le(x, Like(b, x, 1 - low)));
  return b.Select(inside, result, Like(b, x, eps ? 0 : kNaN));
}

Value Entropy(Builder& b, Value x) {
  Value zero = Like(b, x, 0);
  Value inside = b.Negate(b.Multiply(x, b.Log(x)));
  Value result = b.Select(b.Eq(x, zero), zero, inside);
  return b.Select(b.Lt(x, zero), Like(b, x, -kInfinity), result);
}

Value Angle(Builder& b, Value x) {
  if (IsComplexValue(x)) return b.Binary(Opcode::kAtan2, b.Imag(x), b.Real(x));
  x = ToFloat(b, x);
  Value zero = Like(b, x, 0);
  Value result = b.Select(b.Lt(x, zero), Like(b, x, std::numbers::pi), zero);
  return b.Select(IsNan(b, x), x, result);
}

at::Tensor& ConjugateInPlace(at::Tensor& self) {
  return RecordElementwiseInto<&Conjugate, Promotion::kDefault>(self, self);
}

Value NanToNum(Builder& b, Value x, std::optional<double> nan, std::optional<double> positive,
               std::optional<double> negative) {
  if (IsComplexValue(x)) {
    return b.Complex(NanToNum(b, b.Real(x), nan, positive, negative),
                     NanToNum(b, b.Imag(x), nan, positive, negative));
  }
  if (!IsFloatValue(x)) return x;
  double largest = LargestFinite(x->element_type());
  Value result = b.Select(IsNan(b, x), Like(b, x, nan.value_or(0)), x);
  result = b.Select(b.Eq(x, Like(b, x, kInfinity)), Like(b, x, positive.value_or(largest)), result);
  return b.Select(b.Eq(x, Like(b, x, -kInfinity)), Like(b, x, negative.value_or(-largest)), result);
}

Value BitwiseNot(Builder& b, Value x) { return b.Not(x); }

// x as mantissa (at least 1/2, below 1) times a power of two; zeros, infinities and NaN as they
// are. The exponent is in the bits, once denormal numbers are scaled up.
std::pair<Value, Value> MantissaAndExponent(Builder& b, Value x) {
  if (!IsFloatValue(x)) {
    throw hlo::Error("torch.frexp() only supports floating-point dtypes");
  }
  ElementType type = x->element_type();
  Value wide = ToAccumulation(b, x);
  bool is_double = wide->element_type() == ElementType::kF64;
  ElementType bits = is_double ? ElementType::kS64 : ElementType::kS32;
  int64_t fraction_bits = is_double ? 52 : 23, bias = is_double ? 1022 : 126;
  int64_t exponent_mask = is_double ? 0x7ff : 0xff;
  auto integer = [&](int64_t value) { return b.Full(Shape(bits, x->dimensions()), value); };
  Value smallest = Like(b, wide, is_double ? std::ldexp(1.0, -1022) : std::ldexp(1.0, -126));
  Value is_denormal = b.Lt(b.Abs(wide), smallest);
  Value scale = Like(b, wide, std::ldexp(1.0, static_cast<int>(fraction_bits)));
  Value normal = b.Select(is_denormal, b.Multiply(wide, scale), wide);
  Value pattern = b.BitcastConvert(normal, bits);
  Value raw = b.And(b.Binary(Opcode::kShiftRightLogical, pattern, integer(fraction_bits)),
                    integer(exponent_mask));
  Value exponent = b.Subtract(raw, integer(bias));
  exponent = b.Select(is_denormal, b.Subtract(exponent, integer(fraction_bits)), exponent);
  Value kept = b.And(pattern, integer(~(exponent_mask << fraction_bits)));
  Value mantissa =
      b.BitcastConvert(b.Or(kept, integer(bias << fraction_bits)), wide->element_type());
  Value is_plain = b.And(b.Ne(raw, integer(exponent_mask)), b.Ne(wide, Like(b, wide, 0)));
  return {b.Convert(b.Select(is_plain, mantissa, wide), type),
          b.Convert(ZeroUnless(b, is_plain, exponent), ElementType::kS32)};
}

// log(x) / log(base): exponent and mantissa apart, so that powers of the base, too, have whole
// logarithms. The exponent's share is a product without rounding, and a small rest.
Value LogarithmTo(Builder& b, Value x, long double log_of_base) {
  if (IsComplexValue(x)) {  // by parts: an infinity divided by a complex number is a NaN
    Value log = b.Log(x), real = b.Real(log);
    Value divisor = Like(b, real, static_cast<double>(log_of_base));
    return b.Complex(b.Divide(real, divisor), b.Divide(b.Imag(log), divisor));
  }
  Value divisor = Like(b, x, static_cast<double>(log_of_base));
  auto [mantissa, whole] = MantissaAndExponent(b, x);
  Value exponent = b.Convert(whole, x->element_type());
  Value is_below = b.Lt(mantissa, Like(b, x, std::numbers::sqrt2 / 2));
  mantissa = b.Select(is_below, b.Add(mantissa, mantissa), mantissa);
  exponent = b.Select(is_below, b.Subtract(exponent, Like(b, x, 1)), exponent);
  long double unit = std::numbers::ln2_v<long double> / log_of_base;
  double scale = x->element_type() == ElementType::kF64 ? 0x1p40 : 0x1p12;
  double high = static_cast<double>(std::round(unit * scale)) / scale;
  double low = static_cast<double>(unit - high);
  Value rest = b.Add(b.Multiply(exponent, Like(b, x, low)), b.Divide(b.Log(mantissa), divisor));
  return b.Add(b.Multiply(exponent, Like(b, x, high)), rest);
}
Value Log2(Builder& b, Value x) { return LogarithmTo(b, x, std::numbers::ln2_v<long double>); }
Value Log10(Builder& b, Value x) { return LogarithmTo(b, x, std::numbers::ln10_v<long double>); }

// The order comes before the tensor.
Value PolygammaOf(Builder& b, Value x, int64_t n) { return Polygamma(b, n, x); }
at::Tensor PolygammaTensor(int64_t n, const at::Tensor& x) {
  TORCH_CHECK(n >= 0, "polygamma(n, x) does not support negative n.");
  return RecordElementwise<&PolygammaOf, Promotion::kToFloat>(x, n);
}

}  // namespace

Value Acos(Builder& b, Value x) {
  if (IsComplexValue(x)) return ComplexAcos(b, x);
  Value one = Like(b, x, 1);
  Value opposite = b.Sqrt(b.Multiply(b.Subtract(one, x), b.Add(one, x)));
  return b.Binary(Opcode::kAtan2, opposite, x);
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  constexpr Promotion kToFloat = Promotion::kToFloat;
  RegisterElementwise<&Magnitude, Promotion::kToReal>(m, "abs");
  RunSmallElementwiseBy<&Magnitude, Promotion::kToReal>(&small_loops::Magnitude);
  RegisterElementwise<&Angle, Promotion::kToReal>(m, "angle");
  RegisterElementwise<&Negative>(m, "neg");
  RunSmallElementwiseBy<&Negative>(&small_loops::Negate);
  RegisterElementwise<&Rounded<Opcode::kCeil>>(m, "ceil");
  RegisterElementwise<&Rounded<Opcode::kFloor>>(m, "floor");
  RegisterElementwise<&Rounded<Opcode::kRoundNearestEven>>(m, "round");
  RegisterElementwise<&RoundDecimals>(m, "round.decimals");
  RegisterElementwise<&Truncate>(m, "trunc");
  RegisterElementwise<&Fraction>(m, "frac");
  RegisterElementwise<&OfReal<&Sign>>(m, "sign");
  RegisterElementwise<&Sgn>(m, "sgn");
  RegisterElementwise<&BitwiseNot>(m, "bitwise_not");
  RunSmallElementwiseOfBoolsBy<&BitwiseNot>(&small_loops::Invert);
  RegisterElementwise<&NanToNum, Promotion::kNone>(m, "nan_to_num");
  RegisterElementwise<&Conjugate>(m, "_conj_physical");
  m.impl("conj_physical_", &ConjugateInPlace);

  RegisterElementwise<&Unary<Opcode::kExponential>, kToFloat>(m, "exp");
  RegisterElementwise<&Exp2, kToFloat>(m, "exp2");
  RegisterElementwise<&Unary<Opcode::kExponentialMinusOne>, kToFloat>(m, "expm1");
  RegisterElementwise<&Unary<Opcode::kLog>, kToFloat>(m, "log");
  RegisterElementwise<&Log2, kToFloat>(m, "log2");
  RegisterElementwise<&Log10, kToFloat>(m, "log10");
  RegisterElementwise<&Unary<Opcode::kLogPlusOne>, kToFloat>(m, "log1p");
  RegisterElementwise<&Unary<Opcode::kSqrt>, kToFloat>(m, "sqrt");
  RegisterElementwise<&Unary<Opcode::kRsqrt>, kToFloat>(m, "rsqrt");
  RegisterElementwise<&Reciprocal, kToFloat>(m, "reciprocal");
  RegisterElementwise<&Unary<Opcode::kSine>, kToFloat>(m, "sin");
  RegisterElementwise<&Unary<Opcode::kCosine>, kToFloat>(m, "cos");
  RegisterElementwise<&Unary<Opcode::kTan>, kToFloat>(m, "tan");
  RegisterElementwise<&Asin, kToFloat>(m, "asin");
  RegisterElementwise<&Acos, kToFloat>(m, "acos");
  RegisterElementwise<&Atan, kToFloat>(m, "atan");
  RegisterElementwise<&Sinh, kToFloat>(m, "sinh");
  RegisterElementwise<&Cosh, kToFloat>(m, "cosh");
  RegisterElementwise<&Unary<Opcode::kTanh>, kToFloat>(m, "tanh");
  RegisterElementwise<&Asinh, kToFloat>(m, "asinh");
  RegisterElementwise<&Acosh, kToFloat>(m, "acosh");
  RegisterElementwise<&Atanh, kToFloat>(m, "atanh");
  RegisterElementwise<&Unary<Opcode::kLogistic>, kToFloat>(m, "sigmoid");
  RegisterElementwise<&Sinc, kToFloat>(m, "sinc");
  RegisterElementwise<&Logit, kToFloat>(m, "logit");
  RegisterElementwise<&OfReal<&Erf>, kToFloat>(m, "erf");
  RegisterElementwise<&OfReal<&Erfc>, kToFloat>(m, "erfc");
  RegisterElementwise<&Erfcx, kToFloat>(m, "special_erfcx");
  RegisterElementwise<&ErfInv, kToFloat>(m, "erfinv");
  RegisterElementwise<&Lgamma, kToFloat>(m, "lgamma");
  RegisterElementwise<&Digamma, kToFloat>(m, "digamma");
  m.impl("polygamma", &PolygammaTensor);
  RunElementwiseBy<&PolygammaOf, Promotion::kToFloat>(
      +[](const at::Tensor& x, int64_t n) { return at::polygamma(n, x); });
  RegisterElementwise<&BesselI0, kToFloat>(m, "i0");
  RegisterElementwise<&BesselI0e, kToFloat>(m, "special_i0e");
  RegisterElementwise<&BesselI1, kToFloat>(m, "special_i1");
  RegisterElementwise<&BesselI1e, kToFloat>(m, "special_i1e");
  RegisterElementwise<&Ndtri, kToFloat>(m, "special_ndtri");
  RegisterElementwise<&Entropy, kToFloat>(m, "special_entr");
  RegisterElementwise<&LogitBackward>(m, "logit_backward");
  Register<&MantissaAndExponent>(m, "frexp.Tensor");
  RegisterElementwise<&SigmoidBackward>(m, "sigmoid_backward");
  RegisterElementwise<&TanhBackward>(m, "tanh_backward");
}

}  // namespace torch_xla
