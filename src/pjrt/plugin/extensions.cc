// The chain of extensions that the engine offers.
#include "pjrt/boundary/extensions.h"

#include "pjrt/boundary/functions.h"
#include "pjrt/boundary/profiler_extension.h"

namespace pjrt::boundary {

PJRT_Extension_Base* Extensions() {
  static PJRT_Profiler_Extension profiler = ProfilerExtension(nullptr);
  static PJRT_MemoryDescriptions_Extension memories = MemoryDescriptionsExtension(&profiler.base);
  static PJRT_Layouts_Extension layouts = LayoutsExtension(&memories.base);
  static PJRT_ResultMemory_Extension results{};
  results.base = {sizeof results, PJRT_Extension_Type_ResultMemory, &layouts.base};
  static PJRT_CallerWaits_Extension waits{
      {sizeof waits, PJRT_Extension_Type_CallerWaits, &results.base}};
  return &waits.base;
}

}  // namespace pjrt::boundary
