// Gradients beside views that have changed their shape in place (`squeeze_`, `t_`, …).
#pragma once

#include <ATen/core/TensorBase.h>

namespace torch_xla {

// To be called before torch makes a view's gradient function anew, which it does by calling the
// operators of the view on its base: from here on, with the shape that the base had then.
void FollowBase(const at::TensorBase& view);

}  // namespace torch_xla
