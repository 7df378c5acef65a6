// A view made again by torch's operators.
#pragma once

#include <ATen/core/Tensor.h>

#include "lazy/view.h"

namespace torch_xla {

// The part of `base` that the chain shows, as a view of it. Throws where it cannot be one. What
// asks for gradients of views has them, as long as no step is a bitcast.
at::Tensor ShowAgain(at::Tensor base, const lazy::ViewChain& chain);

}  // namespace torch_xla
