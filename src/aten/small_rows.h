// Kernels of ours for graphs that run without a program (interpreter.cc), in place of torch's,
// which prepare for any strides, types and numbers of indices: rows and elements of float32 arrays,
// by one list of positions or a mask. They give torch's bits, and undefined where torch's kernel is
// to do it: for other operands, and for positions out of range.
#pragma once

#include <ATen/ATen.h>

namespace torch_xla {

// x[positions], of [n, …] and [count]; negative positions count from the end.
at::Tensor TakeRowsOnHost(const at::Tensor& x, const at::Tensor& positions);
// x.index_add(0, positions, rows), of [n, …], [count] and [count, …].
at::Tensor AddRowsOnHost(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& rows);
// x, and at the n-th true element of the mask, which has x's shape, the n-th of the values more.
at::Tensor AddSelectedOnHost(const at::Tensor& x, const at::Tensor& mask, const at::Tensor& values);

}  // namespace torch_xla
