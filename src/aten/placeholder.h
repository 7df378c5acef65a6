// Tensors that stand for arguments while a function is recorded.
#pragma once

#include <ATen/core/Tensor.h>

#include "lazy/device.h"
#include "lazy/node.h"

namespace torch_xla {

// A leaf without data.
lazy::Value PlaceholderValue(lazy::Device* device, lazy::ShapeRef shape);

// A tensor whose value is such a leaf, in the order that `strides` say: reading it throws.
at::Tensor Placeholder(lazy::Device* device, at::ScalarType type, c10::IntArrayRef sizes,
                       c10::IntArrayRef strides);

}  // namespace torch_xla
