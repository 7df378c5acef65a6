// Checks of values that eager makes when an operation runs, for lowerings (lazy/value_check.h).
// Words are eager's.
#pragma once

#include <cstdint>
#include <string>

#include "aten/lowering.h"
#include "hlo/error.h"

namespace torch_xla {

// Integers from `least` on, below `past`.
struct Bounds {
  int64_t least = 0;
  int64_t past = 0;
};
// Positions in a dimension of `size`; those that may be negative count from its end.
inline Bounds Positions(int64_t size) { return {0, size}; }
inline Bounds WrappedPositions(int64_t size) { return {-size, size}; }

struct Words {
  hlo::ErrorCode code;  // kOutOfRange: IndexError; kInvalidArgument: RuntimeError
  std::string text;     // "{}" is a value out of bounds
};

// Whether checks are wanted in what is being lowered: those that follow add nothing where they are
// not, but what is computed for them would be there.
bool ChecksValues(const Builder& b);
// That all elements of an integer value are within bounds. Adds nothing where that is plain from
// what they are made of.
void CheckBounds(Builder& b, Value x, Bounds bounds, const Words& words);
// That no element of a pred is true.
void CheckNone(Builder& b, Value wrong, const Words& words);

// "index 5 is out of bounds for dimension 0 with size 5", of an IndexError or a RuntimeError.
Words OutOfBounds(hlo::ErrorCode code, int64_t dimension, int64_t size);

}  // namespace torch_xla
