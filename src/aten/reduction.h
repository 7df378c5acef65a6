// Reductions that other families compose. Dimensions are wrapped and sorted already (dimension.h);
// f16 and bf16 are accumulated in f32 and rounded at the end.
#pragma once

#include "aten/lowering.h"

namespace torch_xla {

Value Sum(Builder& b, Value x, const Dimensions& dimensions, bool keep_dimensions = false);
Value Mean(Builder& b, Value x, const Dimensions& dimensions, bool keep_dimensions = false);
Value Max(Builder& b, Value x, const Dimensions& dimensions, bool keep_dimensions = false);
Value Min(Builder& b, Value x, const Dimensions& dimensions, bool keep_dimensions = false);
// The sum of squared differences from the mean, divided by max(n - correction, 0).
struct Moments {
  Value mean, variance;
};
Moments MeanAndVariance(Builder& b, Value x, const Dimensions& dimensions, double correction,
                        bool keep_dimensions = false);
// The p-norm: a sum of powers' root; p may be 0 (what is not zero is counted) or infinite.
Value NormOver(Builder& b, Value x, double p, const Dimensions& dimensions, bool keep_dimensions);
// `reduced` (x's shape without, or with size 1 in, the dimensions) stretched over x's shape.
Value BroadcastReduced(Builder& b, Value reduced, const Dimensions& dimensions,
                       const Dimensions& full);
// The position of the largest (or smallest) element along a dimension, the first among equals; NaN
// counts as both. s64, the dimension removed.
Value ArgMax(Builder& b, Value x, int64_t dimension);
// The largest of x, and the least of `positions` (of x's shape, none negative) at which it stands;
// where it is NaN, the greatest at which NaN stands, as eager's pools have it.
std::pair<Value, Value> LargestWithPosition(Builder& b, Value x, Value positions,
                                            const Dimensions& reduced);
Value ArgMin(Builder& b, Value x, int64_t dimension);

}  // namespace torch_xla
