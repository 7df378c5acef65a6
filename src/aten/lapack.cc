#include "aten/lapack.h"

#include "hlo/lapack_call.h"
#include "lazy/device.h"

namespace torch_xla {

bool DeviceHasLapack() {
  return lazy::Runtime::Get().client().plugin().attributes().contains(
      hlo::lapack::kPluginAttribute);
}

}  // namespace torch_xla
