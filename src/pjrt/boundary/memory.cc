#include "pjrt/boundary/memory.h"

#include <utility>

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"

namespace pjrt::boundary {
namespace {

void* GetUserData(PJRT_Memory* handle, const void* key) {
  Memory& memory = *static_cast<Memory*>(handle);
  std::lock_guard lock(memory.mutex);
  auto found = memory.user_data.find(key);
  return found == memory.user_data.end() ? nullptr : found->second.data;
}

void SetUserData(PJRT_Memory* handle, const void* key, void* data, void (*destroy)(void*)) {
  Memory& memory = *static_cast<Memory*>(handle);
  Memory::UserData entry{data, destroy};
  {
    std::lock_guard lock(memory.mutex);
    std::swap(memory.user_data[key], entry);
  }
  if (entry.destroy != nullptr) entry.destroy(entry.data);
}

constexpr PJRT_Memory_FunctionTable kMemoryFunctions = {
    .struct_size = sizeof(PJRT_Memory_FunctionTable),
    .extension_start = nullptr,
    .instance_struct_size = sizeof(PJRT_Memory),
    .get_user_data = GetUserData,
    .set_user_data = SetUserData,
};

}  // namespace

Memory::Memory() : PJRT_Memory{&kMemoryFunctions} {}

Memory::~Memory() {
  for (auto& [key, entry] : user_data) {
    if (entry.destroy != nullptr) entry.destroy(entry.data);
  }
}

Memory& Memory::Get(PJRT_Memory* memory) { return static_cast<Memory&>(Require(memory, "memory")); }

void Memory_Id(PJRT_Memory_Id_Args& args) { args.id = Memory::Get(args.memory).id; }

void Memory_Kind(PJRT_Memory_Kind_Args& args) {
  const Memory& memory = Memory::Get(args.memory);
  args.kind = memory.kind.data();
  args.kind_size = memory.kind.size();
}

void Memory_Kind_Id(PJRT_Memory_Kind_Id_Args& args) {
  args.kind_id = Memory::Get(args.memory).kind_id;
}

void Memory_DebugString(PJRT_Memory_DebugString_Args& args) {
  const Memory& memory = Memory::Get(args.memory);
  args.debug_string = memory.debug_string.data();
  args.debug_string_size = memory.debug_string.size();
}

void Memory_ToString(PJRT_Memory_ToString_Args& args) {
  const Memory& memory = Memory::Get(args.memory);
  args.to_string = memory.text.data();
  args.to_string_size = memory.text.size();
}

void Memory_AddressableByDevices(PJRT_Memory_AddressableByDevices_Args& args) {
  const Memory& memory = Memory::Get(args.memory);
  args.devices = memory.devices.data();
  args.num_devices = memory.devices.size();
}

}  // namespace pjrt::boundary
