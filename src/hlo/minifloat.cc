#include "hlo/minifloat.h"

#include <cmath>
#include <limits>

#include "hlo/error.h"

namespace hlo {
namespace {

constexpr MinifloatFormat kFormats[] = {
    {ElementType::kF4E2M1FN, 2, 1, 1, 8, true, true, false},
    {ElementType::kF6E2M3FN, 2, 3, 1, 32, true, true, false},
    {ElementType::kF6E3M2FN, 3, 2, 3, 32, true, true, false},
    {ElementType::kF8E3M4, 3, 4, 3, 0x70, true, true, true},
    {ElementType::kF8E4M3, 4, 3, 7, 0x78, true, true, true},
    {ElementType::kF8E4M3FN, 4, 3, 7, 0x7f, true, true, false},
    {ElementType::kF8E4M3FNUZ, 4, 3, 8, 0x80, true, false, false},
    {ElementType::kF8E4M3B11FNUZ, 4, 3, 11, 0x80, true, false, false},
    {ElementType::kF8E5M2, 5, 2, 15, 0x7c, true, true, true},
    {ElementType::kF8E5M2FNUZ, 5, 2, 16, 0x80, true, false, false},
    {ElementType::kF8E8M0FNU, 8, 0, 127, 0xff, false, false, false},
};

const MinifloatFormat& FormatOf(ElementType type) {
  if (const MinifloatFormat* format = FindMinifloat(type)) return *format;
  throw Error(ErrorCode::kInternal, "not a floating point format of a byte or less");
}

int SignOf(const MinifloatFormat& format) {
  return format.has_sign ? 1 << (format.exponent_bits + format.mantissa_bits) : 0;
}

// The bits of what is no number; of the greatest number in a format that has no such bits.
int NotANumber(const MinifloatFormat& format) {
  const int magnitudes = 1 << (format.exponent_bits + format.mantissa_bits);
  if (format.has_infinity) return format.codes | 1 << (format.mantissa_bits - 1);
  if (format.codes < magnitudes || !format.has_negative_zero) return format.codes;
  return format.codes - 1;
}

}  // namespace

const MinifloatFormat* FindMinifloat(ElementType type) {
  for (const MinifloatFormat& format : kFormats) {
    if (format.type == type) return &format;
  }
  return nullptr;
}

double MinifloatFormat::ValueOf(int code) const {
  int exponent = code >> mantissa_bits;
  int mantissa = code & ((1 << mantissa_bits) - 1);
  if (!has_sign) return std::ldexp(1.0, exponent - bias);  // has no zero either
  bool is_normal = exponent != 0;
  int whole = mantissa + (is_normal ? 1 << mantissa_bits : 0);
  return std::ldexp(whole, (is_normal ? exponent : 1) - bias - mantissa_bits);
}

std::optional<uint8_t> MinifloatFromDouble(ElementType type, double value) {
  const MinifloatFormat& format = FormatOf(type);
  double magnitude = std::fabs(value);
  if (std::signbit(value) && !format.has_sign) return {};
  int code = 0;
  while (code + 1 < format.codes && format.ValueOf(code + 1) <= magnitude) ++code;
  double below = magnitude - format.ValueOf(code);
  double step = code + 1 < format.codes ? format.ValueOf(code + 1) - format.ValueOf(code)
                                        : format.ValueOf(code) - format.ValueOf(code - 1);
  bool up = below > step / 2 || (below == step / 2 && (code & 1) != 0);
  if (up && ++code >= format.codes) return {};
  bool negative = std::signbit(value) && (code != 0 || format.has_negative_zero);
  return static_cast<uint8_t>(code | (negative ? SignOf(format) : 0));
}

uint8_t RoundToMinifloat(ElementType type, double value) {
  const MinifloatFormat& format = FormatOf(type);
  if (std::isnan(value)) return static_cast<uint8_t>(NotANumber(format));
  if (std::isfinite(value)) {
    if (const auto bits = MinifloatFromDouble(type, value)) return *bits;
  }
  const int beyond = format.has_infinity ? format.codes : NotANumber(format);
  const bool negative = std::signbit(value) && format.has_negative_zero;
  return static_cast<uint8_t>(beyond | (negative ? SignOf(format) : 0));
}

double DoubleFromMinifloat(ElementType type, uint8_t bits) {
  const MinifloatFormat& format = FormatOf(type);
  const int sign = SignOf(format);
  const int code = bits & (sign != 0 ? sign - 1 : 0xff);
  const bool negative = (bits & sign) != 0;
  double value = std::numeric_limits<double>::quiet_NaN();
  if (code < format.codes && !(negative && code == 0 && !format.has_negative_zero)) {
    value = format.ValueOf(code);
  } else if (format.has_infinity && code == format.codes) {
    value = std::numeric_limits<double>::infinity();
  }
  return negative ? -value : value;
}

}  // namespace hlo
