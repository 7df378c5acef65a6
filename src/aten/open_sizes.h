// What is made as large as a tensor of whose sizes exports forget some (mark_dynamic).
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_xla {

// `made`, broadcast to the sizes of `like`, which says so in the graph where exports ask for it:
// otherwise it is as it was.
at::Tensor OfSizesOf(const at::Tensor& like, const at::Tensor& made);

}  // namespace torch_xla
