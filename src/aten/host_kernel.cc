#include "aten/host_kernel.h"

#include "aten/parallel_kernels.h"
#include "aten/plain_kernels.h"
#include "aten/tensor.h"
#include "lazy/device.h"

namespace torch_xla {
namespace {

// What starting threads costs is nothing beside it.
constexpr int64_t kManyElements = int64_t{1} << 22;

}  // namespace

bool LiesOnHost(const at::Tensor& self) {
  return lazy::Runtime::Get().options().device_type == "CPU";
}

at::Tensor ByHostKernel(const at::Tensor& self,
                        const std::function<at::Tensor(const at::Tensor&)>& kernel) {
  const at::Tensor values = DownloadTensor(self);
  at::Tensor result;
  const auto run = [&] {
    const PlainKernels scope;
    result = kernel(values);
  };
  if (values.numel() < kManyElements || !OnAnotherThread(run)) {
    const OneThread one_thread;
    run();
  }
  return result.to(self.device());
}

}  // namespace torch_xla
