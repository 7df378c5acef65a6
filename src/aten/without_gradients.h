// Who asks for a gradient. Torch's kernels for gradients are left out where nobody does
// (without_gradients.cc; of views, views_without_gradients.cc).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>

#include <optional>
#include <string>

namespace torch_xla::without_gradients {

// Torch's kernels for gradients are those of every backend that has none of its own.
inline constexpr c10::DispatchKey kTorchs = c10::DispatchKey::AutogradOther;

// Whether a gradient or a tangent is asked of an argument.
inline bool TakesPart(bool grad_mode, const at::Tensor& tensor) {
  if (!tensor.defined()) return false;
  return (grad_mode && tensor.requires_grad()) || tensor._fw_grad(/*level=*/0).defined();
}
inline bool TakesPart(bool grad_mode, const std::optional<at::Tensor>& tensor) {
  return tensor && TakesPart(grad_mode, *tensor);
}
template <typename T>
bool TakesPart(bool, const T&) {
  return false;
}

// "add_.Tensor", of an operator of torch's list of them.
template <typename Op>
std::string NameOf() {
  const std::string overload = Op::overload_name;
  return overload.empty() ? Op::name : Op::name + ("." + overload);
}

}  // namespace torch_xla::without_gradients
