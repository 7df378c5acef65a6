// The sizes in a kernel's code: constants of it, or numbers that it is given each time it runs.
//
// The code is always emitted for one composite, whose sizes are all known: every decision is made
// with their values. A size that varies is read from a slot instead of being an immediate, and that
// is all that differs. Composites of other sizes whose code comes out the same, instruction for
// instruction, can share it: each brings the values of its slots.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace cpu {

struct Extent {
  int64_t value = 0;
  int64_t divisor = 0;    // divides it whatever the sizes that vary are; 0 divides 0 only
  uint64_t identity = 0;  // numbers that are computed alike have the same
  bool varies = false;

  Extent() = default;
  Extent(int64_t constant);  // NOLINT: numbers are extents

  bool Is(int64_t constant) const { return !varies && value == constant; }

  friend Extent operator*(const Extent& a, const Extent& b);
  friend Extent operator+(const Extent& a, const Extent& b);
  friend Extent operator-(const Extent& a, const Extent& b);
  // Rounded down. Neither is negative.
  friend Extent operator/(const Extent& a, int64_t b);
};

// The sizes of one composite.
class KernelSizes {
 public:
  // Sizes of these values, which are above 1, vary; so do constants of these bits.
  explicit KernelSizes(std::set<int64_t> varying = {}) : varying_(std::move(varying)) {}

  // A size, or another number of the composite's attributes.
  Extent Size(int64_t value);
  // Of the sizes [begin, end).
  Extent Product(std::span<const int64_t> sizes, size_t begin, size_t end);
  Extent Product(std::span<const int64_t> sizes) { return Product(sizes, 0, sizes.size()); }

  // The slot that holds a number that varies.
  int32_t Slot(const Extent& extent);
  // The slots' values.
  const std::vector<int64_t>& slots() const { return slots_; }

 private:
  std::set<int64_t> varying_;
  std::map<int64_t, uint64_t> identities_;                   // of sizes that vary, by their values
  std::map<std::pair<uint64_t, int64_t>, int32_t> slot_of_;  // by identity and value
  std::vector<int64_t> slots_;
};

}  // namespace cpu
