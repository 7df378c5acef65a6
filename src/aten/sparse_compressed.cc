#include "aten/sparse_compressed.h"

#include <ATen/SparseCsrTensorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <utility>

namespace torch_xla {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

// torch's own class refuses devices that it does not know by name: it is made for the CPU, without
// elements, and moves.
class XlaCompressedImpl final : public at::SparseCsrTensorImpl {
 public:
  XlaCompressedImpl(at::Device device, at::Layout layout, caffe2::TypeMeta type)
      : SparseCsrTensorImpl(DispatchKeySet(DispatchKey::SparseCsrCPU), at::kCPU, layout, type) {
    key_set_ = key_set_.remove_backend(c10::BackendComponent::CPUBit)
                   .remove(DispatchKey::AutocastCPU)
                   .add(DispatchKeySet(c10::BackendComponent::XLABit))
                   .add(DispatchKey::AutocastXLA);
    device_opt_ = device;
  }

  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(
      const c10::VariableVersion& version_counter,
      bool allow_tensor_metadata_change) const override {
    if (IsIntercepted()) {
      return SparseCsrTensorImpl::shallow_copy_and_detach(version_counter,
                                                          allow_tensor_metadata_change);
    }
    auto copy = c10::make_intrusive<XlaCompressedImpl>(device(), layout_impl(), dtype());
    TensorImpl::copy_tensor_metadata(this, copy.get(), version_counter,
                                     allow_tensor_metadata_change);
    copy->crow_indices_ = crow_indices_;
    copy->col_indices_ = col_indices_;
    copy->values_ = values_;
    copy->refresh_numel();
    return copy;
  }
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(
      c10::VariableVersion&& version_counter, bool allow_tensor_metadata_change) const override {
    return shallow_copy_and_detach(std::as_const(version_counter), allow_tensor_metadata_change);
  }

 private:
  // Whether a mode of Python's makes the copy.
  static bool IsIntercepted() {
    return c10::impl::TorchDispatchModeTLS::stack_len() > 0 &&
           !c10::impl::tls_is_dispatch_key_excluded(DispatchKey::Python);
  }
};

}  // namespace

at::Tensor MakeCompressed(const at::Tensor& compressed, const at::Tensor& plain,
                          const at::Tensor& values, c10::SymIntArrayRef size, at::Layout layout) {
  auto impl = c10::make_intrusive<XlaCompressedImpl>(values.device(), layout, values.dtype());
  impl->set_member_tensors(compressed, plain, values, size);
  return at::Tensor(std::move(impl));
}

}  // namespace torch_xla
