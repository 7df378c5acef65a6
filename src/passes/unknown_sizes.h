// The sizes of a program that is written for any sizes: which dimensions have a size that only the
// running program knows, which of those are equal, and how the program computes them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "hlo/builder.h"

namespace passes {

// Of each dimension its size, or a negative number that stands for an unknown one: equal numbers
// are equal sizes.
using Extents = std::vector<int64_t>;

inline bool IsUnknown(int64_t extent) { return extent < 0; }
bool HasUnknown(const Extents& extents);
// Unknown ones are hlo::kDynamic.
hlo::Dimensions KnownDimensions(const Extents& extents);

class UnknownSizes {
 public:
  // `builder` writes the program.
  explicit UnknownSizes(hlo::Builder& builder) : builder_(builder) {}

  // The size of a value's dimension that the program's caller chooses.
  int64_t OfDimension(hlo::Value value, int64_t dimension);
  // What these stretch to by numpy's rule; equal ones stay what they are.
  int64_t Common(const std::set<int64_t>& unknown);
  hlo::Value Vector(const Extents& extents);

 private:
  int64_t Add(hlo::Value scalar);
  hlo::Value Scalar(int64_t extent);

  hlo::Builder& builder_;
  std::vector<hlo::Value> scalars_;  // of -1, -2, …
  std::map<std::set<int64_t>, int64_t> common_;
};

}  // namespace passes
