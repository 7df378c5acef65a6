// The two 16-bit floating point formats as C++ value types: storage plus conversion to and from
// float, rounding to nearest even. Arithmetic is done in float by whoever needs it.
#pragma once

#include <bit>
#include <cstdint>

namespace hlo {

// IEEE 754 binary16.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  Float16(float value);  // NOLINT(runtime/explicit): a number converts like a number
  operator float() const;
};

// The upper half of a binary32; NaN stays NaN.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float value) {  // NOLINT(runtime/explicit)
    uint32_t word = std::bit_cast<uint32_t>(value);
    bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    bits = is_nan ? static_cast<uint16_t>((word >> 16) | 0x40u)
                  : static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

}  // namespace hlo
