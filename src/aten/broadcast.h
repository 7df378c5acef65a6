// torch's broadcasting: shapes are aligned at their last dimension, and a size of 1 or a missing
// dimension stretches.
#pragma once

#include "aten/lowering.h"

namespace torch_xla {

// The common shape; an error in torch's words when there is none.
Dimensions BroadcastDimensions(const Dimensions& a, const Dimensions& b);
Dimensions BroadcastDimensions(const Values& xs);
// The same for an element-wise operator, whose user is told which two operands do not fit.
Dimensions ElementwiseDimensions(const Values& xs);
// All stretched to their common shape.
std::pair<Value, Value> Broadcast(Builder& b, Value x, Value y);
void BroadcastAll(Builder& b, Values& xs);

}  // namespace torch_xla
