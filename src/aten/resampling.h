// Resampling: each output element along a dimension is a weighted sum of input elements that are
// known while the graph is made.
#pragma once

#include <vector>

#include "aten/lowering.h"

namespace torch_xla {

struct Tap {
  int64_t index;
  double weight;
};
using Taps = std::vector<Tap>;

// Adds to the weight of a tap at `index`, or a new one.
void AddTap(Taps& taps, int64_t index, double weight);

// One dimension of `input_size` elements; outputs[i] are what output element i sums.
struct Resampling {
  int64_t input_size;
  std::vector<Taps> outputs;
  // Whether an output of fewer taps than others is a sum of so many alone, in which no element has
  // a weight of zero: of infinity that makes NaN.
  bool has_fewer_taps = false;
};

// Whether each output is the element at its place.
bool KeepsAll(const Resampling& resampling);

// The gradient's: what each input element went into.
Resampling Transposed(const Resampling& resampling);

// x with the dimensions from `first` on resampled. x is a float, except where all weights are 1.
Value Resample(Builder& b, Value x, int64_t first, const std::vector<Resampling>& resamplings);

}  // namespace torch_xla
