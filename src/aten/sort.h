// Sorting and cumulative operations that other families compose.
#pragma once

#include "aten/lowering.h"

namespace torch_xla {

// The sorted values and where each came from (s64). NaN counts as the largest.
std::pair<Value, Value> SortWithIndices(Builder& b, Value x, int64_t dimension, bool descending,
                                        bool stable);
// The running sum along a dimension, in x's type.
Value CumulativeSum(Builder& b, Value x, int64_t dimension);

}  // namespace torch_xla
