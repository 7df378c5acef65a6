// Memory that is shared with other libraries of the same device, by DLPack.
#include <ATen/dlpack.h>
#include <torch/csrc/utils/pybind.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aten/dtype.h"
#include "aten/tensor.h"
#include "hlo/error.h"
#include "hlo/shape.h"
#include "lazy/data.h"
#include "lazy/sync.h"
#include "lazy/sync_mutex.h"
#include "python/bindings.h"

namespace torch_xla {
namespace {

namespace py = pybind11;

constexpr const char* kCapsule = "dltensor";  // until somebody has taken the tensor out of it

// As DLPack calls it; none where it has no name for such devices.
std::optional<DLDevice> DlpackDevice(const lazy::Device& device) {
  static const std::map<std::string, DLDeviceType> kTypes = {
      {"cpu", kDLCPU}, {"cuda", kDLCUDA}, {"rocm", kDLROCM}};
  const auto type = kTypes.find(device.client().platform_name());
  if (type == kTypes.end()) return std::nullopt;
  const int index = type->second == kDLCPU ? 0 : device.pjrt_device().local_hardware_id();
  if (index < 0) return std::nullopt;  // which of them is not known
  return DLDevice{type->second, index};
}

DLDataType DlpackType(hlo::ElementType type) {
  using enum hlo::ElementType;
  static const std::map<hlo::ElementType, DLDataTypeCode> kNarrowFloats = {
      {kBF16, kDLBfloat},
      {kF8E4M3FN, kDLFloat8_e4m3fn},
      {kF8E4M3FNUZ, kDLFloat8_e4m3fnuz},
      {kF8E5M2, kDLFloat8_e5m2},
      {kF8E5M2FNUZ, kDLFloat8_e5m2fnuz}};
  const auto narrow = kNarrowFloats.find(type);
  const DLDataTypeCode code = narrow != kNarrowFloats.end() ? narrow->second
                              : type == kPred               ? kDLBool
                              : hlo::IsComplex(type)        ? kDLComplex
                              : hlo::IsFloat(type)          ? kDLFloat
                              : hlo::IsSignedInteger(type)  ? kDLInt
                                                            : kDLUInt;
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * hlo::ByteWidth(type)), 1};
}

// A tensor's memory as others see it. It is nobody's to write to while this lives.
struct Exported {
  Exported(const at::Tensor& tensor, const lazy::Data& data, DLDevice device)
      : loan(data),
        buffer(loan.data().SharedBuffer()),
        memory(*buffer),
        sizes(tensor.sizes().vec()),
        strides(hlo::RowMajorStrides(sizes)) {
    managed.dl_tensor = {.data = memory.data(),
                         .device = device,
                         .ndim = static_cast<int32_t>(sizes.size()),
                         .dtype = DlpackType(ToElementType(tensor.scalar_type())),
                         .shape = sizes.data(),
                         .strides = strides.data(),
                         .byte_offset = 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) {
      delete static_cast<Exported*>(self->manager_ctx);
    };
  }

  lazy::Loan loan;
  std::shared_ptr<const pjrt::Buffer> buffer;
  pjrt::Buffer::ExternalReference memory;
  std::vector<int64_t> sizes, strides;
  DLManagedTensor managed{};
};

// The data that a tensor is the whole of; the work that makes it has started.
lazy::Reference<lazy::Data> WholeData(const at::Tensor& tensor) {
  const XlaTensor impl = CheckedImpl(tensor);
  return impl.view() ? WholeData(tensor.clone()) : lazy::Materialized(impl.xla_storage());
}

// Null where the plugin gives no addresses, as those in a server's memory would mean nothing, and
// where it holds the contents in an order of its own.
std::unique_ptr<Exported> ExportMemory(const at::Tensor& tensor) {
  const std::optional<DLDevice> device = DlpackDevice(*CheckedImpl(tensor).xla_device());
  if (!device) return nullptr;
  const lazy::Reference<lazy::Data> data = WholeData(tensor);
  try {
    data->Address();  // waits
    data->RaiseFailedChecks();
    if (!data->SharedBuffer()->IsRowMajor()) return nullptr;
    const std::lock_guard lock(lazy::SyncMutex());
    return std::make_unique<Exported>(tensor, *data, *device);
  } catch (const hlo::Error& error) {
    if (error.code() != hlo::ErrorCode::kUnimplemented) throw;
    return nullptr;
  }
}

py::capsule ToDlpack(const at::Tensor& tensor) {
  std::unique_ptr<Exported> exported = WithoutGil([&] { return ExportMemory(tensor); });
  TORCH_CHECK(exported, "A tensor on ", tensor.device(),
              " has no memory that DLPack could hand over. Use tensor.cpu() for a copy that has.");
  py::capsule capsule(&exported->managed, kCapsule, [](PyObject* object) {
    if (!PyCapsule_IsValid(object, kCapsule)) return;
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(object, kCapsule));
    managed->deleter(managed);
  });
  exported.release();
  return capsule;
}

// Whether `tensor`, one of torch's own devices, lies in the memory of the xla device.
bool IsOnDevice(const at::Tensor& tensor, const lazy::Device& device) {
  const std::optional<DLDevice> own = DlpackDevice(device);
  if (!own) return false;
  if (own->device_type == kDLCPU) return tensor.is_cpu();
  return tensor.is_cuda() && tensor.get_device() == own->device_id;  // as torch calls ROCm's, too
}

// An xla tensor of the memory of a dense row-major tensor, whose contents must be there and stay.
at::Tensor ShareMemory(const at::Tensor& tensor) {
  lazy::Device* device = DeviceFromString("");
  const bool is_plain = tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
  TORCH_CHECK(IsOnDevice(tensor, *device) && is_plain, "A tensor on ", tensor.device(),
              " has no memory that ", DeviceToString(device), " could share");
  const hlo::Shape shape(ToElementType(tensor.scalar_type()), tensor.sizes().vec());
  auto view = device->client().ViewOf(tensor.data_ptr(), shape, device->pjrt_device(),
                                      [kept = tensor.detach()]() mutable { kept.reset(); });
  return MakeTensor(device,
                    {lazy::Node::MakeData(lazy::Data::Borrowed(device, shape, std::move(view)),
                                          lazy::InternShape(shape).get()),
                     0});
}

}  // namespace

void BindDlpack(py::module_& m) {
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  m.def("_to_dlpack", &ToDlpack);
  m.def("_is_on_device", [](const at::Tensor& tensor) {
    return WithoutGil([&] { return IsOnDevice(tensor, *DeviceFromString("")); });
  });
  m.def("_share_memory", &ShareMemory, Unlocked());
}

}  // namespace torch_xla
