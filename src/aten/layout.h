// Where eager would lay tensors in memory. On this device values are row-major, and a layout is but
// what a tensor says of its strides, and its storage of the order of its dimensions: by them torch
// decides what may be a view, and programs ask for them (channels_last).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>

#include <string_view>

#include "hlo/shape.h"

namespace torch_xla {

// Whether the elements fill their memory, each at a place of its own.
bool IsDense(at::IntArrayRef sizes, at::IntArrayRef strides);
// A dense tensor's dimensions from the farthest apart to the nearest; empty if that is row-major.
hlo::Dimensions MemoryOrder(at::IntArrayRef sizes, at::IntArrayRef strides);
// The strides of a dense tensor whose dimensions lie in that order.
at::DimVector OrderedStrides(at::IntArrayRef sizes, at::IntArrayRef order);

// The strides of a new tensor of a format other than kPreserve. Throws for sizes of another rank
// than the format is of.
at::DimVector FormatStrides(at::IntArrayRef sizes, at::MemoryFormat format);
// The strides of a new tensor that lies as `x` does (kPreserve), or in the format.
at::DimVector StridesLike(const at::Tensor& x, std::optional<at::MemoryFormat> format);

// Lays `fresh` out, which nobody else sees yet, and whose storage it is all of. The strides are a
// dense tensor's.
void LayOut(const at::Tensor& fresh, at::IntArrayRef strides);

// Whether a result might lie otherwise than row-major because of this operand.
inline bool LiesOtherwise(const at::Tensor& x) {
  const c10::TensorImpl& impl = *x.unsafeGetTensorImpl();
  return !impl.is_contiguous() || impl.is_strides_like_channels_last();
}

using Operands = c10::SmallVector<const at::Tensor*, 4>;

// Lays out the result of the element-wise operation of that name. `has_number`: a number is an
// operand, too.
void LayOutElementwise(std::string_view name, const at::Tensor& result, Operands operands,
                       bool has_number);
// Lays out the results of the operation of that name ("aten::convolution").
void LayOutResults(std::string_view name, at::ArrayRef<const at::Tensor*> results,
                   const Operands& operands);

}  // namespace torch_xla
