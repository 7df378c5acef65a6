#include "aten/draws.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "aten/limits.h"
#include "aten/promotion.h"
#include "aten/special.h"
#include "hlo/error.h"
#include "hlo/number_conversion.h"

namespace torch_xla {
namespace {

bool IsWide(Value bits) { return bits->element_type() == ElementType::kU64; }
ElementType SignedLike(Value bits) { return IsWide(bits) ? ElementType::kS64 : ElementType::kS32; }
ElementType FloatLike(Value bits) { return IsWide(bits) ? ElementType::kF64 : ElementType::kF32; }

// Digits of the fraction, with the one that is not stored.
int Precision(ElementType type) {
  switch (type) {
    case ElementType::kBF16:
      return 8;
    case ElementType::kF16:
      return 11;
    case ElementType::kF32:
      return 24;
    default:
      return 53;
  }
}

// Of floats, the smallest normal one, as engines may flush those below it to zero; f16 has so few
// numbers that its subnormal ones count.
double SmallestPositive(ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return 0x1p-24;
    case ElementType::kF64:
      return 0x1p-1022;
    default:
      return hlo::IsFloat(type) ? 0x1p-126 : 1;
  }
}

double Rounded(ElementType type, double x) {
  switch (type) {
    case ElementType::kF16:
      return static_cast<float>(hlo::ConvertNumber<hlo::Float16>(x));
    case ElementType::kBF16:
      return static_cast<float>(hlo::ConvertNumber<hlo::BFloat16>(x));
    case ElementType::kF32:
      return static_cast<float>(x);
    default:
      return x;
  }
}

// The largest number of `type` below x, which is one of its numbers.
double Below(ElementType type, double x) {
  if (x == 0) return -SmallestPositive(type);
  int exponent;
  bool is_power = std::frexp(x, &exponent) == 0.5;  // then the step below is half of that above
  int lowest = type == ElementType::kF16 ? -13 : type == ElementType::kF64 ? -1021 : -125;
  return x - std::ldexp(1.0, std::max(exponent - is_power, lowest) - Precision(type));
}

}  // namespace

Interval IntervalOf(ElementType type, double from, double to) {
  from = Rounded(type, from), to = Rounded(type, to);
  ElementType computed = AccumulationType(type);
  return {from, Rounded(computed, to - from), from < to ? std::max(from, Below(type, to)) : from};
}

Value RandomBits(Builder& b, Value state, const Dimensions& dimensions, ElementType word) {
  Value drawn = b.RngBitGenerator(state, hlo::RngAlgorithm::kPhilox, Shape(word, dimensions));
  return b.GetTupleElement(drawn, 1);
}

Value BitsFor(Builder& b, Value state, const Dimensions& dimensions, ElementType type) {
  bool is_wide = type == ElementType::kF64;
  return RandomBits(b, state, dimensions, is_wide ? ElementType::kU64 : ElementType::kU32);
}

Value UnitUniform(Builder& b, Value bits, ElementType type) {
  int digits = Precision(type);
  Value shift = b.Full(bits->shape(), int64_t{IsWide(bits) ? 64 : 32} - digits);
  Value number = b.Binary(Opcode::kShiftRightLogical, bits, shift);
  // Signed: the top bits are zero, and signed numbers convert faster.
  Value real = b.Convert(b.Convert(number, SignedLike(bits)), FloatLike(bits));
  return b.Multiply(real, Like(b, real, std::ldexp(1.0, -digits)));
}

Value InInterval(Builder& b, Value unit, Value from, Value width, Value last) {
  return b.Minimum(b.Add(b.Multiply(unit, width), from), last);
}

CenteredUniform DrawCentered(Builder& b, Value bits) {
  // An odd number of [-(2^31 - 1), 2^31 - 1]: as many are negative as positive, and none is an end.
  Value odd = b.Or(bits, b.Full(bits->shape(), int64_t{1}));
  odd = b.BitcastConvert(odd, SignedLike(bits));
  // 2^31 - |odd|, which is in range although 2^31 is not: integers wrap.
  int64_t lowest = IsWide(bits) ? std::numeric_limits<int64_t>::min()
                                : int64_t{std::numeric_limits<int32_t>::min()};
  Value rest = b.Subtract(b.Full(odd->shape(), lowest), b.Abs(odd));
  auto scaled = [&](Value number) {
    Value real = b.Convert(number, FloatLike(bits));
    return b.Multiply(real, Like(b, real, IsWide(bits) ? 0x1p-63 : 0x1p-31));
  };
  return {scaled(odd), scaled(rest)};
}

Value StandardNormal(Builder& b, Value bits) {
  auto [x, complement] = DrawCentered(b, bits);
  return b.Multiply(ErfInvInside(b, x, complement), Like(b, x, std::numbers::sqrt2));
}

// -log(u) of u = (1 + x) / 2, by whichever of u and 1 - u is the smaller one, which is exact.
Value StandardExponential(Builder& b, Value bits) {
  auto [x, complement] = DrawCentered(b, bits);
  Value smaller = b.Multiply(complement, Like(b, x, 0.5));
  Value log_one_minus = b.Unary(Opcode::kLogPlusOne, b.Negate(smaller));
  Value is_low = b.Lt(x, Like(b, x, 0));
  return b.Negate(b.Select(is_low, b.Log(smaller), log_one_minus));
}

// tan(x pi / 2), which beyond 1/2 is 1 / tan((1 - x) pi / 2).
Value StandardCauchy(Builder& b, Value bits) {
  auto [x, complement] = DrawCentered(b, bits);
  Value magnitude = b.Abs(x);
  Value angle = b.Multiply(b.Minimum(magnitude, complement), Like(b, x, std::numbers::pi / 2));
  Value tangent = b.Unary(Opcode::kTan, angle);
  Value is_far = b.Gt(magnitude, complement);
  Value size = b.Select(is_far, b.Divide(Like(b, x, 1), tangent), tangent);
  return b.Select(b.Lt(x, Like(b, x, 0)), b.Negate(size), size);
}

Value Coin(Builder& b, Value bits, double p) {
  if (!(p >= 0 && p <= 1)) {
    throw hlo::Error("expected probability to be between 0 and 1, but got " + std::to_string(p));
  }
  constexpr int64_t kAll = int64_t{1} << 32;
  int64_t limit = std::llround(std::ldexp(p, 32));
  if (limit == 0 || limit == kAll) {
    return b.Full(Shape(ElementType::kPred, bits->dimensions()), int64_t{limit == kAll});
  }
  return b.Lt(bits, b.Full(bits->shape(), limit));
}

Value ToFinite(Builder& b, Value x, ElementType type) {
  double most = LargestFinite(type);
  return b.Convert(b.Clamp(ScalarLike(b, x, -most), x, ScalarLike(b, x, most)), type);
}

Value ToPositiveFinite(Builder& b, Value x, ElementType type) {
  Value least = ScalarLike(b, x, SmallestPositive(type));
  return b.Convert(b.Clamp(least, x, ScalarLike(b, x, LargestFinite(type))), type);
}

}  // namespace torch_xla
