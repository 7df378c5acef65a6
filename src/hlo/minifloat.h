// Floating point formats of a byte or less.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/element_type.h"

namespace hlo {

struct MinifloatFormat {
  ElementType type;
  int exponent_bits, mantissa_bits, bias;
  int codes;  // of finite numbers that are not negative; what follows is infinite or no number
  bool has_sign, has_negative_zero, has_infinity;

  // The number that the bits of one that is finite and not negative stand for.
  double ValueOf(int code) const;
  double smallest_normal() const { return ValueOf(1 << mantissa_bits); }
  double largest() const { return ValueOf(codes - 1); }
};

// Null for a type that is none of f4E2M1FN to f8E8M0FNU.
const MinifloatFormat* FindMinifloat(ElementType type);

// The bits of the number of a format (f4E2M1FN to f8E8M0FNU) that is nearest to a finite `value`,
// the even one of two; nothing if none is within the format's range.
std::optional<uint8_t> MinifloatFromDouble(ElementType type, double value);
// The bits of any number as conversions make them: infinite, or no number, beyond the range of a
// format that has such.
uint8_t RoundToMinifloat(ElementType type, double value);
double DoubleFromMinifloat(ElementType type, uint8_t bits);

}  // namespace hlo
