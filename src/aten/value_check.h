// Checks of values that eager makes when an operation runs, for lowerings (lazy/value_check.h).
// Words are eager's.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "aten/lowering.h"
#include "hlo/error.h"
#include "lazy/value_check.h"

namespace torch_xla {

// Integers from `least` on, below `past`.
struct Bounds {
  int64_t least = 0;
  int64_t past = 0;
};
// Positions in a dimension of `size`; those that may be negative count from its end.
inline Bounds Positions(int64_t size) { return {0, size}; }
inline Bounds WrappedPositions(int64_t size) { return {-size, size}; }

// Eager's exceptions.
inline constexpr auto kIndexError = hlo::ErrorCode::kOutOfRange;
inline constexpr auto kRuntimeError = hlo::ErrorCode::kInvalidArgument;

struct Words {
  hlo::ErrorCode code;
  std::string text;  // "{}" is a value out of bounds
};

// Whether checks are wanted in what is being lowered: those that follow add nothing where they are
// not, but what is computed for them would be there.
bool ChecksValues(const Builder& b);
// That all elements of an integer value are within bounds. Adds nothing where that is plain from
// what they are made of.
void CheckBounds(Builder& b, Value x, Bounds bounds, const Words& words);
// That no element of a pred is true.
void CheckNone(Builder& b, Value wrong, const Words& words);
// That all elements of the pred that `right` gives are true, which is asked for where checks are
// wanted.
template <typename Right>
void CheckAll(Builder& b, const Words& words, const Right& right) {
  if (ChecksValues(b)) CheckNone(b, b.Not(right()), words);
}

// The checks in regions of a loop or branch, whose values the program around them does not have.
// The first that fails is carried out of them: its number among the checks, from 1 on, and what was
// checked, u64[] each. Where values are not checked there is no such state.
class RegionChecks {
 public:
  explicit RegionChecks(const Builder& around) : are_wanted_(ChecksValues(around)) {}

  // Nothing has failed.
  Values Start(Builder& b) const;
  size_t state_size() const { return are_wanted_ ? 2 : 0; }
  // What `lower` gives, which lowers into the region, and then the state that follows `state`.
  Values Lower(Builder& region, std::span<const Value> state, const std::function<Values()>& lower);
  // Adds the checks to the program, of the state that the regions gave.
  void Report(Builder& b, std::span<const Value> state) const;

 private:
  bool are_wanted_;
  lazy::ValueChecks checks_;  // of all regions
};

// "index 5 is out of bounds for dimension 0 with size 5", of an IndexError or a RuntimeError.
Words OutOfBounds(hlo::ErrorCode code, int64_t dimension, int64_t size);

}  // namespace torch_xla
