#include "aten/torch_xla.h"

#include <c10/util/Exception.h>

#include "aten/runtime_hooks.h"
#include "lazy/device.h"
#include "lazy/sync.h"

namespace torch_xla {

void Sync(bool wait) {
  if (!lazy::Runtime::IsStarted()) return;
  try {
    lazy::Sync(lazy::Runtime::Get().device(CurrentDevice()), wait);
  } catch (const hlo::Error& error) {
    // C++ programs link torch's exceptions, and see none of ours.
    TORCH_CHECK(false, error.what());
  }
}

}  // namespace torch_xla
