#include "aten/view_functions.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <exception>

namespace torch_xla {

bool Layout::operator==(const Layout& other) const {
  if (sizes != other.sizes) return false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && strides[d] != other.strides[d]) return false;
  }
  return true;
}

Layout LayoutOf(const at::TensorBase& x) { return {x.sizes().vec(), x.strides().vec()}; }

torch::autograd::DifferentiableViewMeta* MetaOf(const at::TensorBase& view) {
  auto* meta = torch::autograd::impl::get_view_autograd_meta(view);
  const bool has_function =
      meta != nullptr && meta->has_bw_view() && meta->get_backward_view().has_view_fn();
  return has_function ? meta : nullptr;
}

std::unique_ptr<torch::autograd::ViewFunc>& FunctionOf(
    torch::autograd::DifferentiableViewMeta& meta) {
  return const_cast<std::unique_ptr<torch::autograd::ViewFunc>&>(meta.get_backward_view().view_fn_);
}

bool Finds(const torch::autograd::ViewFunc& function, const at::Tensor& base,
           const at::TensorBase& view) try {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard unseen(c10::python_ks);  // by the user's modes
  const at::Tensor found = function(base);
  return found.storage_offset() == view.storage_offset() && LayoutOf(found) == LayoutOf(view);
} catch (const std::exception&) {
  return false;
}

}  // namespace torch_xla
