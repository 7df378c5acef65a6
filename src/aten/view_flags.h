// Conjugate and negative views: data and a flag. torch resolves the flags before most operators,
// and leaves them to the kernels of products, triangular systems and copies.
#pragma once

#include <ATen/core/Tensor.h>

#include "lazy/node.h"

namespace torch_xla {

// `value`, conjugated and negated as `tensor`'s flags say.
lazy::Value ResolveFlags(const at::Tensor& tensor, lazy::Value value);
// The tensor's value so; it must be on xla.
lazy::Value ResolvedValue(const at::Tensor& tensor);

}  // namespace torch_xla
