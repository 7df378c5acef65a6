// Operators that make numbers in a row, with out=.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_xla {

// Into `out`, in its order, whatever its shape, if they are as many; else `out` is resized.
at::Tensor& WriteNumbers(at::Tensor& out, const at::Tensor& numbers);
// The same, with eager's warning where a target that has elements is resized.
at::Tensor& WriteRange(at::Tensor& out, const at::Tensor& numbers);

}  // namespace torch_xla
