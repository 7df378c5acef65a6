#include "aten/tensor.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <c10/core/DeviceGuard.h>

#include <atomic>

#include "aten/elementwise.h"
#include "aten/layout.h"
#include "aten/lowering.h"
#include "aten/op.h"
#include "aten/storage_face.h"
#include "hlo/minifloat.h"
#include "lazy/cut_reason.h"
#include "lazy/data.h"
#include "lazy/device.h"
#include "lazy/live_data.h"
#include "lazy/metrics.h"
#include "lazy/recording_time.h"
#include "lazy/sync.h"
#include "lazy/tensor_counts.h"

namespace torch_xla {
namespace {

const c10::DispatchKeySet kKeys(c10::DispatchKey::XLA);

constexpr ErrorThrowers kNoThrowers;
std::atomic<const ErrorThrowers*> error_throwers{&kNoThrowers};

Value Expand(Builder& b, Value x, Dimensions dimensions) { return b.BroadcastTo(x, dimensions); }

[[maybe_unused]] const bool has_form = [] {
  RunBy<&Expand>(+[](const at::Tensor& x, at::IntArrayRef sizes) { return x.expand(sizes); });
  return true;
}();

// The sizes and strides of a tensor that is all of a storage, whose value is of that shape.
void ShowAll(c10::TensorImpl& tensor, const lazy::Storage& storage, const hlo::Shape& shape) {
  const hlo::Dimensions& sizes = shape.dimensions();
  if (storage.memory_order().empty()) {
    tensor.set_sizes_contiguous(sizes);
  } else {
    tensor.set_sizes_and_strides(sizes, OrderedStrides(sizes, storage.memory_order()));
  }
}

std::string SchemaArgumentName(const std::string& op, int64_t position) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name != op) continue;
    auto handle = dispatcher.findSchema(name);
    if (!handle) continue;
    int64_t seen = 0;
    for (const auto& argument : handle->schema().arguments()) {
      // How many tensors a list has, and so who comes after it, is not known here.
      if (argument.type()->isSubtypeOf(*c10::ListType::ofTensors()) ||
          argument.type()->isSubtypeOf(*c10::ListType::ofOptionalTensors())) {
        return "";
      }
      bool is_tensor = argument.type()->isSubtypeOf(*c10::TensorType::get()) ||
                       argument.type()->isSubtypeOf(*c10::OptionalType::ofTensor());
      if (is_tensor && ++seen == position) return argument.name();
    }
  }
  return "";
}

}  // namespace

XlaTensorImpl::XlaTensorImpl(lazy::Reference<lazy::Storage> storage)
    : TensorImpl(kKeys, caffe2::TypeMeta(), ToTorchDevice(storage->device())) {
  const lazy::Value value = storage->value();
  data_type_ = c10::scalarTypeToTypeMeta(ToScalarType(value.shape().element_type()));
  contents_.storage = std::move(storage);
  ShowAll(*this, *contents_.storage, value.shape());
}

XlaTensorImpl::XlaTensorImpl(lazy::Reference<lazy::Storage> storage,
                             lazy::Reference<lazy::View> view, at::ScalarType type,
                             c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset)
    : TensorImpl(kKeys, c10::scalarTypeToTypeMeta(type), ToTorchDevice(storage->device())),
      contents_{std::move(storage), std::move(view)} {
  set_sizes_and_strides(sizes, strides, offset);
}

void XlaTensorImpl::FollowIntoInference(c10::TensorImpl& base) {
  if (base.is_inference() == is_inference()) return;
  const auto autograd = c10::getAutogradRelatedKeySetFromBackend(c10::BackendComponent::XLABit);
  if (base.is_inference()) {
    set_version_counter(c10::VariableVersion());
    key_set_ = key_set_ - autograd;
  } else {
    key_set_ = key_set_ | autograd;
    set_version_counter(c10::VariableVersion(0));
  }
}

void XlaTensorImpl::Adopt(c10::TensorImpl* target, const at::TensorBase& source) {
  c10::TensorImpl* from = source.unsafeGetTensorImpl();
  TensorContents contents = XlaTensor(from).contents();
  copy_tensor_metadata(from, target, target->version_counter(),
                       target->allow_tensor_metadata_change());
  target->set_backend_meta(c10::make_intrusive<AdoptedContents>(std::move(contents)));
  XlaTensor(target).ShowStorage();
}

void XlaTensorImpl::Abandon(c10::TensorImpl* target, const at::TensorBase& source) {
  target->set_backend_meta(nullptr);
  if (auto* own = dynamic_cast<XlaTensorImpl*>(target)) own->contents_ = TensorContents();
  copy_tensor_metadata(source.unsafeGetTensorImpl(), target, target->version_counter(),
                       target->allow_tensor_metadata_change());
}

c10::intrusive_ptr<c10::TensorImpl> XlaTensorImpl::shallow_copy_and_detach(
    const c10::VariableVersion& version_counter, bool allow_tensor_metadata_change) const {
  if (!contents_.storage) {
    return TensorImpl::shallow_copy_and_detach(version_counter, allow_tensor_metadata_change);
  }
  auto copy = c10::make_intrusive<XlaTensorImpl>(contents_.storage, contents_.view,
                                                 c10::typeMetaToScalarType(dtype()), sizes(),
                                                 strides(), storage_offset());
  copy_tensor_metadata(this, copy.get(), version_counter, allow_tensor_metadata_change);
  return copy;
}

c10::intrusive_ptr<c10::TensorImpl> XlaTensorImpl::shallow_copy_and_detach(
    c10::VariableVersion&& version_counter, bool allow_tensor_metadata_change) const {
  if (!contents_.storage) {
    return TensorImpl::shallow_copy_and_detach(std::move(version_counter),
                                               allow_tensor_metadata_change);
  }
  auto copy = c10::make_intrusive<XlaTensorImpl>(contents_.storage, contents_.view,
                                                 c10::typeMetaToScalarType(dtype()), sizes(),
                                                 strides(), storage_offset());
  copy_tensor_metadata(this, copy.get(), std::move(version_counter), allow_tensor_metadata_change);
  return copy;
}

void XlaTensorImpl::shallow_copy_from(const c10::intrusive_ptr<TensorImpl>& impl) {
  const bool is_xla = impl->key_set().has(c10::DispatchKey::XLA);
  contents_ = is_xla ? XlaTensor(impl.get()).contents() : TensorContents();
  copy_tensor_metadata(impl.get(), this, version_counter(), allow_tensor_metadata_change());
  // An adopted source brings its backend metadata along; here the contents are in the object.
  if (get_backend_meta() != nullptr) set_backend_meta(nullptr);
}

void XlaTensorImpl::release_resources() {
  contents_ = TensorContents();
  TensorImpl::release_resources();
}

const c10::Storage& XlaTensorImpl::storage() const {
  return contents_.storage ? FaceOf(*contents_.storage) : TensorImpl::storage();
}

void XlaTensor::Write(const lazy::Value& value) const {
  const auto& view = contents_->view;
  if (!view) {
    contents_->storage->set_value(value);
    return;
  }
  using Kind = lazy::ViewStep::Kind;
  const bool is_stretched = c10::IntArrayRef(value.shape().dimensions()) != impl_->sizes();
  bool repeats = false, changes_type = false;
  for (const lazy::ViewStep& step : view->chain()) {
    repeats = repeats || step.kind == Kind::kExpand || step.kind == Kind::kAsStrided;
    changes_type = changes_type || step.kind == Kind::kBitcast;
  }
  if (!repeats || changes_type || view->chain().size() == 1) {
    view->Write(value, is_stretched);
    return;
  }
  // A later step may show one of several places of the same element: only the strides tell where.
  lazy::ViewStep step{Kind::kAsStrided};
  step.sizes = impl_->sizes().vec();
  step.strides = impl_->strides().vec();
  step.start = impl_->storage_offset();
  lazy::ViewChain chain = WholeMemory(*contents_->storage, value.shape().element_type());
  chain.push_back(std::move(step));
  view->WriteThrough(chain, value, is_stretched);
}

void XlaTensor::Rebind(lazy::Reference<lazy::Storage> storage) const {
  contents_->storage = std::move(storage);
  contents_->view = nullptr;
  impl_->set_storage_offset(0);
  ShowAll(*impl_, *contents_->storage, contents_->storage->value().shape());
  ShowStorage();
}

void XlaTensor::ShareStorage(const XlaTensor& other) const {
  *contents_ = *other.contents_;
  c10::TensorImpl* from = other.impl_;
  impl_->set_sizes_and_strides(from->sizes(), from->strides(), from->storage_offset());
  ShowStorage();
}

void XlaTensor::ShowStorage() const {
  if (impl_->get_backend_meta() == nullptr) return;
  impl_->set_storage_keep_dtype(FaceOf(*contents_->storage));
}

void ThrowNotXla(const at::Tensor& tensor, const std::string& op, int64_t position) {
  std::string argument = SchemaArgumentName(op, position);
  std::string type = tensor.defined() ? tensor.toString() : "undefined tensor";
  // As Python spells it: torch.FloatTensor.
  if (tensor.defined() && tensor.device().is_cpu() && type.rfind("CPU", 0) == 0) {
    type = "torch." + type.substr(3);
  } else {
    type = "torch." + type;
  }
  if (type.size() > 4 && type.substr(type.size() - 4) == "Type") {
    type = type.substr(0, type.size() - 4) + "Tensor";
  }
  TORCH_CHECK(false, "Input tensor is not an XLA tensor: ", type, ", argument #", position,
              argument.empty() ? "" : " '" + argument + "'", " of ", op,
              ". Move it to the xla device first (tensor.to('xla'), module.to('xla')).");
}

bool IsPlainTensor(const at::Tensor& tensor) {
  constexpr c10::DispatchKeySet kLazily(
      {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor});
  return tensor.device().is_xla() && !at::isTensorSubclassLike(tensor) &&
         !tensor.key_set().has_any(kLazily) && !tensor._fw_grad(0).defined();
}

at::Tensor MakeTensor(lazy::Device* device, lazy::Value value) {
  lazy::CountTensorMade();
  try {
    return at::detail::make_tensor<XlaTensorImpl>(lazy::Storage::Make(device, std::move(value)));
  } catch (const hlo::Error& error) {  // in eager mode, what the operation throws
    RethrowAsTorchError(error, "");
  }
}

at::Tensor MakeView(const at::Tensor& base, lazy::Reference<lazy::View> view, at::ScalarType type,
                    c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset) {
  auto impl = c10::make_intrusive<XlaTensorImpl>(Impl(base)->xla_storage(), std::move(view), type,
                                                 sizes, strides, offset);
  impl->FollowIntoInference(*base.unsafeGetTensorImpl());
  return at::Tensor(std::move(impl));
}

lazy::Device* ToLazyDevice(c10::Device device) {
  int index = device.has_index()
                  ? device.index()
                  : c10::impl::VirtualGuardImpl(c10::DeviceType::XLA).getDevice().index();
  try {
    return lazy::Runtime::Get().device(index);
  } catch (const hlo::Error& error) {
    TORCH_CHECK(false, error.what());
  }
}

c10::Device ToTorchDevice(const lazy::Device* device) {
  return c10::Device(c10::DeviceType::XLA, static_cast<c10::DeviceIndex>(device->ordinal()));
}

lazy::ViewChain WholeMemory(const lazy::Storage& storage, ElementType type) {
  using Kind = lazy::ViewStep::Kind;
  lazy::ViewChain chain;
  if (!storage.memory_order().empty()) {
    chain.push_back({.kind = Kind::kPermute, .sizes = storage.memory_order()});
  }
  const lazy::Value value = storage.value();
  const hlo::Shape& stored = value.shape();
  if (stored.element_type() == type) return chain;
  const auto from = static_cast<int64_t>(hlo::ByteWidth(stored.element_type()));
  const auto to = static_cast<int64_t>(hlo::ByteWidth(type));
  const int64_t count = stored.num_elements() * from / to;
  chain.push_back(
      {.kind = Kind::kAsStrided, .sizes = {(count * to + from - 1) / from}, .strides = {1}});
  chain.push_back({.kind = Kind::kBitcast, .type = type, .sizes = {count}});
  return chain;
}

XlaTensor CheckedImpl(const at::Tensor& tensor) {
  const bool is_wrapped = tensor.defined() && tensor.key_set().has(c10::DispatchKey::XLA);
  TORCH_CHECK(IsXla(tensor), "Input tensor is not an XLA tensor: ", tensor.toString(),
              is_wrapped ? ", which a transform or a trace stands in for" : "");
  return Impl(tensor);
}

lazy::Value ReadValue(const at::Tensor& tensor) { return CheckedImpl(tensor)->Read(); }

lazy::Value ConvertValue(const lazy::Value& value, hlo::ElementType type) {
  if (value.shape().element_type() == type) return value;
  lazy::OperandList operands;
  operands.Add(value);
  return {lazy::Op<&Cast>::Record(operands, {type}), 0};
}

lazy::Value ExpandValue(const lazy::Value& value, const hlo::Dimensions& dimensions) {
  if (value.shape().dimensions() == dimensions) return value;
  lazy::OperandList operands;
  operands.Add(value);
  try {
    return {lazy::Op<&Expand>::Record(operands, {dimensions}), 0};
  } catch (const hlo::Error&) {
    TORCH_CHECK(false, "output with shape ", c10::IntArrayRef(dimensions),
                " doesn't match the broadcast shape ",
                c10::IntArrayRef(value.shape().dimensions()));
  }
}

void WriteInto(const at::Tensor& self, const lazy::Value& value) {
  XlaTensor impl = CheckedImpl(self);
  lazy::Value converted = ConvertValue(value, ToElementType(self.scalar_type()));
  const c10::IntArrayRef dimensions = converted.shape().dimensions();
  const bool stretches_itself = impl->view() && at::is_expandable_to(dimensions, self.sizes());
  if (dimensions != self.sizes() && !stretches_itself) {
    converted = ExpandValue(converted, self.sizes().vec());
  }
  try {
    impl->Write(converted);
  } catch (const hlo::Error& error) {  // as above
    RethrowAsTorchError(error, "");
  }
}

void WriteInto(const at::Tensor& self, const at::Tensor& value) {
  WriteInto(self, ReadValue(value));
}

lazy::Value ScalarValue(const at::Scalar& scalar, hlo::ElementType type) {
  // As torch, which rounds such numbers from float.
  if (hlo::FindMinifloat(type)) return ConvertValue(ScalarValue(scalar, ElementType::kF32), type);
  std::byte bytes[16] = {};
  hlo::DispatchNative(type, [&]<typename T>() {
    T value;
    if constexpr (std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>) {
      auto complex = scalar.to<c10::complex<double>>();
      value = T(static_cast<typename T::value_type>(complex.real()),
                static_cast<typename T::value_type>(complex.imag()));
    } else if constexpr (std::is_same_v<T, bool>) {
      value = scalar.to<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      value = scalar.isUnsigned() ? static_cast<T>(scalar.toUInt64())
                                  : static_cast<T>(scalar.to<int64_t>());
    } else {
      value = static_cast<T>(static_cast<float>(0));
      double number = scalar.isComplex() ? scalar.toComplexDouble().real() : scalar.to<double>();
      if constexpr (std::is_same_v<T, double>) {
        value = number;
      } else {
        value = T(static_cast<float>(number));
      }
    }
    std::memcpy(bytes, &value, sizeof(T));
  });
  return {lazy::Node::MakeScalar(type, bytes), 0};
}

lazy::Value UploadTensor(lazy::Device* device, const at::Tensor& tensor) {
  static lazy::Metric* time = lazy::Metric::Get("TensorToData");
  const lazy::TimedSection timed(time);
  const lazy::RecordingTime recording;
  const bool has_flag = tensor.is_conj() || tensor.is_neg();
  const at::Tensor plain = has_flag ? tensor.resolve_conj().resolve_neg() : tensor;
  const at::Tensor dense = plain.is_contiguous() ? plain : plain.contiguous();
  ElementType type = ToElementType(dense.scalar_type());
  try {
    hlo::Shape shape(type, dense.sizes().vec());
    auto data = lazy::Data::FromHost(device, shape, dense.const_data_ptr());
    lazy::NoteUpload(data.get());
    const lazy::ShapeRef interned = data->shape();
    return {lazy::Node::MakeData(std::move(data), interned), 0};
  } catch (const hlo::Error& error) {
    RethrowAsTorchError(error, "copy to the xla device");
  }
}

namespace {

// Bytes of a storage that are cheaper to copy than to compile a program that takes a part of them.
constexpr int64_t kSmallStorage = 1 << 20;

bool ChangesType(const lazy::View& view) {
  for (const lazy::ViewStep& step : view.chain()) {
    if (step.kind == lazy::ViewStep::Kind::kBitcast) return true;
  }
  return false;
}

at::Tensor CopyToHost(const lazy::Data& data, at::ScalarType type) {
  at::Tensor host = at::empty(data.shape()->dimensions(), at::TensorOptions(type));
  if (host.numel() > 0) data.ToHost(host.mutable_data_ptr(), host.nbytes());
  data.RaiseFailedChecks();
  return host;
}

// A copy on the CPU, of the strides that eager's copy has: `value` in other places.
at::Tensor LaidOutLike(const at::Tensor& tensor, const at::Tensor& value) {
  const at::DimVector strides = StridesLike(tensor, std::nullopt);
  if (value.strides() == strides) return value;
  return at::empty_strided(value.sizes(), strides, value.options()).copy_(value);
}

// Elements of `data` that lie together there, as `tensor` shows them.
at::Tensor CopyPartToHost(const lazy::Data& data, const at::Tensor& tensor) {
  at::Tensor host = at::empty(tensor.sizes(), at::TensorOptions(tensor.scalar_type()));
  const size_t offset = tensor.storage_offset() * tensor.element_size();
  if (host.numel() > 0) data.PartToHost(host.mutable_data_ptr(), offset, host.nbytes());
  data.RaiseFailedChecks();
  return host;
}

at::Tensor Download(const at::Tensor& tensor) {
  XlaTensor impl = CheckedImpl(tensor);
  // The storage first, so that a view is read from data and not from its graph.
  lazy::Reference<lazy::Data> data = lazy::Materialized(impl->xla_storage());
  if (!impl->view()) return LaidOutLike(tensor, CopyToHost(*data, tensor.scalar_type()));
  const bool is_row_major = impl->xla_storage()->memory_order().empty();
  if (is_row_major && tensor.is_contiguous() && data->HasRowMajorBytes()) {
    return CopyPartToHost(*data, tensor);
  }
  int64_t bytes = data->shape()->byte_size();
  bool is_large_part = 2 * static_cast<int64_t>(tensor.nbytes()) >= bytes;
  if (!ChangesType(*impl->view()) && (bytes <= kSmallStorage || is_large_part)) {
    at::Tensor base = CopyToHost(*data, tensor.scalar_type());
    const hlo::Dimensions& order = impl->xla_storage()->memory_order();
    if (!order.empty()) base = base.permute(order).contiguous();
    at::Tensor part = base.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
    const bool is_all = part.numel() == base.numel() && part.is_non_overlapping_and_dense();
    return is_all ? part : part.clone();
  }
  data = lazy::Evaluate(impl->xla_device(), impl->Read());
  return LaidOutLike(tensor, CopyToHost(*data, tensor.scalar_type()));
}

}  // namespace

std::vector<at::Tensor> DownloadTensors(at::TensorList tensors) {
  const lazy::CutScope scope(lazy::CutReason::Kind::kRead, "aten::_to_cpu");
  std::vector<at::Tensor> out;
  for (const at::Tensor& tensor : tensors) {
    if (!IsXla(tensor)) {
      out.push_back(tensor);
      continue;
    }
    try {
      at::Tensor host = Download(tensor);
      // A conjugate or negative view is data and a flag.
      if (tensor.is_conj()) host = at::_conj(host).resolve_conj();
      if (tensor.is_neg()) host = at::_neg_view(host).resolve_neg();
      out.push_back(std::move(host));
    } catch (const hlo::Error& error) {
      RethrowAsTorchError(error, "copy to the CPU");
    }
  }
  return out;
}

at::Tensor DownloadTensor(const at::Tensor& tensor) {
  return DownloadTensors(at::TensorList(&tensor, 1))[0];
}

void SetErrorThrowers(const ErrorThrowers* throwers) { error_throwers = throwers; }

void RethrowAsTorchError(const hlo::Error& error, const std::string& op) {
  std::string message = op.empty() ? std::string(error.what()) : op + ": " + error.what();
  const ErrorThrowers& throwers = *error_throwers.load();
  if (throwers.missing_value != nullptr &&
      dynamic_cast<const lazy::MissingValue*>(&error) != nullptr) {
    throwers.missing_value(message);
  }
  switch (error.code()) {
    case hlo::ErrorCode::kOutOfRange:
      if (throwers.out_of_range != nullptr) throwers.out_of_range(error.what());
      TORCH_CHECK_INDEX(false, error.what());
    case hlo::ErrorCode::kUnimplemented:
      TORCH_CHECK_NOT_IMPLEMENTED(false, message);
    case hlo::ErrorCode::kResourceExhausted:
      TORCH_CHECK_WITH(OutOfMemoryError, false, message);
    case hlo::ErrorCode::kInvalidArgument:
      TORCH_CHECK(false, error.what());
    default:
      TORCH_CHECK(false, message);
  }
}

}  // namespace torch_xla
