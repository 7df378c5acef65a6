#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"
#include "remote/client/client.h"

namespace pjrt::boundary {

PJRT_DeviceDescription& DescriptionOf(PJRT_Device& device) { return device.description; }

void Device_IsAddressable(PJRT_Device_IsAddressable_Args& args) {
  args.is_addressable = Require(args.device, "device").addressable;
}

void Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args& args) {
  args.local_hardware_id = Require(args.device, "device").local_hardware_id;
}

void Device_AddressableMemories(PJRT_Device_AddressableMemories_Args& args) {
  const PJRT_Device& device = Require(args.device, "device");
  args.memories = device.memories.data();
  args.num_memories = device.memories.size();
}

void Device_DefaultMemory(PJRT_Device_DefaultMemory_Args& args) {
  args.memory = &Require(Require(args.device, "device").default_memory, "the default memory");
}

// All clients' of the server together.
void Device_MemoryStats(PJRT_Device_MemoryStats_Args& args) {
  const PJRT_Device& device = Require(args.device, "device");
  remote::wire::Request request;
  request.mutable_memory_stats()->set_device(device.place);
  const remote::wire::Reply reply = device.client->connection->Ask(std::move(request));
  const auto& numbers = reply.numbers().numbers();
  int next = 0;
  auto read = [&](int64_t& value, bool* is_set) {
    if (next + 1 >= numbers.size()) return;
    value = numbers[next++];
    const bool set = numbers[next++] != 0;
    if (is_set != nullptr) *is_set = set;
  };
  read(args.bytes_in_use, nullptr);
  read(args.peak_bytes_in_use, &args.peak_bytes_in_use_is_set);
  read(args.num_allocs, &args.num_allocs_is_set);
  read(args.largest_alloc_size, &args.largest_alloc_size_is_set);
  read(args.bytes_limit, &args.bytes_limit_is_set);
  read(args.bytes_reserved, &args.bytes_reserved_is_set);
  read(args.peak_bytes_reserved, &args.peak_bytes_reserved_is_set);
  read(args.bytes_reservable_limit, &args.bytes_reservable_limit_is_set);
  read(args.largest_free_block_bytes, &args.largest_free_block_bytes_is_set);
  read(args.pool_bytes, &args.pool_bytes_is_set);
  read(args.peak_pool_bytes, &args.peak_pool_bytes_is_set);
}

}  // namespace pjrt::boundary
