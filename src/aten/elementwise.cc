// Arithmetic and transcendental functions of one element.
#include "aten/elementwise.h"

#include <ATen/native/BinaryOps.h>

#include <cmath>
#include <numbers>

#include "aten/constant.h"
#include "aten/limits.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/special.h"

namespace torch_xla {
namespace {

using std::numbers::ln2;

// Of a floating type's width, for its bits.
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

// Some functions have no meaning for some numbers: the others are refused, as in eager.
void RequireReal(Value x) {
  if (IsComplexValue(x)) throw hlo::Error("not implemented for complex numbers");
}
void RequireIntegers(Value x) {
  if (!IsIntegral(x) || IsPred(x)) throw hlo::Error("implemented for integers only");
}
void RequireFloats(Value x) {
  if (!IsFloatValue(x)) throw hlo::Error("implemented for floating-point numbers only");
}
template <auto f>
Value OfReal(Builder& b, Value x) {
  RequireReal(x);
  return f(b, x);
}
template <auto f>
Value OfReals(Builder& b, Value x, Value y) {
  RequireReal(x);
  return f(b, x, y);
}

// --- One operand

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

Value Magnitude(Builder& b, Value x) {
  return IsPred(x) || hlo::IsUnsignedInteger(x->element_type()) ? x : b.Abs(x);
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

Value Reciprocal(Builder& b, Value x) { return b.Divide(Like(b, x, 1), x); }
Value Exp2(Builder& b, Value x) { return b.Power(Like(b, x, 2), x); }

// The inverse functions of complex arguments, through logarithms.
Value ImaginaryUnit(Builder& b, Value x) {
  Shape real = x->shape().WithElementType(hlo::RealType(x->element_type()));
  return b.Complex(b.Zeros(real), b.Full(real, 1.0));
}

Value ComplexAsinh(Builder& b, Value z) {
  // asinh(-z) = -asinh(z): with a real part that is not negative nothing cancels.
  Value real = b.Real(z);
  Value is_negative = SignBit(b, real);
  Value folded = b.Select(is_negative, b.Negate(z), z);
  Value root = b.Sqrt(b.Add(b.Multiply(folded, folded), Like(b, z, 1)));
  Value result = b.Log(b.Add(folded, root));
  return b.Select(is_negative, b.Negate(result), result);
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
  if (IsComplexValue(x)) {  // asin(z) = -i asinh(iz)
    Value i = ImaginaryUnit(b, x);
    return b.Negate(b.Multiply(i, ComplexAsinh(b, b.Multiply(i, x))));
  }
  Value one = Like(b, x, 1);
  Value adjacent = b.Sqrt(b.Multiply(b.Subtract(one, x), b.Add(one, x)));
  return b.Binary(Opcode::kAtan2, x, adjacent);
}

Value Atanh(Builder& b, Value x) {
  Value sum =
      b.Subtract(b.Unary(Opcode::kLogPlusOne, x), b.Unary(Opcode::kLogPlusOne, b.Negate(x)));
  return b.Multiply(Like(b, x, 0.5), sum);
}

Value Atan(Builder& b, Value x) {
  if (IsComplexValue(x)) {  // atan(z) = -i atanh(iz)
    Value i = ImaginaryUnit(b, x);
    return b.Negate(b.Multiply(i, Atanh(b, b.Multiply(i, x))));
  }
  return b.Binary(Opcode::kAtan2, x, Like(b, x, 1));
}

Value Acosh(Builder& b, Value x) {
  Value one = Like(b, x, 1);
  if (IsComplexValue(x)) {
    Value root = b.Multiply(b.Sqrt(b.Add(x, one)), b.Sqrt(b.Subtract(x, one)));
    return b.Log(b.Add(x, root));
  }
  Value t = b.Subtract(x, one);
  // NaN below 1, where one root is.
  Value root = b.Multiply(b.Sqrt(t), b.Sqrt(b.Add(x, one)));
  Value near = b.Unary(Opcode::kLogPlusOne, b.Add(t, root));
  Value far = b.Add(b.Log(x), Like(b, x, ln2));
  return b.Select(b.Lt(x, Like(b, x, 1e9)), near, far);
}

// exp(x - ln 2), which overflows no earlier than the result does.
Value HalfExp(Builder& b, Value x) { return b.Exp(b.Subtract(x, Like(b, x, ln2))); }

Value Cosh(Builder& b, Value x) { return b.Add(HalfExp(b, x), HalfExp(b, b.Negate(x))); }

Value Sinh(Builder& b, Value x) {
  Value direct = b.Subtract(HalfExp(b, x), HalfExp(b, b.Negate(x)));
  if (IsComplexValue(x)) return direct;
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

Value Conjugate(Builder& b, Value x) {
  return IsComplexValue(x) ? b.Complex(b.Real(x), b.Negate(b.Imag(x))) : x;
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

// --- Two operands

template <Opcode opcode>
Value Binary(Builder& b, Value x, Value y) {
  return b.Binary(opcode, x, y);
}

Value Scaled(Builder& b, Value x, Value alpha) {
  return b.Multiply(x, b.BroadcastTo(alpha, x->dimensions()));
}

Value AddScaled(Builder& b, Value x, Value y, Scalar alpha) {
  return b.Add(x, Scaled(b, y, alpha));
}

Value Subtract(Builder& b, Value x, Value y) {
  if (IsPred(x)) {
    throw hlo::Error(
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
        "`logical_xor()` operator instead.");
  }
  return b.Subtract(x, y);
}

Value SubtractScaled(Builder& b, Value x, Value y, Scalar alpha) {
  return Subtract(b, x, Scaled(b, y, alpha));
}

Value TruncatedDivide(Builder& b, Value x, Value y) { return Truncate(b, b.Divide(x, y)); }

Value Fmod(Builder& b, Value x, Value y) {
  RequireReal(x);
  return b.Remainder(x, y);
}

Value ComplexPower(Builder& b, Value x, const Constant& exponent) {
  std::complex<double> z = std::get<std::complex<double>>(exponent);
  Shape real(hlo::RealType(x->element_type()), x->dimensions());
  return b.Power(x, b.Complex(b.Full(real, z.real()), b.Full(real, z.imag())));
}

// Small exponents as products and roots; anything else through power.
Value PowerConstant(Builder& b, Value x, Constant exponent) {
  if (std::holds_alternative<std::complex<double>>(exponent)) return ComplexPower(b, x, exponent);
  double e = NumberOf(exponent);
  if (IsIntegral(x) && e < 0) {
    throw hlo::Error("Integers to negative integer powers are not allowed.");
  }
  if (e == 0) return Like(b, x, 1);
  if (e == 1) return x;
  if (e == 2) return b.Multiply(x, x);
  if (e == 3) return b.Multiply(b.Multiply(x, x), x);
  if (e == 0.5) return b.Sqrt(x);
  if (e == -0.5) return b.Rsqrt(x);
  if (e == -1) return Reciprocal(b, x);
  if (e == -2) return Reciprocal(b, b.Multiply(x, x));
  return b.Power(x, Like(b, x, e));
}

Value CopySignFrom(Builder& b, Value x, Value y) {
  Value magnitude = b.Abs(x);
  return b.Select(SignBit(b, y), b.Negate(magnitude), magnitude);
}

Value Hypot(Builder& b, Value x, Value y) {
  Value ax = b.Abs(x), ay = b.Abs(y);
  Value large = b.Maximum(ax, ay), small = b.Minimum(ax, ay);
  Value ratio = b.Divide(small, large), one = Like(b, x, 1);
  Value result = b.Multiply(large, b.Sqrt(b.Add(one, b.Multiply(ratio, ratio))));
  result = b.Select(b.Eq(large, Like(b, x, 0)), large, result);
  // Infinite whatever the other is, even NaN.
  Value infinity = Like(b, x, kInfinity);
  return b.Select(b.Or(b.Eq(ax, infinity), b.Eq(ay, infinity)), infinity, result);
}

// The neighbouring number: the bit pattern, read as an integer, plus or minus one.
Value NextAfter(Builder& b, Value x, Value y) {
  RequireFloats(x);
  ElementType bits = SignedIntegerAsWide(x->element_type());
  Value ix = b.BitcastConvert(x, bits);
  Value zero = Like(b, x, 0), is_zero = b.Eq(x, zero);
  Value one = b.Full(ix->shape(), int64_t{1});
  Value away = b.Eq(b.Gt(y, x), b.Gt(x, zero));
  Value stepped =
      b.BitcastConvert(b.Select(away, b.Add(ix, one), b.Subtract(ix, one)), x->element_type());
  Value smallest = b.BitcastConvert(one, x->element_type());
  Value from_zero = b.Select(b.Gt(y, zero), smallest, b.Negate(smallest));
  Value result = b.Select(is_zero, from_zero, stepped);
  result = b.Select(b.Eq(x, y), y, result);
  return b.Select(b.Or(IsNan(b, x), IsNan(b, y)), Like(b, x, kNaN), result);
}

// In the operands' type itself: f32 has numbers between the neighbours of a narrower one.
at::Tensor NextAfterTensor(const at::Tensor& x, const at::Tensor& y) {
  at::ScalarType type = at::result_type(x, y);
  return RecordElementwise<&NextAfter, Promotion::kNone>(x.to(type), y.to(type));
}

Value Heaviside(Builder& b, Value x, Value at_zero) {
  if (x->element_type() != at_zero->element_type()) {
    throw hlo::Error("heaviside is not yet implemented for tensors with different dtypes.");
  }
  Value zero = Like(b, x, 0);
  Value step = b.Convert(b.Gt(x, zero), x->element_type());
  return b.Select(b.Eq(x, zero), at_zero, step);
}

// x times log_y, 0 where x is 0 and y is not NaN.
Value TimesLog(Builder& b, Value x, Value y, Value log_y) {
  Value zero = Like(b, x, 0);
  Value result = b.Select(b.Eq(x, zero), zero, b.Multiply(x, log_y));
  return b.Select(IsNan(b, y), Like(b, x, kNaN), result);
}
Value XLogY(Builder& b, Value x, Value y) { return TimesLog(b, x, y, b.Log(y)); }
Value XLog1pY(Builder& b, Value x, Value y) {
  return TimesLog(b, x, y, b.Unary(Opcode::kLogPlusOne, y));
}

Value LogAddExp2(Builder& b, Value x, Value y) {
  Value scale = Like(b, x, ln2);
  if (IsComplexValue(x)) {
    return b.Divide(LogAddExp(b, b.Multiply(x, scale), b.Multiply(y, scale)), scale);
  }
  Value difference = b.Multiply(b.Negate(b.Abs(b.Subtract(x, y))), scale);
  Value rest = b.Divide(b.Unary(Opcode::kLogPlusOne, b.Exp(difference)), scale);
  // Two equal infinities differ by NaN.
  return b.Select(b.Eq(x, y), b.Add(x, Like(b, x, 1)), b.Add(b.Maximum(x, y), rest));
}

// The number when the other is NaN.
template <Opcode opcode>
Value IgnoringNan(Builder& b, Value x, Value y) {
  Value result = b.Binary(opcode, x, y);
  if (!IsFloatValue(x)) return result;
  return b.Select(IsNan(b, x), y, b.Select(IsNan(b, y), x, result));
}

Value ShiftRight(Builder& b, Value x, Value y) {
  bool is_unsigned = hlo::IsUnsignedInteger(x->element_type());
  return b.Binary(is_unsigned ? Opcode::kShiftRightLogical : Opcode::kShiftRightArithmetic, x, y);
}

// Euclid's algorithm on all elements at once, until every remainder is zero.
Value Gcd(Builder& b, Value x, Value y) {
  RequireIntegers(x);
  const Shape& shape = x->shape();
  auto condition =
      b.Region("gcd.condition", {shape, shape}, [](Builder& r, const Values& p) -> Values {
        Value nonzero = r.Ne(p[1], r.Zeros(p[1]->shape()));
        Dimensions all(p[1]->shape().rank());
        for (size_t i = 0; i < all.size(); ++i) all[i] = i;
        return {r.Reduce(Opcode::kOr, nonzero, all)};
      });
  auto body = b.Region("gcd.body", {shape, shape}, [](Builder& r, const Values& p) -> Values {
    Value is_done = r.Eq(p[1], r.Zeros(p[1]->shape()));
    Value remainder = r.Remainder(p[0], p[1]);
    return {r.Select(is_done, p[0], p[1]), r.Select(is_done, p[1], remainder)};
  });
  return b.GetTupleElement(b.While({Magnitude(b, x), Magnitude(b, y)}, condition, body), 0);
}

Value Lcm(Builder& b, Value x, Value y) {
  RequireIntegers(x);
  ElementType type = x->element_type();
  if (hlo::BitWidth(type) < 32) {  // as C computes: what is too large wraps around after all
    x = b.Convert(x, ElementType::kS32), y = b.Convert(y, ElementType::kS32);
  }
  Value gcd = Gcd(b, x, y), zero = b.Zeros(x->shape());
  Value is_zero = b.Eq(gcd, zero);
  Value divisor = b.Select(is_zero, b.Full(x->shape(), int64_t{1}), gcd);
  Value result = Magnitude(b, b.Multiply(b.Divide(x, divisor), y));
  return b.Convert(b.Select(is_zero, zero, result), type);
}

// --- Three operands

// Whichever end is nearer is the starting point, so that weight 0 and 1 give the ends exactly.
Value LerpFrom(Builder& b, Value x, Value y, Value weight) {
  Value difference = b.Subtract(y, x);
  Value full = b.BroadcastTo(weight, x->dimensions());
  Value from_x = b.Add(x, b.Multiply(full, difference));
  Value from_y = b.Subtract(y, b.Multiply(difference, b.Subtract(Like(b, x, 1), full)));
  Value magnitude = IsComplexValue(weight) ? b.Abs(weight) : b.Abs(weight);
  return b.Select(b.Lt(magnitude, Like(b, magnitude, 0.5)), from_x, from_y);
}
Value LerpScalar(Builder& b, Value x, Value y, Scalar weight) { return LerpFrom(b, x, y, weight); }
Value LerpTensor(Builder& b, Value x, Value y, Value weight) { return LerpFrom(b, x, y, weight); }

Value AddProduct(Builder& b, Value x, Value y, Value z, Scalar value) {
  return b.Add(x, Scaled(b, b.Multiply(y, z), value));
}
Value AddQuotient(Builder& b, Value x, Value y, Value z, Scalar value) {
  return b.Add(x, Scaled(b, b.Divide(y, z), value));
}

Value Clamp(Builder& b, Value x, std::optional<Value> low, std::optional<Value> high) {
  if (hlo::IsComplex(x->element_type())) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented, "clamp is not supported for complex types");
  }
  if (!low && !high) {
    throw hlo::Error("torch.clamp: At least one of 'min' or 'max' must not be None");
  }
  if (low) x = b.Maximum(x, *low);
  if (high) x = b.Minimum(x, *high);
  return x;
}

using Limit = std::optional<at::Scalar>;

// The limits promote as numbers do: an integer clamped to 2.5 is a float.
at::Tensor ClampByNumbers(const at::Tensor& self, const Limit& low, const Limit& high) {
  return RecordElementwise<&Clamp, Promotion::kDefault>(self, low, high);
}
at::Tensor& ClampByNumbersInto(at::Tensor& self, const Limit& low, const Limit& high) {
  return RecordElementwiseInto<&Clamp, Promotion::kDefault>(self, self, low, high);
}

// --- Kernels that choose a lowering by an argument's value

constexpr Promotion kDefault = Promotion::kDefault;
constexpr Promotion kToFloat = Promotion::kToFloat;

// Eager rounds the factor of a sum to the result's type.
at::Scalar RoundedFactor(const at::Scalar& alpha, const at::Tensor& x, const at::Tensor& y) {
  at::ScalarType type = at::result_type(x, y);
  at::native::alpha_check(type, alpha);
  if (alpha.isComplex()) return alpha;
  if (type == at::kHalf) return static_cast<double>(alpha.to<at::Half>());
  if (type == at::kBFloat16) return static_cast<double>(alpha.to<at::BFloat16>());
  return alpha;
}

at::Tensor Add(const at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
  if (alpha.equal(1)) return RecordElementwise<&Binary<Opcode::kAdd>, kDefault>(x, y);
  return RecordElementwise<&AddScaled, kDefault>(x, y, RoundedFactor(alpha, x, y));
}
at::Tensor& AddInPlace(at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
  if (alpha.equal(1)) return RecordElementwiseInto<&Binary<Opcode::kAdd>, kDefault>(x, x, y);
  return RecordElementwiseInto<&AddScaled, kDefault>(x, x, y, RoundedFactor(alpha, x, y));
}
at::Tensor Sub(const at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
  at::native::sub_check(x, y);
  if (alpha.equal(1)) return RecordElementwise<&Subtract, kDefault>(x, y);
  return RecordElementwise<&SubtractScaled, kDefault>(x, y, RoundedFactor(alpha, x, y));
}
at::Tensor& SubInPlace(at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
  at::native::sub_check(x, y);
  if (alpha.equal(1)) return RecordElementwiseInto<&Subtract, kDefault>(x, x, y);
  return RecordElementwiseInto<&SubtractScaled, kDefault>(x, x, y, RoundedFactor(alpha, x, y));
}
at::Tensor ReverseSub(const at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
  return Sub(y, x, alpha);
}

// Eager multiplies and divides 16-bit floats by a single element of another type in f32: that is
// not rounded to 16 bits first, as other operands are.
bool IsFactor(const at::Tensor& x, const at::Tensor& y) {
  at::ScalarType type = x.scalar_type();
  return at::isReducedFloatingType(type) && y.scalar_type() != type && y.numel() == 1 &&
         at::result_type(x, y) == type;
}
template <auto f>
Value ByFactor(Builder& b, Value x, Value y) {
  Value wide = ToAccumulation(b, x);
  return b.Convert(f(b, wide, b.Convert(y, wide->element_type())), x->element_type());
}
template <auto f, Promotion promotion>
struct ScalingKernel {
  static at::Tensor Call(const at::Tensor& x, const at::Tensor& y) {
    if (IsFactor(x, y)) return RecordElementwise<&ByFactor<f>, Promotion::kNone>(x, y);
    return RecordElementwise<f, promotion>(x, y);
  }
  static at::Tensor& CallInPlace(at::Tensor& x, const at::Tensor& y) {
    if (IsFactor(x, y)) return RecordElementwiseInto<&ByFactor<f>, Promotion::kNone>(x, x, y);
    return RecordElementwiseInto<f, promotion>(x, x, y);
  }
};
using Product = ScalingKernel<&Binary<Opcode::kMultiply>, kDefault>;
using Quotient = ScalingKernel<&Binary<Opcode::kDivide>, kToFloat>;
using FlooredQuotient = ScalingKernel<&FloorDivide, kDefault>;
using TruncatedQuotient = ScalingKernel<&TruncatedDivide, kDefault>;

using RoundingMode = std::optional<std::string_view>;

void CheckRoundingMode(const RoundingMode& mode) {
  TORCH_CHECK(!mode || *mode == "trunc" || *mode == "floor",
              "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '",
              mode.value_or(""), "'");
}

at::Tensor DivMode(const at::Tensor& x, const at::Tensor& y, RoundingMode mode) {
  CheckRoundingMode(mode);
  if (!mode) return Quotient::Call(x, y);
  return *mode == "floor" ? FlooredQuotient::Call(x, y) : TruncatedQuotient::Call(x, y);
}
at::Tensor& DivModeInPlace(at::Tensor& x, const at::Tensor& y, RoundingMode mode) {
  CheckRoundingMode(mode);
  if (!mode) return Quotient::CallInPlace(x, y);
  return *mode == "floor" ? FlooredQuotient::CallInPlace(x, y)
                          : TruncatedQuotient::CallInPlace(x, y);
}

// The exponent is part of the graph: a square must not become a general power.
at::Tensor PowScalar(const at::Tensor& x, const at::Scalar& exponent) {
  at::ScalarType type = at::result_type(x, exponent);
  return Record<&PowerConstant>(x.scalar_type() == type ? x : x.to(type), exponent);
}

at::Tensor RemainderOfNumber(const at::Scalar& x, const at::Tensor& y) {
  return RecordElementwise<&FloorRemainder, kDefault>(x, y);
}
at::Tensor PowOfScalar(const at::Scalar& base, const at::Tensor& exponent) {
  return RecordElementwise<&Binary<Opcode::kPower>, kDefault>(base, exponent);
}

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
  return RecordElementwise<&PolygammaOf, kToFloat>(x, n);
}

}  // namespace

Value Acos(Builder& b, Value x) {
  Value one = Like(b, x, 1);
  if (IsComplexValue(x)) return b.Subtract(Like(b, x, std::numbers::pi / 2), Asin(b, x));
  Value opposite = b.Sqrt(b.Multiply(b.Subtract(one, x), b.Add(one, x)));
  return b.Binary(Opcode::kAtan2, opposite, x);
}

Value SignBit(Builder& b, Value x) {
  if (IsPred(x)) return b.Full(x->shape(), int64_t{0});
  if (IsFloatValue(x)) x = b.BitcastConvert(x, SignedIntegerAsWide(x->element_type()));
  return b.Lt(x, b.Zeros(x->shape()));
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
    Value inexact = b.Ne(b.Remainder(x, y), zero);
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
  return b.Select(b.Eq(x, y), b.Add(x, Like(b, x, ln2)), sum);
}

template <auto f, Promotion promotion = Promotion::kDefault>
void NameRecorded(const char* name) {
  using Lowering = recording::ElementwiseOf<f, promotion>;
  recording::NameKind(lazy::Op<&Lowering::Lower>::kind(), name);
}

// torch's kernels wrap floats that an integer type does not hold; the lowering has its nearest one.
// Throws for those and NaN.
void CheckInRange(const at::Tensor& x, at::ScalarType type) {
  if (x.numel() == 0) return;
  const int bits = static_cast<int>(8 * c10::elementSize(type));
  const bool is_unsigned = !c10::isSignedType(type);
  const double low = is_unsigned ? 0 : -std::ldexp(1.0, bits - 1);
  const double high = std::ldexp(1.0, is_unsigned ? bits : bits - 1);
  const auto [least, largest] = at::aminmax(x);  // NaN if there is one
  TORCH_CHECK(least.item<double>() >= low && largest.item<double>() < high,
              "numbers that the integer type does not hold");
}

template <auto f, Promotion promotion = Promotion::kDefault>
void RegisterScaling(torch::Library& m, const char* name) {
  NameRecorded<f, promotion>(name);
  NameRecorded<&ByFactor<f>, Promotion::kNone>(name);
  using K = ScalingKernel<f, promotion>;
  recording::RunElementwiseByOperator<f, promotion>(name, &K::Call);
  recording::RunElementwiseByOperator<&ByFactor<f>, Promotion::kNone>(name, &K::Call);
  recording::RegisterWithInPlace(m, name, &K::Call, &K::CallInPlace);
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RegisterElementwise<&Magnitude, Promotion::kToReal>(m, "abs");
  RegisterElementwise<&Angle, Promotion::kToReal>(m, "angle");
  RegisterElementwise<&Negative>(m, "neg");
  RegisterElementwise<&Rounded<Opcode::kCeil>>(m, "ceil");
  RegisterElementwise<&Rounded<Opcode::kFloor>>(m, "floor");
  RegisterElementwise<&Rounded<Opcode::kRoundNearestEven>>(m, "round");
  RegisterElementwise<&RoundDecimals>(m, "round.decimals");
  RegisterElementwise<&Truncate>(m, "trunc");
  RegisterElementwise<&Fraction>(m, "frac");
  RegisterElementwise<&OfReal<&Sign>>(m, "sign");
  RegisterElementwise<&Sgn>(m, "sgn");
  RegisterElementwise<&BitwiseNot>(m, "bitwise_not");
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
  RegisterElementwise<&OfReals<&Zeta>, kToFloat>(m, "special_zeta");
  RegisterElementwise<&Lgamma, kToFloat>(m, "lgamma");
  RegisterElementwise<&Digamma, kToFloat>(m, "digamma");
  m.impl("polygamma", &PolygammaTensor);
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

  // Recorded by hand, so named by hand.
  NameRecorded<&Binary<Opcode::kAdd>>("add");
  NameRecorded<&AddScaled>("add");
  NameRecorded<&Subtract>("sub");
  NameRecorded<&SubtractScaled>("sub");
  RunElementwiseBy<&Binary<Opcode::kAdd>, kDefault>(
      +[](const at::Tensor& x, const at::Tensor& y) { return at::add(x, y); });
  RunElementwiseBy<&AddScaled, kDefault>(
      +[](const at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
        return at::add(x, y, alpha);
      });
  RunElementwiseBy<&Subtract, kDefault>(
      +[](const at::Tensor& x, const at::Tensor& y) { return at::sub(x, y); });
  RunElementwiseBy<&SubtractScaled, kDefault>(
      +[](const at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
        return at::sub(x, y, alpha);
      });
  RunElementwiseBy<&TruncatedDivide, kDefault>(+[](const at::Tensor& x, const at::Tensor& y) {
    // torch's kernel leaves the least integer by -1 to the processor, which traps.
    const bool may_trap = at::isIntegralType(at::result_type(x, y), /*includeBool=*/true);
    TORCH_CHECK(!may_trap || !at::eq(y, -1).any().item<bool>(), "a divisor of -1");
    return at::div(x, y, "trunc");
  });
  RunBy<&PowerConstant>(
      +[](const at::Tensor& x, const at::Scalar& exponent) { return at::pow(x, exponent); });
  RunBy<&Cast>(+[](const at::Tensor& x, at::ScalarType type) {
    // Without the warning that torch gives where the user converts.
    at::Tensor real = x.is_complex() && !at::isComplexType(type) ? at::real(x) : x;
    if (at::isFloatingType(real.scalar_type()) && at::isIntegralType(type, false)) {
      CheckInRange(real, type);
    }
    return real.to(type);
  });
  m.impl("add.Tensor", &Add);
  m.impl("add_.Tensor", &AddInPlace);
  m.impl("sub.Tensor", &Sub);
  m.impl("sub_.Tensor", &SubInPlace);
  m.impl("rsub.Tensor", &ReverseSub);
  RegisterScaling<&Binary<Opcode::kMultiply>>(m, "mul.Tensor");
  RegisterScaling<&Binary<Opcode::kDivide>, kToFloat>(m, "div.Tensor");
  m.impl("div.Tensor_mode", &DivMode);
  m.impl("div_.Tensor_mode", &DivModeInPlace);
  RegisterScaling<&FloorDivide>(m, "floor_divide");
  RegisterElementwise<&FloorRemainder>(m, "remainder.Tensor");
  RegisterElementwiseScalar<&FloorRemainder>(m, "remainder.Scalar");
  m.impl("remainder.Scalar_Tensor", &RemainderOfNumber);
  RegisterElementwise<&Fmod>(m, "fmod.Tensor");
  RegisterElementwiseScalar<&Fmod>(m, "fmod.Scalar");
  RegisterElementwise<&Binary<Opcode::kPower>>(m, "pow.Tensor_Tensor");
  m.impl("pow.Tensor_Scalar", &PowScalar);
  m.impl("pow.Scalar", &PowOfScalar);
  RegisterElementwise<&OfReals<&Binary<Opcode::kAtan2>>, kToFloat>(m, "atan2");
  RegisterElementwise<&Hypot>(m, "hypot");
  RegisterElementwise<&CopySignFrom, kToFloat>(m, "copysign.Tensor");
  m.impl("nextafter", &NextAfterTensor);
  RegisterElementwise<&Heaviside, Promotion::kNone>(m, "heaviside");
  RegisterElementwise<&OfReals<&XLogY>, kToFloat>(m, "xlogy.Tensor");
  RegisterElementwise<&OfReals<&XLog1pY>, kToFloat>(m, "special_xlog1py");
  RegisterElementwise<&LogAddExp, kToFloat>(m, "logaddexp");
  RegisterElementwise<&LogAddExp2, kToFloat>(m, "logaddexp2");
  RegisterElementwise<&Gcd>(m, "gcd");
  RegisterElementwise<&Lcm>(m, "lcm");
  RegisterElementwise<&OfReals<&Binary<Opcode::kMaximum>>>(m, "maximum");
  RegisterElementwise<&OfReals<&Binary<Opcode::kMinimum>>>(m, "minimum");
  RegisterElementwise<&OfReals<&IgnoringNan<Opcode::kMaximum>>>(m, "fmax");
  RegisterElementwise<&OfReals<&IgnoringNan<Opcode::kMinimum>>>(m, "fmin");
  RegisterElementwise<&Binary<Opcode::kAnd>>(m, "bitwise_and.Tensor");
  RegisterElementwise<&Binary<Opcode::kOr>>(m, "bitwise_or.Tensor");
  RegisterElementwise<&Binary<Opcode::kXor>>(m, "bitwise_xor.Tensor");
  RegisterElementwise<&Binary<Opcode::kShiftLeft>>(m, "bitwise_left_shift.Tensor");
  RegisterElementwise<&ShiftRight>(m, "bitwise_right_shift.Tensor");
  RegisterElementwise<&Binary<Opcode::kShiftLeft>>(m, "__lshift__.Tensor");
  RegisterElementwise<&ShiftRight>(m, "__rshift__.Tensor");
  RegisterElementwiseScalar<&Binary<Opcode::kShiftLeft>>(m, "__lshift__.Scalar");
  RegisterElementwiseScalar<&ShiftRight>(m, "__rshift__.Scalar");

  RegisterElementwise<&LerpScalar>(m, "lerp.Scalar");
  RegisterElementwise<&LerpTensor>(m, "lerp.Tensor");
  RegisterElementwise<&AddProduct>(m, "addcmul");
  RegisterElementwise<&AddQuotient>(m, "addcdiv");
  m.impl("clamp", &ClampByNumbers);
  m.impl("clamp_", &ClampByNumbersInto);
  RegisterElementwise<&Clamp>(m, "clamp.Tensor");
  RegisterElementwiseScalar<&OfReals<&Binary<Opcode::kMaximum>>>(m, "clamp_min");
  RegisterElementwiseScalar<&OfReals<&Binary<Opcode::kMinimum>>>(m, "clamp_max");
  RegisterElementwise<&OfReals<&Binary<Opcode::kMaximum>>>(m, "clamp_min.Tensor");
  RegisterElementwise<&OfReals<&Binary<Opcode::kMinimum>>>(m, "clamp_max.Tensor");
}

}  // namespace torch_xla
