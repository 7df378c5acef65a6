// A matrix on xla of compressed rows or columns (CSR, CSC, BSR, BSC).
#pragma once

#include <ATen/ATen.h>

namespace torch_xla {

// A tensor of these parts, which it shares; nothing is checked. They are on one xla device;
// `values` has the tensor's type.
at::Tensor MakeCompressed(const at::Tensor& compressed, const at::Tensor& plain,
                          const at::Tensor& values, c10::SymIntArrayRef size, at::Layout layout);

}  // namespace torch_xla
