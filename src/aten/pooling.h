// What pooling over windows of any kind is made of.
#pragma once

#include "aten/lowering.h"

namespace torch_xla {

// Adds (or with kOr: writes) each gradient at its position among the elements of `dimensions`' last
// `spatial_rank` dimensions.
Value ScatterToPositions(Builder& b, Value gradient, Value positions, const Dimensions& dimensions,
                         int64_t spatial_rank, Opcode combiner);

}  // namespace torch_xla
