// Values written where a mask is true.
#pragma once

#include "aten/lowering.h"

namespace torch_xla {

// The n-th true element of the mask, which broadcasts with x, takes the source's n-th.
Value MaskedScatter(Builder& b, Value x, Value mask, Value source);

}  // namespace torch_xla
