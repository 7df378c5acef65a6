// SHA-256 (FIPS 180-4): names and checksums of files that must not collide. Our own, because the
// package otherwise needs no libcrypto of the system, whose versions differ.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace process {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  void Update(std::string_view bytes);
  // Once, at the end.
  Sha256Digest Finish();

 private:
  void Compress(const uint8_t* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_{};
  uint64_t size_ = 0;  // in bytes, of all updates
};

Sha256Digest Sha256Of(std::string_view bytes);
// Of the parts and of where each ends, so that no two lists of parts have the same.
Sha256Digest Sha256OfParts(std::initializer_list<std::string_view> parts);
// 64 lower-case digits.
std::string ToHex(const Sha256Digest& digest);
// Its beginning, for interfaces that have no room for more.
uint64_t First64Bits(const Sha256Digest& digest);

}  // namespace process
