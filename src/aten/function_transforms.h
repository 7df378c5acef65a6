// What kernels above autograd ask of function transforms (torch.func).
#pragma once

#include <ATen/FuncTorchTLS.h>
#include <c10/util/Exception.h>

namespace torch_xla {

// Whether a torch::autograd::Function may be applied: in the middle of a transform torch refuses
// those that are written in C++.
inline bool MayDifferentiateHere() {
  const auto& transforms = at::functorch::functorchTLSAccessor();
  if (!transforms) return true;
  try {
    transforms->checkSupportsCppAutogradFunction();
  } catch (const c10::Error&) {
    return false;
  }
  return true;
}

}  // namespace torch_xla
