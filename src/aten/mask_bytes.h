// The true elements of a mask in the host's memory, bytes of which any but zero is true.
#pragma once

#include <cstdint>
#include <cstring>

namespace torch_xla {

// By eights.
inline int64_t CountTrueBytes(const uint8_t* bytes, int64_t size) {
  constexpr uint64_t kOnes = 0x0101010101010101, kLow = 0x7f * kOnes;
  int64_t count = 0, i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + i, sizeof word);
    const uint64_t is_true = (((word & kLow) + kLow) | word) >> 7 & kOnes;
    count += static_cast<int64_t>(is_true * kOnes >> 56);
  }
  for (; i < size; ++i) count += bytes[i] != 0 ? 1 : 0;
  return count;
}

}  // namespace torch_xla
