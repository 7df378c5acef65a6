// Hashes of structures: mixing of 64-bit words, and of byte strings. The same in every process of
// one build. They find what is probably equal; names that must not collide are SHA-256
// (process/sha256.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace hlo {

// Order matters: CombineHash(CombineHash(s, a), b) differs from (s, b), (a). Both halves of a
// product of 128 bits, so that every bit of either number reaches many bits of the result.
inline size_t CombineHash(size_t seed, size_t value) {
  const auto product = static_cast<unsigned __int128>(seed ^ 0x9e3779b97f4a7c15u) *
                       (static_cast<uint64_t>(value) ^ 0xbf58476d1ce4e5b9u);
  return static_cast<size_t>(product) ^ static_cast<size_t>(product >> 64);
}

inline size_t HashBytes(std::span<const std::byte> bytes, size_t seed = 0) {
  size_t hash = CombineHash(seed, bytes.size());
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

inline size_t HashText(std::string_view text, size_t seed = 0) {
  return HashBytes(std::as_bytes(std::span(text)), seed);
}

}  // namespace hlo
