// Sorting and cumulative operations that other families compose.
#pragma once

#include "aten/lowering.h"

namespace torch_xla {

// The sorted values and where each came from (s64). NaN counts as the largest.
std::pair<Value, Value> SortWithIndices(Builder& b, Value x, int64_t dimension, bool descending,
                                        bool stable);
// How many of `boundaries`, ascending along their last dimension, are below each value (not above,
// if `right`), s64. One row of boundaries, or one for each row of the values; both of one type.
Value CountBelow(Builder& b, Value boundaries, Value values, bool right);
// The running sum and maximum along a dimension, in x's type.
Value CumulativeSum(Builder& b, Value x, int64_t dimension);
Value CumulativeMaximum(Builder& b, Value x, int64_t dimension);

}  // namespace torch_xla
