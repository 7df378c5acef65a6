// Decisions from the bytes of a fuzzer: nearby inputs make nearby programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fuzz {

class ByteSource {
 public:
  explicit ByteSource(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  // Zero when there is none left.
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  // Below `limit`, which is at most 256.
  int64_t Below(size_t limit) { return static_cast<int64_t>(Byte() % limit); }
  bool Chance(int of_256) { return Byte() < of_256; }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace fuzz
