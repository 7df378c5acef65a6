// The sizes in a kernel's code: constants of it, or numbers that it is given each time it runs.
//
// The code is always emitted for one composite, whose sizes are all known: every decision is made
// with their values. A size that varies is read from a slot instead of being an immediate, and that
// is all that differs. Composites of other sizes whose code comes out the same, instruction for
// instruction, can share it: each brings the values of its slots.
//
// Whether it comes out the same can be told without emitting it again where emission asks for every
// comparison between numbers that may vary by name (KernelSizes::IsLess, IsEqual): what it was told
// is remembered, with how the numbers follow from the sizes (kernel_recipe.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace cpu {

// How a number that varies follows from the sizes of a composite.
struct Formula {
  enum class Kind { kSize, kConstant, kProduct, kSum, kDifference, kQuotient };

  Kind kind;
  int64_t number = 0;  // the constant, or the value of the size in the composite that was emitted
  std::shared_ptr<const Formula> left = nullptr, right = nullptr;
};

struct Extent {
  int64_t value = 0;
  int64_t divisor = 0;    // divides it whatever the sizes that vary are; 0 divides 0 only
  uint64_t identity = 0;  // numbers that are computed alike have the same
  bool varies = false;
  std::shared_ptr<const Formula> formula;  // of one that varies

  Extent() = default;
  Extent(int64_t constant);  // NOLINT: numbers are extents

  bool Is(int64_t constant) const { return !varies && value == constant; }

  friend Extent operator*(const Extent& a, const Extent& b);
  friend Extent operator+(const Extent& a, const Extent& b);
  friend Extent operator-(const Extent& a, const Extent& b);
  // Rounded down. Neither is negative.
  friend Extent operator/(const Extent& a, int64_t b);
};

// A comparison that the code was made by.
struct Decision {
  enum class Relation { kLess, kEqual };

  Relation relation;
  Extent left, right;
  bool outcome;
};

// What a run of a kernel takes: units of work, and for each of them estimated nanoseconds.
struct KernelWork {
  Extent units;
  double element_cost = 0;
  Extent elements;  // of a unit
  double overhead = 0;
};

inline double CostOfUnit(const KernelWork& work, int64_t elements) {
  return work.element_cost * static_cast<double>(elements) + work.overhead;
}

// The sizes of one composite, and what its code was made by.
class KernelSizes {
 public:
  // Sizes of these values, which are above 1, vary; so do constants of these bits.
  explicit KernelSizes(std::set<int64_t> varying = {}) : varying_(std::move(varying)) {}

  // A size, or another number of the composite's attributes.
  Extent Size(int64_t value);
  // Of the sizes [begin, end).
  Extent Product(std::span<const int64_t> sizes, size_t begin, size_t end);
  Extent Product(std::span<const int64_t> sizes) { return Product(sizes, 0, sizes.size()); }

  // Comparisons by which code is chosen.
  bool IsLess(const Extent& left, const Extent& right) {
    return Decide(Decision::Relation::kLess, left, right, left.value < right.value);
  }
  bool IsEqual(const Extent& left, const Extent& right) {
    return Decide(Decision::Relation::kEqual, left, right, left.value == right.value);
  }
  // Those with a number that varies.
  const std::vector<Decision>& decisions() const { return decisions_; }

  // By emission that asks for all its comparisons.
  void set_work(KernelWork work) { work_ = std::move(work); }
  const std::optional<KernelWork>& work() const { return work_; }

  // The slot that holds a number that varies.
  int32_t Slot(const Extent& extent);
  const std::vector<Extent>& slots() const { return slots_; }

 private:
  bool Decide(Decision::Relation relation, const Extent& left, const Extent& right, bool outcome);

  std::set<int64_t> varying_;
  std::map<int64_t, uint64_t> identities_;                   // of sizes that vary, by their values
  std::map<std::pair<uint64_t, int64_t>, int32_t> slot_of_;  // by identity and value
  std::vector<Extent> slots_;
  std::set<std::tuple<Decision::Relation, uint64_t, uint64_t>> decided_;  // by identities
  std::vector<Decision> decisions_;
  std::optional<KernelWork> work_;
};

}  // namespace cpu
