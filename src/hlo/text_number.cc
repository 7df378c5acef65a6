#include "hlo/text_number.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "hlo/minifloat.h"

namespace hlo::text {
namespace {

using bytecode::FailAt;

bool IsHexadecimal(const Number& number) { return number.token.text.starts_with("0x"); }

double Real(const Number& number) {
  std::string_view digits = number.token.text;
  double value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    FailAt(number.token.offset, "this is not a number that a double can hold");
  }
  return number.negative ? -value : value;
}

// Of the two floats around a double the one with an odd last bit: rounding that to far fewer bits
// is rounding the double, where rounding the nearest float could turn almost a tie into one.
float RoundToOdd(double value) {
  auto nearest = static_cast<float>(value);
  bool is_odd = (std::bit_cast<uint32_t>(nearest) & 1) != 0;
  if (nearest == value || is_odd || std::isinf(nearest)) return nearest;
  float infinity = std::numeric_limits<float>::infinity();
  return std::nextafter(nearest, value > nearest ? infinity : -infinity);
}

}  // namespace

Number TakeNumber(Lexer& lexer) {
  Number number;
  number.negative = lexer.Accept("-");
  number.token = lexer.token();
  if (number.token.kind != TokenKind::kInteger && number.token.kind != TokenKind::kFloat) {
    lexer.FailExpected("a number");
  }
  lexer.Advance();
  return number;
}

uint64_t Magnitude(const Number& number) {
  std::string_view digits = number.token.text;
  int base = IsHexadecimal(number) ? 16 : 10;
  if (base == 16) digits.remove_prefix(2);
  uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    FailAt(number.token.offset, "this is not an integer of at most 64 bits");
  }
  return value;
}

int64_t IntegerBits(const Number& number, int width, bool is_signed) {
  uint64_t value = Magnitude(number);
  uint64_t limit = number.negative ? uint64_t{1} << (width - 1)
                   : width == 64   ? UINT64_MAX
                                   : (uint64_t{1} << width) - 1;
  if (value > limit) {
    FailAt(number.token.offset, "the number does not fit in " + std::to_string(width) + " bits");
  }
  if (number.negative) value = ~value + 1;
  if (width == 64) return static_cast<int64_t>(value);
  uint64_t mask = (uint64_t{1} << width) - 1;
  value &= mask;
  if (is_signed && (value >> (width - 1)) != 0) value |= ~mask;
  return static_cast<int64_t>(value);
}

uint64_t RealBits(const Number& number, ElementType type) {
  if (IsHexadecimal(number)) {
    if (number.negative) FailAt(number.token.offset, "bits have no sign");
    return static_cast<uint64_t>(IntegerBits(number, BitWidth(type), false));
  }
  double value = Real(number);
  auto check = [&](double rounded) {
    if (!std::isfinite(rounded)) FailAt(number.token.offset, "the number is too large");
  };
  switch (type) {
    case ElementType::kF64:
      return std::bit_cast<uint64_t>(value);
    case ElementType::kF32: {
      auto rounded = static_cast<float>(value);
      check(rounded);
      return std::bit_cast<uint32_t>(rounded);
    }
    case ElementType::kF16: {
      Float16 rounded(RoundToOdd(value));
      check(static_cast<float>(rounded));
      return rounded.bits;
    }
    case ElementType::kBF16: {
      BFloat16 rounded(RoundToOdd(value));
      check(static_cast<float>(rounded));
      return rounded.bits;
    }
    default: {
      std::optional<uint8_t> bits = MinifloatFromDouble(type, value);
      if (!bits) FailAt(number.token.offset, "the number is out of its type's range");
      return *bits;
    }
  }
}

}  // namespace hlo::text
