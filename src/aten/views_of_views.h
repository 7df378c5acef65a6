// Views of views of views.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_xla {

// Keeps what torch has stored with `view`, to make it anew from its base, as small as that of
// `self`, of which `view` is a view. Nobody else knows `view` yet.
void BoundViews(const at::Tensor& self, const at::Tensor& view);

}  // namespace torch_xla
