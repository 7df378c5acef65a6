// The tensor on the xla device: no memory of its own, but a place in a lazy::Storage, seen directly
// or through a view. It reports the sizes, strides and offset that eager's tensor would have
// (layout.h), so that everything in torch that decides by strides (view or copy?) decides as in
// eager.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include "hlo/error.h"
#include "lazy/storage.h"

namespace torch_xla {

// What an xla tensor shows: a storage, or through a view a part of it.
struct TensorContents {
  lazy::Reference<lazy::Storage> storage;
  lazy::Reference<lazy::View> view;  // null: all of the storage
};

class XlaTensorImpl final : public c10::TensorImpl {
 public:
  // Sees all of the storage, in its order.
  explicit XlaTensorImpl(lazy::Reference<lazy::Storage> storage);
  // Sees a view of it.
  XlaTensorImpl(lazy::Reference<lazy::Storage> storage, lazy::Reference<lazy::View> view,
                at::ScalarType type, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                int64_t offset);

  TensorContents& contents() { return contents_; }

  // A view takes part in autograd if its base does, whether or not it is made in inference mode.
  void FollowIntoInference(c10::TensorImpl& base);

  // Makes `target`, an implementation of torch's own class, an xla tensor with `source`'s contents:
  // what `variable.set_data` does to a CPU tensor when LibTorch moves a module. Such a tensor keeps
  // its contents in its backend metadata.
  static void Adopt(c10::TensorImpl* target, const at::TensorBase& source);
  // Makes an xla tensor, adopted or not, one of the CPU, with the memory of `source`.
  static void Abandon(c10::TensorImpl* target, const at::TensorBase& source);

  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(
      const c10::VariableVersion& version_counter,
      bool allow_tensor_metadata_change) const override;
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(
      c10::VariableVersion&& version_counter, bool allow_tensor_metadata_change) const override;
  void shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& impl) override;
  void release_resources() override;
  const c10::Storage& storage() const override;  // storage_face.h
  const char* tensorimpl_type_name() const override { return "XlaTensorImpl"; }

 private:
  TensorContents contents_;  // no storage: it was abandoned
};

// The contents of a tensor that was adopted. Each tensor has its own: cloned with the metadata.
class AdoptedContents final : public c10::BackendMeta {
 public:
  explicit AdoptedContents(TensorContents contents) : contents(std::move(contents)) {}
  c10::intrusive_ptr<c10::BackendMeta> clone(
      const c10::intrusive_ptr<c10::BackendMeta>&) const override {
    return c10::make_intrusive<AdoptedContents>(contents);
  }
  TensorContents contents;
};

// An xla tensor that is what it seems: of no subclass, in no functional transform, without a
// tangent, and neither conjugated nor negated lazily. Kernels above autograd may record it.
bool IsPlainTensor(const at::Tensor& tensor);

// An xla tensor as this layer uses it: valid while the tensor is.
class XlaTensor {
 public:
  explicit XlaTensor(c10::TensorImpl* impl)
      : impl_(impl),
        contents_(impl->get_backend_meta() == nullptr
                      ? &static_cast<XlaTensorImpl*>(impl)->contents()
                      : &static_cast<AdoptedContents*>(impl->get_backend_meta())->contents) {}

  const lazy::Reference<lazy::Storage>& xla_storage() const { return contents_->storage; }
  const lazy::Reference<lazy::View>& view() const { return contents_->view; }  // may be null
  lazy::Device* xla_device() const { return contents_->storage->device(); }
  const TensorContents& contents() const { return *contents_; }

  // The value now; recorded, not computed.
  lazy::Value Read() const {
    return contents_->view ? contents_->view->Read() : contents_->storage->value();
  }
  // `value` has this tensor's type and dimensions; into a view, or ones that are stretched to them.
  void Write(const lazy::Value& value) const;
  // This tensor becomes the whole of another storage.
  void Rebind(lazy::Reference<lazy::Storage> storage) const;
  // This tensor becomes what another one is: its view of its storage.
  void ShareStorage(const XlaTensor& other) const;
  // An adopted tensor, which torch looks at as at any other, shows its storage's face.
  void ShowStorage() const;

  const XlaTensor* operator->() const { return this; }
  const XlaTensor& operator*() const { return *this; }

 private:
  c10::TensorImpl* impl_;
  TensorContents* contents_;
};

// torch traces with tensors, and its transforms wrap some, that say they are on xla and are none of
// ours.
inline bool IsTracedOnly(const at::TensorBase& tensor) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  return impl->get_backend_meta() == nullptr && dynamic_cast<XlaTensorImpl*>(impl) == nullptr;
}
// Whether the tensor is one of ours. Only what has one of these keys may be no more than a wrapper.
inline bool IsXla(const at::TensorBase& tensor) {
  constexpr c10::DispatchKeySet kOfWrappers(
      {c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper,
       c10::DispatchKey::Functionalize, c10::DispatchKey::Batched, c10::DispatchKey::Python});
  if (!tensor.defined()) return false;
  const c10::DispatchKeySet keys = tensor.key_set();
  return keys.has(c10::DispatchKey::XLA) && (!keys.has_any(kOfWrappers) || !IsTracedOnly(tensor));
}
// The tensor must be IsXla.
inline XlaTensor Impl(const at::TensorBase& tensor) {
  return XlaTensor(tensor.unsafeGetTensorImpl());
}
// For what comes from outside: throws where the tensor is none of ours.
XlaTensor CheckedImpl(const at::Tensor& tensor);

// Throws what a CPU tensor among xla tensors gets: "Input tensor is not an XLA tensor:
// torch.FloatTensor", with the operator and the argument (its name, or its place counted from 1).
[[noreturn]] void ThrowNotXla(const at::Tensor& tensor, const std::string& op, int64_t position);

// A new tensor, alone in a new storage. Row-major (layout.h).
at::Tensor MakeTensor(lazy::Device* device, lazy::Value value);
// A new tensor that sees `base`'s storage through `view`; null: all of it.
at::Tensor MakeView(const at::Tensor& base, lazy::Reference<lazy::View> view, at::ScalarType type,
                    c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset);
// "xla" and "xla:0" are the current and the first device. Starts the runtime.
lazy::Device* ToLazyDevice(c10::Device device);
c10::Device ToTorchDevice(const lazy::Device* device);

// The chain of views to all of a storage's memory in its order, as elements of the type.
lazy::ViewChain WholeMemory(const lazy::Storage& storage, hlo::ElementType type);

// The tensor's value. Throws where it is none of ours, as WriteInto does.
lazy::Value ReadValue(const at::Tensor& tensor);
// Writes into `self`, through its view and into everything that shares its memory. `value` has
// self's dimensions (a broadcastable shape otherwise, which is stretched) and any type, which is
// converted.
void WriteInto(const at::Tensor& self, const lazy::Value& value);
void WriteInto(const at::Tensor& self, const at::Tensor& value);

// The value in another type; as a stretched shape.
lazy::Value ConvertValue(const lazy::Value& value, hlo::ElementType type);
lazy::Value ExpandValue(const lazy::Value& value, const hlo::Dimensions& dimensions);

// A number as data of the given type.
lazy::Value ScalarValue(const at::Scalar& scalar, hlo::ElementType type);
// A CPU tensor copied to the device.
lazy::Value UploadTensor(lazy::Device* device, const at::Tensor& tensor);
// Copies of xla tensors on the CPU, computing what is pending first, that lie as eager's copies do;
// others are returned as they are.
std::vector<at::Tensor> DownloadTensors(at::TensorList tensors);
at::Tensor DownloadTensor(const at::Tensor& tensor);

// Turns an hlo::Error into torch's exception: IndexError for kOutOfRange, NotImplementedError for
// kUnimplemented, OutOfMemoryError for kResourceExhausted, else RuntimeError; or what a thrower
// below throws.
[[noreturn]] void RethrowAsTorchError(const hlo::Error& error, const std::string& op);
// Each throws an exception with the message, for what torch has no type of exactly.
struct ErrorThrowers {
  using Thrower = void (*)(const std::string& message);
  Thrower out_of_range = nullptr;   // hlo::ErrorCode::kOutOfRange
  Thrower missing_value = nullptr;  // lazy::MissingValue
};
// Once, by a layer that has such types, before it lets others record. They live for ever.
void SetErrorThrowers(const ErrorThrowers* throwers);

}  // namespace torch_xla
