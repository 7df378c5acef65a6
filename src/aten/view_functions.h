// How torch makes views anew. It makes the gradient function of a view anew after each write, on
// most devices by the view's strides, on this one by a function that calls the view's operators on
// its base.
#pragma once

#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace torch_xla {

struct Layout {
  std::vector<int64_t> sizes, strides;

  // The strides of one element say nothing.
  bool operator==(const Layout& other) const;
};

Layout LayoutOf(const at::TensorBase& x);

// A view that has such a function; null if it has none, or is no view.
torch::autograd::DifferentiableViewMeta* MetaOf(const at::TensorBase& view);

// torch hands out its functions as constant; who changes a view does not find another setter.
std::unique_ptr<torch::autograd::ViewFunc>& FunctionOf(
    torch::autograd::DifferentiableViewMeta& meta);

// Whether the function finds the place of `view` in its base as it is now.
bool Finds(const torch::autograd::ViewFunc& function, const at::Tensor& base,
           const at::TensorBase& view);

}  // namespace torch_xla
