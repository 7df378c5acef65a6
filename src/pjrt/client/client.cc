#include "pjrt/client/client.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "hlo/bytecode.h"
#include "hlo/text_writer.h"
#include "pjrt/client/call.h"
#include "pjrt/client/wait.h"
#include "pjrt/element_type.h"

namespace pjrt {
namespace {

std::string KindOf(const Plugin& plugin, PJRT_Memory* memory) {
  Arguments<PJRT_Memory_Kind_Args> args;
  args->memory = memory;
  PJRT_INVOKE(plugin, Memory_Kind, args);
  return std::string(args->kind, args->kind_size);
}

// The C side of KeyValueStore. Errors are made through the plugin's own function.
template <typename Args, typename Body>
PJRT_Error* GuardCallback(Args* args, const Body& body) {
  auto fail = [&](hlo::ErrorCode code, const char* message) {
    return (*args->callback_error)(static_cast<PJRT_Error_Code>(code), message,
                                   std::strlen(message));
  };
  try {
    return body(*static_cast<const KeyValueStore*>(args->user_arg));
  } catch (const hlo::Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::exception& error) {
    return fail(hlo::ErrorCode::kInternal, error.what());
  }
}

template <typename Args>
void ReturnValue(Args* args, const std::string& value) {
  args->value = new char[value.size() + 1];
  std::copy(value.begin(), value.end(), args->value);
  args->value[value.size()] = '\0';
  args->value_size = value.size();
  args->value_deleter_callback = [](char* text) { delete[] text; };
}

PJRT_Error* KeyValueGet(PJRT_KeyValueGetCallback_Args* args) {
  return GuardCallback(args, [&](const KeyValueStore& store) -> PJRT_Error* {
    const std::string_view key(args->key, args->key_size);
    ReturnValue(args, store.get(key, std::chrono::milliseconds(args->timeout_in_ms)));
    return nullptr;
  });
}

PJRT_Error* KeyValueTryGet(PJRT_KeyValueTryGetCallback_Args* args) {
  return GuardCallback(args, [&](const KeyValueStore& store) -> PJRT_Error* {
    const std::string_view key(args->key, args->key_size);
    std::optional<std::string> value = store.try_get(key);
    if (!value) {
      throw hlo::Error(hlo::ErrorCode::kNotFound, "no key '" + std::string(key) + "'");
    }
    ReturnValue(args, *value);
    return nullptr;
  });
}

PJRT_Error* KeyValuePut(PJRT_KeyValuePutCallback_Args* args) {
  return GuardCallback(args, [&](const KeyValueStore& store) -> PJRT_Error* {
    store.put({args->key, args->key_size}, {args->value, args->value_size});
    return nullptr;
  });
}

// As the environment was at the first client: later, programs are written by threads beside which
// the user's may change it.
const std::string& ForcedFormat() {
  static const auto* forced = [] {
    const char* format = std::getenv("TORCH_XLA_PROGRAM_FORMAT");
    return new std::string(format != nullptr ? format : "");
  }();
  return *forced;
}

}  // namespace

Memory::Memory(const Plugin& plugin, PJRT_Memory* memory)
    : plugin_(plugin), memory_(memory), kind_(KindOf(plugin, memory)) {
  Arguments<PJRT_Memory_Id_Args> args;
  args->memory = memory_;
  PJRT_INVOKE(plugin_, Memory_Id, args);
  id_ = args->id;
}

std::string Memory::ToString() const {
  Arguments<PJRT_Memory_ToString_Args> args;
  args->memory = memory_;
  PJRT_INVOKE(plugin_, Memory_ToString, args);
  return std::string(args->to_string, args->to_string_size);
}

Device::Device(const Plugin& plugin, PJRT_Device* device) : plugin_(plugin), device_(device) {
  Arguments<PJRT_Device_GetDescription_Args> description;
  description->device = device_;
  PJRT_INVOKE(plugin_, Device_GetDescription, description);
  description_ = description->device_description;

  Arguments<PJRT_DeviceDescription_Id_Args> id;
  id->device_description = description_;
  PJRT_INVOKE(plugin_, DeviceDescription_Id, id);
  id_ = id->id;

  Arguments<PJRT_DeviceDescription_ProcessIndex_Args> process;
  process->device_description = description_;
  PJRT_INVOKE(plugin_, DeviceDescription_ProcessIndex, process);
  process_index_ = process->process_index;

  Arguments<PJRT_DeviceDescription_Kind_Args> kind;
  kind->device_description = description_;
  PJRT_INVOKE(plugin_, DeviceDescription_Kind, kind);
  kind_.assign(kind->device_kind, kind->device_kind_size);

  Arguments<PJRT_DeviceDescription_Attributes_Args> attributes;
  attributes->device_description = description_;
  PJRT_INVOKE(plugin_, DeviceDescription_Attributes, attributes);
  attributes_ = FromC(attributes->attributes, attributes->num_attributes);

  Arguments<PJRT_Device_IsAddressable_Args> addressable;
  addressable->device = device_;
  PJRT_INVOKE(plugin_, Device_IsAddressable, addressable);
  is_addressable_ = addressable->is_addressable;
  if (!is_addressable_) return;

  Arguments<PJRT_Device_LocalHardwareId_Args> hardware;
  hardware->device = device_;
  PJRT_INVOKE(plugin_, Device_LocalHardwareId, hardware);
  local_hardware_id_ = hardware->local_hardware_id;
}

std::string Device::ToString() const {
  Arguments<PJRT_DeviceDescription_ToString_Args> args;
  args->device_description = description_;
  PJRT_INVOKE(plugin_, DeviceDescription_ToString, args);
  return std::string(args->to_string, args->to_string_size);
}

MemoryStats Device::memory_stats() const {
  Arguments<PJRT_Device_MemoryStats_Args> args;
  args->device = device_;
  PJRT_INVOKE(plugin_, Device_MemoryStats, args);
  auto optional = [](bool is_set, int64_t value) {
    return is_set ? std::optional<int64_t>(value) : std::nullopt;
  };
  MemoryStats stats;
  stats.bytes_in_use = args->bytes_in_use;
  stats.peak_bytes_in_use = optional(args->peak_bytes_in_use_is_set, args->peak_bytes_in_use);
  stats.num_allocations = optional(args->num_allocs_is_set, args->num_allocs);
  stats.largest_allocation = optional(args->largest_alloc_size_is_set, args->largest_alloc_size);
  stats.bytes_limit = optional(args->bytes_limit_is_set, args->bytes_limit);
  stats.bytes_reserved = optional(args->bytes_reserved_is_set, args->bytes_reserved);
  stats.pool_bytes = optional(args->pool_bytes_is_set, args->pool_bytes);
  return stats;
}

void Device::ClearMemoryStats() const {
  Arguments<PJRT_Device_ClearMemoryStats_Args> args;
  args->device = device_;
  PJRT_INVOKE(plugin_, Device_ClearMemoryStats, args);
}

std::shared_ptr<Client> Client::Create(const Plugin& plugin, const NamedValues& options,
                                       std::optional<KeyValueStore> store) {
  ForcedFormat();  // asks the environment
  std::shared_ptr<Client> client(new Client(plugin));
  const std::vector<PJRT_NamedValue> c_options = ToC(options);
  Arguments<PJRT_Client_Create_Args> args;
  args->create_options = c_options.data();
  args->num_options = c_options.size();
  if (store) {
    client->store_ = std::make_unique<KeyValueStore>(*std::move(store));
    args->kv_get_callback = KeyValueGet;
    args->kv_get_user_arg = client->store_.get();
    args->kv_put_callback = KeyValuePut;
    args->kv_put_user_arg = client->store_.get();
    if (client->store_->try_get) {
      args->kv_try_get_callback = KeyValueTryGet;
      args->kv_try_get_user_arg = client->store_.get();
    }
  }
  PJRT_INVOKE(plugin, Client_Create, args);
  client->client_ = args->client;
  client->Describe();
  return client;
}

Client::~Client() {
  if (client_ == nullptr) return;
  Arguments<PJRT_Client_Destroy_Args> args;
  args->client = client_;
  (void)plugin_.ToError(plugin_.api().PJRT_Client_Destroy(args.get()));
}

void Client::Describe() {
  Arguments<PJRT_Client_PlatformName_Args> name;
  name->client = client_;
  PJRT_INVOKE(plugin_, Client_PlatformName, name);
  platform_name_.assign(name->platform_name, name->platform_name_size);

  Arguments<PJRT_Client_PlatformVersion_Args> version;
  version->client = client_;
  PJRT_INVOKE(plugin_, Client_PlatformVersion, version);
  platform_version_.assign(version->platform_version, version->platform_version_size);

  Arguments<PJRT_Client_ProcessIndex_Args> process;
  process->client = client_;
  PJRT_INVOKE(plugin_, Client_ProcessIndex, process);
  process_index_ = process->process_index;

  if (plugin_.has(&PJRT_Api::PJRT_Client_AddressableMemories)) {
    Arguments<PJRT_Client_AddressableMemories_Args> memories;
    memories->client = client_;
    PJRT_INVOKE(plugin_, Client_AddressableMemories, memories);
    for (size_t i = 0; i < memories->num_addressable_memories; ++i) {
      memories_.push_back(
          std::unique_ptr<Memory>(new Memory(plugin_, memories->addressable_memories[i])));
    }
  }

  Arguments<PJRT_Client_Devices_Args> devices;
  devices->client = client_;
  PJRT_INVOKE(plugin_, Client_Devices, devices);
  for (size_t i = 0; i < devices->num_devices; ++i) {
    all_devices_.push_back(
        devices_.emplace_back(std::unique_ptr<Device>(new Device(plugin_, devices->devices[i])))
            .get());
  }

  Arguments<PJRT_Client_AddressableDevices_Args> addressable;
  addressable->client = client_;
  PJRT_INVOKE(plugin_, Client_AddressableDevices, addressable);
  for (size_t i = 0; i < addressable->num_addressable_devices; ++i) {
    addressable_devices_.push_back(&device(addressable->addressable_devices[i]));
  }

  if (memories_.empty()) return;
  for (Device* device : addressable_devices_) {
    Arguments<PJRT_Device_AddressableMemories_Args> memories;
    memories->device = device->device_;
    PJRT_INVOKE(plugin_, Device_AddressableMemories, memories);
    for (size_t i = 0; i < memories->num_memories; ++i) {
      device->memories_.push_back(&memory(memories->memories[i]));
    }
    Arguments<PJRT_Device_DefaultMemory_Args> first;
    first->device = device->device_;
    PJRT_INVOKE(plugin_, Device_DefaultMemory, first);
    device->default_memory_ = &memory(first->memory);
  }
}

Device& Client::device(PJRT_Device* handle) const {
  for (const auto& device : devices_) {
    if (device->handle() == handle) return *device;
  }
  throw hlo::Error(hlo::ErrorCode::kInternal, "the plugin named a device that it never listed");
}

Device& Client::LookupDevice(int id) const {
  for (const auto& device : devices_) {
    if (device->id() == id) return *device;
  }
  throw hlo::Error(hlo::ErrorCode::kNotFound, "there is no device " + std::to_string(id) +
                                                  " among the " + std::to_string(devices_.size()) +
                                                  " of platform " + platform_name_);
}

Memory& Client::memory(PJRT_Memory* handle) const {
  for (const auto& memory : memories_) {
    if (memory->handle() == handle) return *memory;
  }
  throw hlo::Error(hlo::ErrorCode::kInternal, "the plugin named a memory that it never listed");
}

std::vector<int64_t> Client::DefaultDeviceAssignment(int num_replicas, int num_partitions) const {
  std::vector<int> assignment(static_cast<size_t>(num_replicas) * num_partitions);
  Arguments<PJRT_Client_DefaultDeviceAssignment_Args> args;
  args->client = client_;
  args->num_replicas = num_replicas;
  args->num_partitions = num_partitions;
  args->default_assignment_size = assignment.size();
  args->default_assignment = assignment.data();
  PJRT_INVOKE(plugin_, Client_DefaultDeviceAssignment, args);
  return std::vector<int64_t>(assignment.begin(), assignment.end());
}

std::unique_ptr<Topology> Client::topology() const {
  Arguments<PJRT_Client_TopologyDescription_Args> args;
  args->client = client_;
  PJRT_INVOKE(plugin_, Client_TopologyDescription, args);
  return std::make_unique<Topology>(plugin_, args->topology);
}

std::unique_ptr<Buffer> Client::BufferFromHost(const void* data, const hlo::Shape& shape,
                                               const Device& device,
                                               const HostBufferOptions& options) {
  return BufferFromHost(data, shape, device.handle(), nullptr, options);
}

std::unique_ptr<Buffer> Client::BufferFromHost(const void* data, const hlo::Shape& shape,
                                               const Memory& memory,
                                               const HostBufferOptions& options) {
  return BufferFromHost(data, shape, nullptr, memory.handle(), options);
}

std::unique_ptr<Buffer> Client::BufferFromHost(const void* data, const hlo::Shape& shape,
                                               PJRT_Device* device, PJRT_Memory* memory,
                                               const HostBufferOptions& options) {
  if (!options.byte_strides.empty() &&
      static_cast<int64_t>(options.byte_strides.size()) != shape.rank()) {
    throw hlo::Error("strides " + hlo::ToString(options.byte_strides) + " do not fit " +
                     shape.ToString());
  }
  Arguments<PJRT_Client_BufferFromHostBuffer_Args> args;
  args->client = client_;
  args->data = data;
  args->type = ToBufferType(shape.element_type());
  args->dims = shape.dimensions().data();
  args->num_dims = shape.dimensions().size();
  args->byte_strides = options.byte_strides.empty() ? nullptr : options.byte_strides.data();
  args->num_byte_strides = options.byte_strides.size();
  args->host_buffer_semantics = static_cast<PJRT_HostBufferSemantics>(options.semantics);
  args->device = device;
  args->memory = memory;
  PJRT_INVOKE(plugin_, Client_BufferFromHostBuffer, args);
  Event done(plugin_, args->done_with_host_buffer);
  try {
    auto buffer =
        std::make_unique<Buffer>(shared_from_this(), OwnedBuffer(plugin_, args->buffer), shape);
    if (options.done) done.OnReady([f = options.done](const hlo::Error*) { f(); });
    return buffer;
  } catch (...) {
    Wait(done);  // the buffer, which may have read the data for as long as it lived, is gone
    throw;
  }
}

std::unique_ptr<Buffer> Client::BufferFromLiteral(const hlo::Literal& literal,
                                                  const Device& device) {
  return BufferFromHost(literal.bytes(), literal.shape(), device);
}

std::unique_ptr<Buffer> Client::ViewOf(void* memory, const hlo::Shape& shape, const Device& device,
                                       std::function<void()> done) {
  auto callback = std::make_unique<std::function<void()>>(std::move(done));
  RowMajorLayout layout(shape.rank());
  Arguments<PJRT_Client_CreateViewOfDeviceBuffer_Args> args;
  args->client = client_;
  args->device_buffer_ptr = memory;
  args->dims = shape.dimensions().data();
  args->num_dims = shape.dimensions().size();
  args->element_type = ToBufferType(shape.element_type());
  args->layout = layout.get();
  args->device = device.handle();
  args->on_delete_callback = [](void*, void* user) {
    const std::unique_ptr<std::function<void()>> callback(
        static_cast<std::function<void()>*>(user));
    (*callback)();
  };
  args->on_delete_callback_arg = callback.get();
  PJRT_INVOKE(plugin_, Client_CreateViewOfDeviceBuffer, args);
  callback.release();
  return std::make_unique<Buffer>(shared_from_this(), OwnedBuffer(plugin_, args->buffer), shape);
}

std::unique_ptr<Buffer> Client::CreateUninitializedBuffer(const hlo::Shape& shape,
                                                          const Device& device) {
  Arguments<PJRT_Client_CreateUninitializedBuffer_Args> args;
  args->client = client_;
  args->shape_dims = shape.dimensions().data();
  args->shape_num_dims = shape.dimensions().size();
  args->shape_element_type = ToBufferType(shape.element_type());
  args->device = device.handle();
  PJRT_INVOKE(plugin_, Client_CreateUninitializedBuffer, args);
  return std::make_unique<Buffer>(shared_from_this(), OwnedBuffer(plugin_, args->buffer), shape);
}

std::unique_ptr<LoadedExecutable> Client::Compile(const hlo::Module& module,
                                                  const CompileOptions& options) {
  return Compile(SerializeProgram(module, plugin_), "mlir", options);
}

std::unique_ptr<LoadedExecutable> Client::Compile(std::string_view code, std::string_view format,
                                                  const CompileOptions& options) {
  return CompileWith(code, format, options.Serialize());
}

std::unique_ptr<LoadedExecutable> Client::CompileWith(std::string_view code,
                                                      std::string_view format,
                                                      std::string_view options) {
  Arguments<PJRT_Program> program;
  program->code = const_cast<char*>(code.data());
  program->code_size = code.size();
  program->format = format.data();
  program->format_size = format.size();
  Arguments<PJRT_Client_Compile_Args> args;
  args->client = client_;
  args->program = program.get();
  args->compile_options = options.data();
  args->compile_options_size = options.size();
  PJRT_INVOKE(plugin_, Client_Compile, args);
  return std::make_unique<LoadedExecutable>(shared_from_this(),
                                            OwnedLoadedExecutable(plugin_, args->executable));
}

std::unique_ptr<LoadedExecutable> Client::DeserializeAndLoad(std::string_view bytes,
                                                             std::string_view options) {
  Arguments<PJRT_Executable_DeserializeAndLoad_Args> args;
  args->client = client_;
  args->serialized_executable = bytes.data();
  args->serialized_executable_size = bytes.size();
  if (!options.empty()) {
    args->overridden_serialized_compile_options = options.data();
    args->overridden_serialized_compile_options_size = options.size();
  }
  PJRT_INVOKE(plugin_, Executable_DeserializeAndLoad, args);
  return std::make_unique<LoadedExecutable>(
      shared_from_this(), OwnedLoadedExecutable(plugin_, args->loaded_executable));
}

std::unique_ptr<LoadedExecutable> Client::Load(const Executable& executable,
                                               const CompileOptions& options) {
  const std::string serialized_options = options.Serialize();
  Arguments<PJRT_Client_Load_Args> args;
  args->client = client_;
  args->executable = executable.handle();
  args->compile_options = serialized_options.data();
  args->compile_options_size = serialized_options.size();
  PJRT_INVOKE(plugin_, Client_Load, args);
  return std::make_unique<LoadedExecutable>(
      shared_from_this(), OwnedLoadedExecutable(plugin_, args->loaded_executable));
}

bool FormatIsForced() { return !ForcedFormat().empty(); }

std::string SerializeProgram(const hlo::Module& module, const Plugin& plugin) {
  const std::vector<int64_t>& theirs = plugin.stablehlo_version();
  bool text = !theirs.empty() && std::lexicographical_compare(theirs.begin(), theirs.end(),
                                                              std::begin(hlo::kStablehloVersion),
                                                              std::end(hlo::kStablehloVersion));
  if (const std::string& forced = ForcedFormat(); !forced.empty()) {
    if (forced != "text" && forced != "bytecode") {
      throw hlo::Error("TORCH_XLA_PROGRAM_FORMAT is '" + forced +
                       "'; it must be 'text' or 'bytecode'");
    }
    text = forced == "text";
  }
  return text ? hlo::WriteStablehloText(module) : hlo::WriteBytecode(module);
}

}  // namespace pjrt
