// Products of matrices that other families compose.
#pragma once

#include <optional>

#include "aten/lowering.h"

namespace torch_xla {

// [..., m, k] x [..., k, n] with equal leading (batch) dimensions.
Value BatchMatMul(Builder& b, Value x, Value y);
// The same with the last two dimensions of either swapped first: x^T y, x y^T. The result is of the
// operands' type if none is given.
Value BatchMatMul(Builder& b, Value x, bool transpose_x, Value y, bool transpose_y,
                  std::optional<ElementType> type = std::nullopt);
// The last two dimensions swapped.
Value SwapLastTwo(Builder& b, Value x);

}  // namespace torch_xla
