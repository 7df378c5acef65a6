#include "hlo/minifloat.h"

#include <cmath>

#include "hlo/error.h"

namespace hlo {
namespace {

struct Format {
  ElementType type;
  int exponent_bits, mantissa_bits, bias;
  int codes;  // of finite numbers that are not negative; what follows is infinite or no number
  bool has_sign, has_negative_zero;
};

constexpr Format kFormats[] = {
    {ElementType::kF4E2M1FN, 2, 1, 1, 8, true, true},
    {ElementType::kF6E2M3FN, 2, 3, 1, 32, true, true},
    {ElementType::kF6E3M2FN, 3, 2, 3, 32, true, true},
    {ElementType::kF8E3M4, 3, 4, 3, 0x70, true, true},
    {ElementType::kF8E4M3, 4, 3, 7, 0x78, true, true},
    {ElementType::kF8E4M3FN, 4, 3, 7, 0x7f, true, true},
    {ElementType::kF8E4M3FNUZ, 4, 3, 8, 0x80, true, false},
    {ElementType::kF8E4M3B11FNUZ, 4, 3, 11, 0x80, true, false},
    {ElementType::kF8E5M2, 5, 2, 15, 0x7c, true, true},
    {ElementType::kF8E5M2FNUZ, 5, 2, 16, 0x80, true, false},
    {ElementType::kF8E8M0FNU, 8, 0, 127, 0xff, false, false},
};

const Format& FormatOf(ElementType type) {
  for (const Format& format : kFormats) {
    if (format.type == type) return format;
  }
  throw Error(ErrorCode::kInternal, "not a floating point format of a byte or less");
}

double ValueOf(const Format& format, int code) {
  int exponent = code >> format.mantissa_bits;
  int mantissa = code & ((1 << format.mantissa_bits) - 1);
  if (!format.has_sign) return std::ldexp(1.0, exponent - format.bias);  // has no zero either
  bool is_normal = exponent != 0;
  int whole = mantissa + (is_normal ? 1 << format.mantissa_bits : 0);
  return std::ldexp(whole, (is_normal ? exponent : 1) - format.bias - format.mantissa_bits);
}

}  // namespace

std::optional<uint8_t> MinifloatFromDouble(ElementType type, double value) {
  const Format& format = FormatOf(type);
  double magnitude = std::fabs(value);
  if (std::signbit(value) && !format.has_sign) return {};
  int code = 0;
  while (code + 1 < format.codes && ValueOf(format, code + 1) <= magnitude) ++code;
  double below = magnitude - ValueOf(format, code);
  double step = code + 1 < format.codes ? ValueOf(format, code + 1) - ValueOf(format, code)
                                        : ValueOf(format, code) - ValueOf(format, code - 1);
  bool up = below > step / 2 || (below == step / 2 && (code & 1) != 0);
  if (up && ++code >= format.codes) return {};
  bool negative = std::signbit(value) && (code != 0 || format.has_negative_zero);
  int sign = negative ? 1 << (format.exponent_bits + format.mantissa_bits) : 0;
  return static_cast<uint8_t>(code | sign);
}

}  // namespace hlo
