#include "hlo/scalar_arithmetic.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "hlo/error.h"

namespace hlo::evaluation {
namespace {

using Complex = std::complex<double>;

[[noreturn]] void ThrowUndefined(Opcode opcode, const char* kind) {
  throw Error(ErrorCode::kInternal, std::string(Name(opcode)) + " is not defined on " + kind);
}

// NaN if either is, and -0 below +0.
double Maximum(double x, double y) {
  if (std::isnan(x)) return x;
  if (std::isnan(y)) return y;
  if (x == y) return std::signbit(x) ? y : x;
  return x > y ? x : y;
}

double Minimum(double x, double y) { return -Maximum(-x, -y); }

double Sign(double x) {
  if (std::isnan(x) || x == 0) return x;
  return x > 0 ? 1 : -1;
}

// exp(z) - 1 without cancellation near 0.
Complex ExponentialMinusOne(Complex z) {
  double half_sine = std::sin(z.imag() / 2);
  double real = std::expm1(z.real()) * std::cos(z.imag()) - 2 * half_sine * half_sine;
  double imaginary = z.imag() == 0 ? z.imag() : std::exp(z.real()) * std::sin(z.imag());
  return {z.imag() == 0 ? std::expm1(z.real()) : real, imaginary};
}

// log(1 + z): |1+z|^2 - 1 = x(2+x) + y^2 keeps small z exact.
Complex LogPlusOne(Complex z) {
  double x = z.real(), y = z.imag();
  double excess = x * (2 + x) + y * y;
  bool small = std::abs(x) < 0.5 && std::abs(y) < 0.5;
  double real = small ? 0.5 * std::log1p(excess) : std::log(std::hypot(1 + x, y));
  return {real, std::atan2(y, 1 + x)};
}

// The plain product: unlike C's, it does not ask whether a factor is infinite.
Complex Multiply(Complex x, Complex y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

// Scaled by the larger part of y; by zero, whatever its sign, the parts are infinite or NaN.
Complex Divide(Complex x, Complex y) {
  if (y == Complex(0)) return {x.real() / 0.0, x.imag() / 0.0};
  if (std::abs(y.real()) < std::abs(y.imag())) {
    x = {x.imag(), -x.real()};
    y = {y.imag(), -y.real()};
  }
  const double ratio = y.imag() / y.real();
  const double denominator = y.real() + y.imag() * ratio;
  return {(x.real() + x.imag() * ratio) / denominator, (x.imag() - x.real() * ratio) / denominator};
}

// C's product keeps infinite logarithms and exponents.
Complex Power(Complex base, Complex exponent) {
  if (exponent == Complex(0)) return 1;
  return std::exp(exponent * std::log(base));
}

bool LexicographicallyLess(Complex x, Complex y) {
  return x.real() < y.real() || (x.real() == y.real() && x.imag() < y.imag());
}

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

template <typename T>
T IntegerPower(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return exponent % 2 == 0 ? 1 : -1;
      return 0;
    }
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (auto left = static_cast<uint64_t>(exponent); left; left >>= 1) {
    if (left & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

template <typename T>
T IntegerDivide(T x, T y) {
  if (y == 0) return static_cast<T>(-1);  // all ones for unsigned types
  if constexpr (std::is_signed_v<T>) {
    if (y == -1) return static_cast<T>(-static_cast<uint64_t>(x));
  }
  return static_cast<T>(x / y);
}

template <typename T>
T IntegerRemainder(T x, T y) {
  if (y == 0) return x;
  if constexpr (std::is_signed_v<T>) {
    if (y == -1) return 0;
  }
  return static_cast<T>(x % y);
}

template <typename T>
T Shift(Opcode opcode, T x, T amount) {
  constexpr unsigned kBits = sizeof(T) * 8;
  bool beyond = static_cast<Unsigned<T>>(amount) >= kBits;
  switch (opcode) {
    case Opcode::kShiftLeft:
      return beyond ? T{0} : static_cast<T>(static_cast<uint64_t>(x) << amount);
    case Opcode::kShiftRightLogical:
      return beyond ? T{0} : static_cast<T>(static_cast<Unsigned<T>>(x) >> amount);
    default: {
      using Signed = std::make_signed_t<T>;
      return static_cast<T>(static_cast<Signed>(x) >> (beyond ? kBits - 1 : amount));
    }
  }
}

}  // namespace

double RealUnary(Opcode opcode, double x) {
  switch (opcode) {
    case Opcode::kAbs:
      return std::fabs(x);
    case Opcode::kCbrt:
      return std::cbrt(x);
    case Opcode::kCeil:
      return std::ceil(x);
    case Opcode::kCosine:
      return std::cos(x);
    case Opcode::kExponential:
      return std::exp(x);
    case Opcode::kExponentialMinusOne:
      return std::expm1(x);
    case Opcode::kFloor:
      return std::floor(x);
    case Opcode::kLog:
      return std::log(x);
    case Opcode::kLogPlusOne:
      return std::log1p(x);
    case Opcode::kLogistic:
      return 1 / (1 + std::exp(-x));
    case Opcode::kNegate:
      return -x;
    case Opcode::kRoundNearestAfz:
      return std::round(x);
    case Opcode::kRoundNearestEven:
      return std::nearbyint(x);
    case Opcode::kRsqrt:
      return 1 / std::sqrt(x);
    case Opcode::kSign:
      return Sign(x);
    case Opcode::kSine:
      return std::sin(x);
    case Opcode::kSqrt:
      return std::sqrt(x);
    case Opcode::kTan:
      return std::tan(x);
    case Opcode::kTanh:
      return std::tanh(x);
    default:
      ThrowUndefined(opcode, "floating-point numbers");
  }
}

double RealBinary(Opcode opcode, double x, double y) {
  switch (opcode) {
    case Opcode::kAdd:
      return x + y;
    case Opcode::kAtan2:
      return std::atan2(x, y);
    case Opcode::kDivide:
      return x / y;
    case Opcode::kMaximum:
      return Maximum(x, y);
    case Opcode::kMinimum:
      return Minimum(x, y);
    case Opcode::kMultiply:
      return x * y;
    case Opcode::kPower:
      return std::pow(x, y);
    case Opcode::kRemainder:
      return std::fmod(x, y);
    case Opcode::kSubtract:
      return x - y;
    default:
      ThrowUndefined(opcode, "floating-point numbers");
  }
}

Complex ComplexUnary(Opcode opcode, Complex x) {
  switch (opcode) {
    case Opcode::kCbrt:
      return x == Complex(0) ? x : std::exp(std::log(x) / 3.0);
    case Opcode::kCosine:
      return std::cos(x);
    case Opcode::kExponential:
      return std::exp(x);
    case Opcode::kExponentialMinusOne:
      return ExponentialMinusOne(x);
    case Opcode::kLog:
      return std::log(x);
    case Opcode::kLogPlusOne:
      return LogPlusOne(x);
    case Opcode::kLogistic:
      return Divide(1, 1.0 + std::exp(-x));
    case Opcode::kNegate:
      return -x;
    case Opcode::kRsqrt:
      return Divide(1, std::sqrt(x));
    case Opcode::kSign:
      return x == Complex(0) ? x : x / std::abs(x);
    case Opcode::kSine:
      return std::sin(x);
    case Opcode::kSqrt:
      return std::sqrt(x);
    case Opcode::kTan:
      return std::tan(x);
    case Opcode::kTanh:
      return std::tanh(x);
    default:
      ThrowUndefined(opcode, "complex numbers");
  }
}

Complex ComplexBinary(Opcode opcode, Complex x, Complex y) {
  switch (opcode) {
    case Opcode::kAdd:
      return x + y;
    case Opcode::kAtan2: {
      // atan2(x, y) = -i log((y + i x) / sqrt(x^2 + y^2))
      Complex i(0, 1);
      return -i * std::log((y + i * x) / std::sqrt(x * x + y * y));
    }
    case Opcode::kDivide:
      return Divide(x, y);
    case Opcode::kMaximum:
      return LexicographicallyLess(x, y) ? y : x;
    case Opcode::kMinimum:
      return LexicographicallyLess(y, x) ? y : x;
    case Opcode::kMultiply:
      return Multiply(x, y);
    case Opcode::kPower:
      return Power(x, y);
    case Opcode::kSubtract:
      return x - y;
    default:
      ThrowUndefined(opcode, "complex numbers");
  }
}

template <typename T>
T IntegerUnary(Opcode opcode, T x) {
  if constexpr (std::is_same_v<T, bool>) {
    if (opcode == Opcode::kNot) return !x;
  } else {
    auto bits = static_cast<Unsigned<T>>(x);
    switch (opcode) {
      case Opcode::kAbs:
        return x < 0 ? static_cast<T>(-static_cast<uint64_t>(x)) : x;
      case Opcode::kCountLeadingZeros:
        return static_cast<T>(std::countl_zero(bits));
      case Opcode::kNegate:
        return static_cast<T>(-static_cast<uint64_t>(x));
      case Opcode::kNot:
        return static_cast<T>(~x);
      case Opcode::kPopcnt:
        return static_cast<T>(std::popcount(bits));
      case Opcode::kSign:
        return static_cast<T>((x > 0) - (x < 0));
      default:
        break;
    }
  }
  ThrowUndefined(opcode, "integers or preds");
}

template <typename T>
T IntegerBinary(Opcode opcode, T x, T y) {
  auto wide_x = static_cast<uint64_t>(x), wide_y = static_cast<uint64_t>(y);
  switch (opcode) {
    case Opcode::kAdd:
      return static_cast<T>(wide_x + wide_y);  // for bool: or
    case Opcode::kAnd:
      return static_cast<T>(wide_x & wide_y);
    case Opcode::kMaximum:
      return x < y ? y : x;
    case Opcode::kMinimum:
      return y < x ? y : x;
    case Opcode::kMultiply:
      return static_cast<T>(wide_x * wide_y);
    case Opcode::kOr:
      return static_cast<T>(wide_x | wide_y);
    case Opcode::kSubtract:
      return static_cast<T>(wide_x - wide_y);
    case Opcode::kXor:
      return static_cast<T>(wide_x ^ wide_y);
    default:
      break;
  }
  if constexpr (!std::is_same_v<T, bool>) {
    switch (opcode) {
      case Opcode::kDivide:
        return IntegerDivide(x, y);
      case Opcode::kPower:
        return IntegerPower(x, y);
      case Opcode::kRemainder:
        return IntegerRemainder(x, y);
      case Opcode::kShiftLeft:
      case Opcode::kShiftRightArithmetic:
      case Opcode::kShiftRightLogical:
        return Shift(opcode, x, y);
      default:
        break;
    }
  }
  ThrowUndefined(opcode, "integers or preds");
}

#define HLO_INSTANTIATE(T)               \
  template T IntegerUnary<T>(Opcode, T); \
  template T IntegerBinary<T>(Opcode, T, T);
HLO_INSTANTIATE(bool)
HLO_INSTANTIATE(int8_t)
HLO_INSTANTIATE(int16_t)
HLO_INSTANTIATE(int32_t)
HLO_INSTANTIATE(int64_t)
HLO_INSTANTIATE(uint8_t)
HLO_INSTANTIATE(uint16_t)
HLO_INSTANTIATE(uint32_t)
HLO_INSTANTIATE(uint64_t)
#undef HLO_INSTANTIATE

double ReducePrecision(double x, int64_t exponent_bits, int64_t mantissa_bits) {
  if (!std::isfinite(x) || x == 0) return x;
  exponent_bits = std::min<int64_t>(exponent_bits, 11);
  if (mantissa_bits < 52) {
    // To nearest; of two that are equally near, the one whose last bit is 0. Without a mantissa
    // that is the exponent's, as in StableHLO's reference: 0.75 becomes 0.5, and 1.5 becomes 2.
    const int dropped = 52 - static_cast<int>(mantissa_bits);
    const uint64_t unit = uint64_t{1} << dropped;
    auto word = std::bit_cast<uint64_t>(x);
    word += unit / 2 - 1 + ((word >> dropped) & 1);
    x = std::bit_cast<double>(word & ~(unit - 1));
  }
  int largest = (1 << (exponent_bits - 1)) - 1;
  int exponent = std::ilogb(x);
  if (exponent > largest) return std::copysign(std::numeric_limits<double>::infinity(), x);
  if (exponent < 1 - largest) return std::copysign(0.0, x);
  return x;
}

}  // namespace hlo::evaluation
