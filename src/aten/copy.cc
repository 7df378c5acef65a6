// Moving contents: between devices, between dtypes, between tensors, and to Python numbers.
#include <ATen/Dispatch_v2.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <c10/util/strides.h>
#include <torch/library.h>

#include <cstring>

#include "aten/layout.h"
#include "aten/op.h"
#include "aten/out_rule.h"
#include "aten/storage_face.h"
#include "aten/view_flags.h"
#include "lazy/cut_reason.h"
#include "lazy/data.h"
#include "lazy/metrics.h"
#include "lazy/sync.h"

namespace torch_xla {
namespace {

// In other dimensions, as many elements as before.
Value ShowAs(Builder& b, Value x, Dimensions sizes) { return b.Reshape(x, sizes); }

Value AllEqual(Builder& b, Value x, Value y) {
  return b.Reduce(Opcode::kAnd, b.Eq(x, y), [&] {
    Dimensions all;
    for (int64_t i = 0; i < x->shape().rank(); ++i) all.push_back(i);
    return all;
  }());
}

// Throws for what stands in for a tensor on xla: copied by way of the CPU it would come back here.
void RefuseStandIn(const at::Tensor& tensor) {
  if (tensor.device().is_xla() && tensor.layout() == at::kStrided) CheckedImpl(tensor);
}

// `source`'s contents on `device`, from wherever they are.
lazy::Value ValueOn(lazy::Device* device, const at::Tensor& source) {
  if (!IsXla(source)) {
    RefuseStandIn(source);
    const lazy::CutScope scope(lazy::CutReason::Kind::kUpload, "aten::_to_copy");
    return UploadTensor(device, source.device().is_cpu() ? source : source.cpu());
  }
  if (Impl(source)->xla_device() == device) return ResolvedValue(source);
  return UploadTensor(device, DownloadTensor(source));
}

// What is written of `source`: what it shows before it is stretched, if that is all that is between
// it and its storage, since a write stretches again.
lazy::Value WrittenValue(lazy::Device* device, const at::Tensor& source) {
  if (IsXla(source) && !source.is_conj() && !source.is_neg()) {
    const XlaTensor impl = Impl(source);
    const bool is_stretched = impl->view() && impl->view()->chain().size() == 1 &&
                              impl->view()->chain()[0].kind == lazy::ViewStep::Kind::kExpand;
    if (is_stretched && impl->xla_device() == device) return impl->xla_storage()->value();
  }
  return ValueOn(device, source);
}

void CopyInto(const at::Tensor& self, const at::Tensor& source) {
  if (self.is_same(source)) return;
  at::assert_no_internal_overlap(self);
  CheckNoPartialOverlap(self, source);
  // Converted first on the side with fewer bytes: uploads of float64 for a float32 target halve.
  at::Tensor from = source;
  if (!IsXla(source) && source.element_size() > self.element_size()) {
    from = source.to(self.scalar_type());
  }
  if (!IsXla(source) && source.numel() > self.numel()) {
    from = from.expand(self.sizes());
  }
  TORCH_CHECK(from.sizes() == self.sizes() || at::is_expandable_to(source.sizes(), self.sizes()),
              "The size of tensor a (", self.sizes(), ") must match the size of tensor b (",
              source.sizes(), "): the source of copy_ does not broadcast to the target");
  const lazy::Value value = WrittenValue(CheckedImpl(self)->xla_device(), from);
  WriteInto(self, ResolveFlags(self, value));
}

// One of the two is an xla tensor.
at::Tensor& Copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  if (IsXla(self)) {
    CopyInto(self, source);
  } else {
    RefuseStandIn(self);
    self.copy_(DownloadTensor(source), non_blocking);
  }
  return self;
}

// The dispatcher's name for copies in which either side is xla.
at::Tensor CopyFrom(const at::Tensor& source, const at::Tensor& destination, bool non_blocking) {
  if (IsXla(destination)) {
    CopyInto(destination, source);
  } else {
    RefuseStandIn(destination);
    destination.copy_(DownloadTensor(source), non_blocking);
  }
  return destination;
}

at::Tensor CopyFromAndResize(const at::Tensor& source, const at::Tensor& destination) {
  if (IsXla(destination)) {
    if (destination.sizes() != source.sizes()) destination.resize_(source.sizes());
    CopyInto(destination, source);
  } else {
    RefuseStandIn(destination);
    at::Tensor host = DownloadTensor(source);
    destination.resize_(host.sizes());
    destination.copy_(host);
  }
  return destination;
}

std::vector<at::Tensor> ToCpu(at::TensorList tensors) { return DownloadTensors(tensors); }

at::Tensor ToCopy(const at::Tensor& self, std::optional<at::ScalarType> dtype,
                  std::optional<at::Layout> layout, std::optional<at::Device> device,
                  std::optional<bool> pin_memory, bool non_blocking,
                  std::optional<at::MemoryFormat> format) {
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "xla tensors are dense; layout ",
              layout.value_or(at::kStrided), " is not supported");
  RefuseStandIn(self);
  at::ScalarType type = dtype.value_or(self.scalar_type());
  c10::Device target = device.value_or(self.device());
  if (target.is_xla()) {
    lazy::Device* destination = ToLazyDevice(target);
    lazy::Value value = ValueOn(destination, self);
    at::Tensor copy = MakeTensor(destination, ConvertValue(value, ToElementType(type)));
    LayOut(copy, StridesLike(self, format));
    return copy;
  }
  at::Tensor host = DownloadTensor(self);
  return host.to(at::TensorOptions(type).device(target).pinned_memory(pin_memory), non_blocking,
                 /*copy=*/false, format);
}

// Values do not change, so a clone shares them.
at::Tensor Clone(const at::Tensor& self, std::optional<at::MemoryFormat> format) {
  lazy::Device* device = CheckedImpl(self)->xla_device();
  at::Tensor copy = MakeTensor(device, ResolvedValue(self));
  LayOut(copy, StridesLike(self, format));
  return copy;
}

// The number in a tensor that is all of a storage, without a tensor for it on the CPU.
at::Scalar NumberOfStorage(const at::Tensor& self) {
  std::byte bytes[16];
  try {
    const lazy::Reference<lazy::Data> data = lazy::Materialized(Impl(self)->xla_storage());
    data->ToHost(bytes, self.nbytes());
    data->RaiseFailedChecks();
  } catch (const hlo::Error& error) {
    RethrowAsTorchError(error, "copy to the CPU");
  }
  at::Scalar number;
  AT_DISPATCH_V2(self.scalar_type(), "_local_scalar_dense", AT_WRAP([&] {
                   scalar_t value;
                   std::memcpy(&value, bytes, sizeof(value));
                   number = at::Scalar(value);
                 }),
                 at::kBool, at::kHalf, at::kBFloat16, at::kComplexHalf,
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                 AT_EXPAND(AT_FLOAT8_TYPES));
  return number;
}

// Counted with what runs on the CPU: users look for it there, as what waits for the device.
at::Scalar LocalScalarDense(const at::Tensor& self) {
  TORCH_CHECK(self.numel() > 0, "_local_scalar_dense: Empty tensor not supported");
  static auto* read = lazy::Counter("aten::_local_scalar_dense");
  lazy::Count(read);
  const lazy::CutScope scope(lazy::CutReason::Kind::kRead, "aten::_local_scalar_dense");
  const bool is_storage =
      self.numel() == 1 && !CheckedImpl(self)->view() && !self.is_conj() && !self.is_neg();
  return is_storage ? NumberOfStorage(self) : DownloadTensor(self).item();
}

bool Equal(const at::Tensor& self, const at::Tensor& other) {
  if (self.sizes() != other.sizes()) return false;
  if (self.numel() == 0) return true;
  if (self.scalar_type() != other.scalar_type()) {
    const at::ScalarType type = at::result_type(self, other);
    return Equal(self.to(type), other.to(type));
  }
  const lazy::CutScope scope(lazy::CutReason::Kind::kRead, "aten::equal");
  return Record<&AllEqual>(self, other).item<bool>();
}

// All of a storage, flat, as elements of that type.
at::Tensor WholeOf(lazy::Reference<lazy::Storage> storage, at::ScalarType type) {
  at::Tensor whole = at::detail::make_tensor<XlaTensorImpl>(std::move(storage));
  whole = whole.as_strided({whole.numel()}, {1}, 0);
  if (whole.scalar_type() == type) return whole;
  // Of a wider type there are as many as are whole.
  const auto wide = static_cast<int64_t>(c10::elementSize(type));
  const int64_t narrow = whole.element_size();
  if (wide > narrow) {
    whole = whole.narrow(0, 0, whole.numel() * narrow / wide * (wide / narrow));
  }
  return whole.view(type);
}

// A storage of its own that begins with the elements of `memory`, dense and with those strides.
at::Tensor Grown(at::Tensor memory, at::IntArrayRef size, at::IntArrayRef strides) {
  const int64_t missing = c10::multiply_integers(size) - memory.numel();
  memory = at::cat({memory, at::empty({missing}, memory.options())});
  const hlo::Dimensions order = MemoryOrder(size, strides);
  hlo::Dimensions sizes = size.vec(), back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    sizes[i] = size[order[i]];
    back[order[i]] = static_cast<int64_t>(i);
  }
  lazy::OperandList operands;
  operands.Add(Impl(memory)->Read());
  at::Tensor grown = MakeTensor(Impl(memory)->xla_device(),
                                {lazy::Op<&ShowAs>::Record(operands, {std::move(sizes)}), 0});
  if (!order.empty()) {
    grown = grown.permute(back).clone(at::MemoryFormat::Contiguous);
    LayOut(grown, strides);
  }
  return grown;
}

// Eager keeps the memory and shows it in other dimensions, as this does. Where there is not enough
// of it, eager makes it larger for all tensors that share it, and here the tensor gets its own.
const at::Tensor& Resize(const at::Tensor& self, at::IntArrayRef size,
                         std::optional<at::MemoryFormat> format) {
  const at::DimVector strides = FormatStrides(size, format.value_or(at::MemoryFormat::Contiguous));
  if (self.sizes() == size && (!format || self.strides() == strides)) return self;
  at::Tensor memory = WholeOf(CheckedImpl(self)->xla_storage(), self.scalar_type());
  const int64_t offset = std::min(self.storage_offset(), memory.numel());
  const int64_t available = memory.numel() - offset;
  memory = c10::multiply_integers(size) <= available
               ? memory.as_strided(size, strides, offset)
               : Grown(memory.narrow(0, offset, available), size, strides);
  Impl(self)->ShareStorage(*Impl(memory));
  return self;
}

const at::Tensor& ResizeAs(const at::Tensor& self, const at::Tensor& other,
                           std::optional<at::MemoryFormat> format) {
  if (format == at::MemoryFormat::Preserve) format = other.suggest_memory_format();
  return Resize(self, other.sizes(), format);
}

// self becomes another tensor of other's storage.
at::Tensor& SetSource(at::Tensor& self, const at::Tensor& source) {
  if (self.is_same(source)) return self;
  if (!IsXla(source)) ThrowNotXla(source, "aten::set_", 2);
  TORCH_CHECK(self.scalar_type() == source.scalar_type(), "Could not set tensor of type ",
              source.scalar_type(), " to a tensor of type ", self.scalar_type());
  CheckedImpl(self)->ShareStorage(*Impl(source));
  return self;
}

// self becomes a tensor of a storage that torch's storage stands for, as which it was asked for.
at::Tensor& SetStorageAt(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                         at::IntArrayRef stride) {
  lazy::Reference<lazy::Storage> storage = StorageOf(source.unsafeGetStorageImpl());
  TORCH_CHECK(storage, "set_: this storage on ", source.device(),
              " is none of the xla device's, or no tensor shows it any longer");
  const at::Tensor whole = WholeOf(std::move(storage), self.scalar_type());
  const at::DimVector dense = c10::contiguous_strides(size);
  CheckedImpl(self)->ShareStorage(
      *Impl(whole.as_strided(size, stride.empty() ? at::IntArrayRef(dense) : stride, offset)));
  return self;
}

at::Tensor& SetStorage(at::Tensor& self, at::Storage source) {
  const auto bytes = static_cast<int64_t>(source.nbytes());
  return SetStorageAt(self, std::move(source), 0, {bytes / self.element_size()}, {1});
}

at::Tensor& SetEmpty(at::Tensor& self) { return self.set_(at::empty({0}, self.options())); }

bool IsSetTo(const at::Tensor& self, const at::Tensor& other) {
  return IsXla(other) && Impl(self)->xla_storage() == Impl(other)->xla_storage() &&
         self.sizes() == other.sizes() && self.strides() == other.strides() &&
         self.storage_offset() == other.storage_offset();
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&AllEqual>(+[](const at::Tensor& x, const at::Tensor& y) { return at::eq(x, y).all(); });
  m.impl("copy_", &Copy);
  m.impl("_copy_from", &CopyFrom);
  m.impl("_copy_from_and_resize", &CopyFromAndResize);
  m.impl("_to_cpu", &ToCpu);
  m.impl("_to_copy", &ToCopy);
  m.impl("clone", &Clone);
  m.impl("_local_scalar_dense", &LocalScalarDense);
  m.impl("equal", &Equal);
  m.impl("resize_", &Resize);
  m.impl("resize_as_", &ResizeAs);
  m.impl("set_.source_Tensor", &SetSource);
  m.impl("set_.source_Storage", &SetStorage);
  m.impl("set_.source_Storage_storage_offset", &SetStorageAt);
  m.impl("set_", &SetEmpty);
  m.impl("is_set_to", &IsSetTo);
}

}  // namespace
}  // namespace torch_xla
