#include "aten/host_kernel.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "aten/dtype.h"
#include "aten/host_tensor.h"
#include "aten/layout.h"
#include "aten/parallel_kernels.h"
#include "aten/plain_kernels.h"
#include "aten/tensor.h"
#include "lazy/device.h"
#include "lazy/live_data.h"
#include "lazy/sync.h"

namespace torch_xla {
namespace {

// What starting threads costs is nothing beside it.
constexpr int64_t kManyElements = int64_t{1} << 22;

// What the tensor shows, as a kernel has left it; undefined where none has, or it lies otherwise.
at::Tensor KeptValues(const at::Tensor& self) {
  const XlaTensor impl = CheckedImpl(self);
  const bool is_row_major = self.is_contiguous() && impl.xla_storage()->memory_order().empty();
  if (!is_row_major || self.is_conj() || self.is_neg()) return {};
  try {
    const lazy::Reference<lazy::Data> data = lazy::Materialized(impl.xla_storage());
    const auto contents = data->SharedHostContents();
    const auto* kept = dynamic_cast<const HostTensor*>(contents.get());
    if (kept == nullptr) return {};
    const at::Tensor& values = kept->tensor();
    // A view of all of them has them in the same order.
    if (values.numel() != self.numel() || values.scalar_type() != self.scalar_type()) return {};
    data->RaiseFailedChecks();
    return impl.view() ? values.view(self.sizes()) : values;
  } catch (const hlo::Error& error) {
    RethrowAsTorchError(error, "copy to the CPU");
  }
}

// A tensor on xla of a kernel's result, which nobody else holds.
at::Tensor ToDevice(lazy::Device* device, const at::Tensor& result) {
  if (static_cast<int64_t>(result.nbytes()) > kMostHostBytes) {
    return result.to(ToTorchDevice(device));
  }
  const lazy::SharedShape shape =
      lazy::InternShape(hlo::Shape(ToElementType(result.scalar_type()), result.sizes().vec()));
  lazy::Reference<lazy::Data> data = DataOf(device, shape.get(), result);
  lazy::NoteUpload(data.get());
  at::Tensor tensor = MakeTensor(device, {lazy::Node::MakeData(std::move(data), shape.get()), 0});
  LayOut(tensor, StridesLike(result, std::nullopt));
  return tensor;
}

}  // namespace

bool LiesOnHost(const at::Tensor& self) {
  return lazy::Runtime::Get().options().device_type == "CPU";
}

at::Tensor ByHostKernel(const at::Tensor& self,
                        const std::function<at::Tensor(const at::Tensor&)>& kernel) {
  at::Tensor values = KeptValues(self);
  if (!values.defined()) values = DownloadTensor(self);
  at::Tensor result;
  const auto run = [&] {
    const PlainKernels scope;
    result = kernel(values);
  };
  if (values.numel() < kManyElements || !OnAnotherThread(run)) {
    const OneThread one_thread;
    run();
  }
  return ToDevice(Impl(self).xla_device(), result);
}

}  // namespace torch_xla
