#include "pjrt/plugin/device.h"

#include <algorithm>

#include "cpu/memory.h"
#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"
#include "pjrt/plugin/client.h"

PJRT_Device::PJRT_Device(PJRT_Client* client, PJRT_DeviceDescription* description)
    : client(client), description(description), memories{&memory} {
  memory.id = description->id;
  memory.kind = pjrt::plugin::kMemoryKind;
  memory.kind_id = pjrt::plugin::kMemoryKindId;
  memory.debug_string = "device memory of " + description->debug_string;
  memory.text = memory.debug_string;
  memory.devices = {this};
}

bool PJRT_Device::addressable() const {
  return description->process_index == client->process_index;
}

namespace pjrt::boundary {

using namespace plugin;

PJRT_DeviceDescription& DescriptionOf(PJRT_Device& device) { return *device.description; }

void Device_IsAddressable(PJRT_Device_IsAddressable_Args& args) {
  args.is_addressable = Require(args.device, "device").addressable();
}

void Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args& args) {
  const PJRT_Device& device = Require(args.device, "device");
  const auto& local = device.client->addressable_handles;
  auto found = std::find(local.begin(), local.end(), &device);
  args.local_hardware_id = found == local.end() ? -1 : static_cast<int>(found - local.begin());
}

void Device_AddressableMemories(PJRT_Device_AddressableMemories_Args& args) {
  args.memories = Require(args.device, "device").memories;
  args.num_memories = 1;
}

void Device_DefaultMemory(PJRT_Device_DefaultMemory_Args& args) {
  args.memory = &Require(args.device, "device").memory;
}

// The devices share the process's memory, so that each reports all of it.
void Device_MemoryStats(PJRT_Device_MemoryStats_Args& args) {
  Require(args.device, "device");
  const cpu::MemoryStatistics statistics = cpu::GetMemoryStatistics();
  args.bytes_in_use = statistics.bytes_in_use;
  args.peak_bytes_in_use = statistics.peak_bytes_in_use;
  args.peak_bytes_in_use_is_set = true;
  args.num_allocs = statistics.allocations;
  args.num_allocs_is_set = true;
  args.largest_alloc_size = statistics.largest_allocation;
  args.largest_alloc_size_is_set = true;
  args.bytes_limit = statistics.bytes_limit;
  args.bytes_limit_is_set = statistics.bytes_limit > 0;
  args.pool_bytes = statistics.bytes_pooled + statistics.bytes_in_use;
  args.pool_bytes_is_set = true;
  args.bytes_reserved_is_set = false;
  args.peak_bytes_reserved_is_set = false;
  args.bytes_reservable_limit_is_set = false;
  args.largest_free_block_bytes_is_set = false;
  args.peak_pool_bytes_is_set = false;
  args.peak_allocated_bytes_is_set = false;
}

void Device_ClearMemoryStats(PJRT_Device_ClearMemoryStats_Args& args) {
  Require(args.device, "device");
  cpu::ResetPeakMemory();
}

void Device_PoisonExecution(PJRT_Device_PoisonExecution_Args& args) {
  throw hlo::Error(hlo::ErrorCode::kUnimplemented, "executions cannot be poisoned");
}

}  // namespace pjrt::boundary
