// Arithmetic of two and three elements.
#include <ATen/native/BinaryOps.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/addcdiv.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <numbers>
#include <sstream>
#include <variant>

#include "aten/constant.h"
#include "aten/elementwise.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/refuse.h"
#include "aten/small_forms.h"
#include "aten/special.h"
#include "aten/twin.h"
#include "lazy/shown_constants.h"

namespace torch_xla {
namespace {

using std::numbers::ln2;

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
Value LerpScalar(Builder& b, Value x, Value y, ComputedScalar weight) {
  return LerpFrom(b, x, y, weight);
}
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

// Of one side. Torch's kernels for numbers take no truth values, those for tensors, which are
// maximum and minimum, no complex numbers.
template <bool is_low, bool by_number>
Value ClampSide(Builder& b, Value x, Value limit) {
  if (by_number && IsPred(x)) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented, "clamp is not supported for truth values");
  }
  return is_low ? Clamp(b, x, limit, std::nullopt) : Clamp(b, x, std::nullopt, limit);
}

at::Tensor ClampByTensors(const at::Tensor& self, const std::optional<at::Tensor>& low,
                          const std::optional<at::Tensor>& high) {
  if (low && !high) return at::clamp_min(self, *low);
  if (high && !low) return at::clamp_max(self, *high);
  return RecordElementwise<&Clamp, Promotion::kDefault>(self, low, high);
}
at::Tensor& ClampByTensorsInto(at::Tensor& self, const std::optional<at::Tensor>& low,
                               const std::optional<at::Tensor>& high) {
  if (low && !high) return self.clamp_min_(*low);
  if (high && !low) return self.clamp_max_(*high);
  return RecordElementwiseInto<&Clamp, Promotion::kDefault>(self, self, low, high);
}
at::Tensor RunClamp(const at::Tensor& x, const std::optional<at::Tensor>& low,
                    const std::optional<at::Tensor>& high) {
  return at::clamp(x, low, high);
}

using Limit = std::optional<at::Scalar>;

// Eager refuses a limit that the result's type cannot hold.
void CheckLimit(const at::Tensor& self, const Limit& limit) {
  if (!limit || limit->isComplex()) return;
  const at::ScalarType own = self.scalar_type();
  const at::ScalarType type = at::isFloatingType(own) ? own : at::result_type(self, *limit);
  if (!at::isComplexType(type)) recording::CheckFits({*limit, ToElementType(type)});
}

template <bool is_low>
struct ClampToNumber {
  static constexpr auto kSide = &ClampSide<is_low, true>;
  static at::Tensor Call(const at::Tensor& self, const at::Scalar& limit) {
    CheckLimit(self, limit);
    return RecordElementwise<kSide, Promotion::kDefault>(self, limit);
  }
  static at::Tensor& CallInPlace(at::Tensor& self, const at::Scalar& limit) {
    CheckLimit(self, limit);
    return RecordElementwiseInto<kSide, Promotion::kDefault>(self, self, limit);
  }
};

// In eager's words.
void RefuseQuotientsOfIntegers(const at::Tensor& x, const at::Tensor& y, const at::Tensor& z) {
  const auto is_integral = [](const at::Tensor& t) {
    return at::isIntegralType(t.scalar_type(), /*includeBool=*/true);
  };
  if (!is_integral(y) || !is_integral(z)) return;
  const auto zero = [](const at::Tensor& t) {
    return at::zeros({}, at::TensorOptions().dtype(t.scalar_type()));
  };
  at::addcdiv(zero(x), zero(y), zero(z));
}

// As an operand of what is computed in `type`, which may be wider than the first tensor's.
Number FactorIn(ElementType type, const at::Scalar& factor) {
  return {factor, recording::NumberType(factor, type)};
}

// The sum with a product or quotient whose factor is read in the type that eager computes in.
template <auto f>
struct SumWithFactor {
  static Number Factor(const at::Tensor& x, const at::Tensor& y, const at::Tensor& z,
                       const at::Scalar& factor) {
    if constexpr (f == &AddQuotient) RefuseQuotientsOfIntegers(x, y, z);
    at::native::ResultTypeState state = {};
    for (const at::Tensor* tensor : {&x, &y, &z}) {
      state = at::native::update_result_type_state(*tensor, state);
    }
    const ElementType type = ToElementType(at::native::result_type(state));
    recording::CheckFits({factor, recording::ComputedType(type)});
    return FactorIn(type, factor);
  }
  static at::Tensor Call(const at::Tensor& x, const at::Tensor& y, const at::Tensor& z,
                         const at::Scalar& factor) {
    return RecordElementwise<f, Promotion::kDefault>(x, y, z, Factor(x, y, z, factor));
  }
  static at::Tensor& CallInPlace(at::Tensor& x, const at::Tensor& y, const at::Tensor& z,
                                 const at::Scalar& factor) {
    return RecordElementwiseInto<f, Promotion::kDefault>(x, x, y, z, Factor(x, y, z, factor));
  }
};

// The limits promote as numbers do: an integer clamped to 2.5 is a float.
at::Tensor ClampByNumbers(const at::Tensor& self, const Limit& low, const Limit& high) {
  CheckLimit(self, low);
  CheckLimit(self, high);
  return RecordElementwise<&Clamp, Promotion::kDefault>(self, low, high);
}
at::Tensor& ClampByNumbersInto(at::Tensor& self, const Limit& low, const Limit& high) {
  CheckLimit(self, low);
  CheckLimit(self, high);
  return RecordElementwiseInto<&Clamp, Promotion::kDefault>(self, self, low, high);
}

// --- Kernels that choose a lowering by an argument's value

constexpr Promotion kDefault = Promotion::kDefault;
constexpr Promotion kToFloat = Promotion::kToFloat;

// Eager rounds the factor of a sum to the result's type: of a difference, which it adds, the
// negative of the factor.
enum class Adds { kProduct, kNegativeProduct };
Number RoundedFactor(Adds adds, const at::Scalar& alpha, const at::Tensor& x, const at::Tensor& y) {
  at::ScalarType type = at::result_type(x, y);
  at::native::alpha_check(type, alpha);
  const ElementType element_type = ToElementType(type);
  recording::CheckFits({adds == Adds::kProduct ? alpha : -alpha, element_type});
  at::Scalar factor = alpha;
  if (type == at::kHalf) factor = static_cast<double>(alpha.to<at::Half>());
  if (type == at::kBFloat16) factor = static_cast<double>(alpha.to<at::BFloat16>());
  return FactorIn(element_type, factor);
}

at::Tensor Add(const at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
  if (alpha.equal(1)) return RecordElementwise<&Binary<Opcode::kAdd>, kDefault>(x, y);
  return RecordElementwise<&AddScaled, kDefault>(x, y, RoundedFactor(Adds::kProduct, alpha, x, y));
}
at::Tensor& AddInPlace(at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
  if (alpha.equal(1)) return RecordElementwiseInto<&Binary<Opcode::kAdd>, kDefault>(x, x, y);
  return RecordElementwiseInto<&AddScaled, kDefault>(x, x, y,
                                                     RoundedFactor(Adds::kProduct, alpha, x, y));
}
at::Tensor Sub(const at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
  at::native::sub_check(x, y);
  if (alpha.equal(1)) return RecordElementwise<&Subtract, kDefault>(x, y);
  return RecordElementwise<&SubtractScaled, kDefault>(
      x, y, RoundedFactor(Adds::kNegativeProduct, alpha, x, y));
}
at::Tensor& SubInPlace(at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
  at::native::sub_check(x, y);
  if (alpha.equal(1)) return RecordElementwiseInto<&Subtract, kDefault>(x, x, y);
  return RecordElementwiseInto<&SubtractScaled, kDefault>(
      x, x, y, RoundedFactor(Adds::kNegativeProduct, alpha, x, y));
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
  if (!mode || *mode == "trunc" || *mode == "floor") return;
  Refuse(c10::str("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '",
                  *mode, "'"),
         "div(): invalid rounding mode `", *mode,
         "`. Expected it to be either 'trunc', 'floor', or be left unspecified.");
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

lazy::ShownConstant ShownExponent(const lazy::Operation& operation) {
  using Family = lazy::OperationFamily<decltype(&PowerConstant)>;
  const auto& [exponent] = Family::AttributesOf(operation);
  const auto text = []<typename N>(const N& number) {
    std::ostringstream out;
    out << std::boolalpha << number;
    return lazy::ShownConstant{hlo::kElementTypeOf<N>, out.str()};
  };
  return std::visit(text, exponent);
}

// The exponent is part of the graph: a square must not become a general power.
at::Tensor PowScalar(const at::Tensor& x, const at::Scalar& exponent) {
  at::ScalarType type = at::result_type(x, exponent);
  if (at::isIntegralType(type, /*includeBool=*/false) || at::isReducedFloatingType(type)) {
    recording::CheckFits({exponent, ToElementType(type)});
  }
  return Record<&PowerConstant>(x.scalar_type() == type ? x : x.to(type), exponent);
}

at::Tensor RemainderOfNumber(const at::Scalar& x, const at::Tensor& y) {
  return RecordElementwise<&FloorRemainder, kDefault>(x, y);
}
at::Tensor PowOfScalar(const at::Scalar& base, const at::Tensor& exponent) {
  return RecordElementwise<&Binary<Opcode::kPower>, kDefault>(base, exponent);
}

}  // namespace

template <auto f, Promotion promotion = Promotion::kDefault>
void NameRecorded(const char* name) {
  using Lowering = recording::ElementwiseOf<f, promotion>;
  recording::NameKind(lazy::Op<&Lowering::Lower>::kind(), name);
}

// A kernel by hand of an element-wise lowering, and its form in place.
template <auto f, typename Kernel>
void RegisterKernel(torch::Library& m, const char* name) {
  NameRecorded<f>(name);
  recording::RunElementwiseByOperator<f, Promotion::kDefault>(name, &Kernel::Call);
  recording::RegisterWithInPlace(m, name, &Kernel::Call, &Kernel::CallInPlace);
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
  lazy::ShowConstant(lazy::Op<&PowerConstant>::kind(), &ShownExponent);
  RunBy<&PowerConstant>(
      +[](const at::Tensor& x, const at::Scalar& exponent) { return at::pow(x, exponent); });
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
  RunElementwiseBy<&NextAfter, Promotion::kNone>(
      +[](const at::Tensor& x, const at::Tensor& y) { return at::nextafter(x, y); });
  RegisterElementwise<&Heaviside, Promotion::kNone>(m, "heaviside");
  RegisterElementwise<&OfReals<&XLogY>, kToFloat>(m, "xlogy.Tensor");
  RegisterElementwise<&OfReals<&XLog1pY>, kToFloat>(m, "special_xlog1py");
  RegisterElementwise<&OfReals<&Zeta>, kToFloat>(m, "special_zeta");
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
  using LeftShift = Twin<0, &Binary<Opcode::kShiftLeft>>;
  using RightShift = Twin<0, &ShiftRight>;
  RegisterElementwise<&LeftShift::Lower>(m, "__lshift__.Tensor");
  RegisterElementwise<&RightShift::Lower>(m, "__rshift__.Tensor");
  RegisterElementwiseScalar<&LeftShift::Lower>(m, "__lshift__.Scalar");
  RegisterElementwiseScalar<&RightShift::Lower>(m, "__rshift__.Scalar");

  RegisterElementwise<&LerpScalar>(m, "lerp.Scalar");
  RegisterElementwise<&LerpTensor>(m, "lerp.Tensor");
  RegisterKernel<&AddProduct, SumWithFactor<&AddProduct>>(m, "addcmul");
  RegisterKernel<&AddQuotient, SumWithFactor<&AddQuotient>>(m, "addcdiv");
  m.impl("clamp", &ClampByNumbers);
  m.impl("clamp_", &ClampByNumbersInto);
  RunElementwiseBy<&Clamp, kDefault>(&RunClamp);
  recording::NameKind(recording::ElementwiseFamily<&Clamp, kDefault>().kind(), "clamp");
  m.impl("clamp.Tensor", &ClampByTensors);
  m.impl("clamp_.Tensor", &ClampByTensorsInto);
  RegisterKernel<&ClampSide<true, true>, ClampToNumber<true>>(m, "clamp_min");
  RegisterKernel<&ClampSide<false, true>, ClampToNumber<false>>(m, "clamp_max");
  RegisterElementwise<&ClampSide<true, false>>(m, "clamp_min.Tensor");
  RegisterElementwise<&ClampSide<false, false>>(m, "clamp_max.Tensor");

  RunSmallElementwiseOfBoolsBy<&Binary<Opcode::kAnd>>(&small_loops::Both);
  RunSmallElementwiseOfBoolsBy<&Binary<Opcode::kOr>>(&small_loops::Either);
  RunSmallElementwiseBy<&Binary<Opcode::kAdd>>(&small_loops::Add);
  RunSmallElementwiseBy<&Subtract>(&small_loops::Subtract);
  RunSmallElementwiseBy<&Binary<Opcode::kMultiply>>(&small_loops::Multiply);
  RunSmallElementwiseBy<&Binary<Opcode::kDivide>, kToFloat>(&small_loops::Divide);
  RunSmallElementwiseBy<&ClampSide<true, true>>(&small_loops::Larger);
}

}  // namespace torch_xla
