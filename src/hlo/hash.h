// Hashes of structures: mixing of 64-bit words and of byte strings. Stable within a process only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace hlo {

// The finalizer of a splitmix64 step: every input bit affects every output bit.
inline size_t MixHash(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 31;
  return static_cast<size_t>(x);
}

// Order matters: CombineHash(CombineHash(s, a), b) differs from (s, b), (a).
inline size_t CombineHash(size_t seed, size_t value) {
  return MixHash(static_cast<uint64_t>(seed) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(value) +
                 0x9e3779b97f4a7c15u);
}

inline size_t HashBytes(std::span<const std::byte> bytes) {
  size_t hash = bytes.size();
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    hash = CombineHash(hash, static_cast<size_t>(word));
  }
  if (i < bytes.size()) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, bytes.size() - i);
    hash = CombineHash(hash, static_cast<size_t>(word));
  }
  return hash;
}

}  // namespace hlo
