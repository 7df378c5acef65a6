// Products of small float32 matrices, in graphs that run without a program (interpreter.cc): by the
// routine that torch's kernels call, with what they give it, without their preparation, which takes
// as long as such a product.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_xla {

// x y, and a bias, if it is defined, is added to each row. Undefined where the operands are no
// small matrices (and a vector) of that type: torch's kernel is to be called then, which gives the
// same bits.
at::Tensor ProductOnHost(const at::Tensor& x, const at::Tensor& y, const at::Tensor& bias = {});
// The same of rows, however they are arranged, and a transposed matrix.
at::Tensor LinearOnHost(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace torch_xla
