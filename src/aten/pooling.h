// What pooling over windows of any kind is made of.
#pragma once

#include "aten/lowering.h"

namespace torch_xla {

// What a maximum starts from.
Value Lowest(Builder& b, ElementType type);
// Of two (value, position) pairs the larger one, or NaN against a number, and among equals the one
// that stands first: in this form the order of combination does not matter. A negative position is
// none. Each has its type.
hlo::Computation* LargerPair(Builder& b, ElementType value, ElementType position);
// Adds (or with kOr: writes) each gradient at its position among the elements of `dimensions`' last
// `spatial_rank` dimensions.
Value ScatterToPositions(Builder& b, Value gradient, Value positions, const Dimensions& dimensions,
                         int64_t spatial_rank, Opcode combiner);

}  // namespace torch_xla
