// Tensors that stand for arguments while a function is recorded.
#pragma once

#include <ATen/ATen.h>

#include "lazy/device.h"

namespace torch_xla {

// A tensor whose value is a leaf without data, in the order that `strides` say: reading it throws.
at::Tensor Placeholder(lazy::Device* device, at::ScalarType type, c10::IntArrayRef sizes,
                       c10::IntArrayRef strides);

}  // namespace torch_xla
