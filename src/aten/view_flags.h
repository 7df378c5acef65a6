// Conjugate and negative views: data and a flag. torch resolves the flags before most operators,
// and leaves them to the kernels of products, triangular systems and copies.
#pragma once

#include <ATen/core/Tensor.h>

#include "aten/tensor.h"
#include "lazy/node.h"

namespace torch_xla {

// `value`, conjugated and negated as `tensor`'s flags say.
lazy::Value ResolveFlags(const at::Tensor& tensor, lazy::Value value);
// The tensor's value so; it must be on xla. Every operand comes through here, and hardly one has a
// flag.
inline lazy::Value ResolvedValue(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kFlags({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});
  lazy::Value value = Impl(tensor)->Read();
  if (!tensor.key_set().has_any(kFlags)) return value;
  return ResolveFlags(tensor, std::move(value));
}

}  // namespace torch_xla
