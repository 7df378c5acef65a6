#include "pjrt/client/clear_memory_stats.h"

#include "pjrt/client/call.h"

namespace pjrt {

void ClearMemoryStats(const Client& client, const Device& device) {
  Arguments<PJRT_Device_ClearMemoryStats_Args> args;
  args->device = device.handle();
  PJRT_INVOKE(client.plugin(), Device_ClearMemoryStats, args);
}

}  // namespace pjrt
