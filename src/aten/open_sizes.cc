#include "aten/open_sizes.h"

#include "aten/op.h"
#include "lazy/programs_of_any_size.h"

namespace torch_xla {
namespace {

Value OfSizes(Builder& b, Value made, Value like) {
  made = b.BroadcastTo(made, like->dimensions());
  return b.Select(b.Ne(like, like), made, made);
}

}  // namespace

at::Tensor OfSizesOf(const at::Tensor& like, const at::Tensor& made) {
  if (!lazy::HasOpenSizes() || like.device() != made.device() || like.layout() != at::kStrided) {
    return made;
  }
  const lazy::Value value = CheckedImpl(like).Read();
  return value.node->has_open_sizes() ? Record<&OfSizes>(made, like) : made;
}

}  // namespace torch_xla
