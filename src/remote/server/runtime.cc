#include "remote/server/runtime.h"

#include <algorithm>

#include "pjrt/client/call.h"

namespace remote {
namespace {

// What the plugin does not offer stays empty.
template <typename Body>
void IfOffered(const Body& body) {
  try {
    body();
  } catch (const hlo::Error& error) {
    if (error.code() != hlo::ErrorCode::kUnimplemented) throw;
  }
}

void DescribeMemory(const pjrt::Plugin& plugin, const pjrt::Memory& memory, wire::Memory* message) {
  message->set_id(memory.id());
  message->set_kind(memory.kind());
  message->set_text(memory.ToString());
  IfOffered([&] {
    pjrt::Arguments<PJRT_Memory_DebugString_Args> args;
    args->memory = memory.handle();
    PJRT_INVOKE(plugin, Memory_DebugString, args);
    message->set_debug_string(args->debug_string, args->debug_string_size);
  });
  IfOffered([&] {
    pjrt::Arguments<PJRT_Memory_Kind_Id_Args> args;
    args->memory = memory.handle();
    PJRT_INVOKE(plugin, Memory_Kind_Id, args);
    message->set_kind_id(args->kind_id);
  });
}

void DescribeDevice(const Runtime& runtime, const pjrt::Device& device, wire::Device* message) {
  message->set_id(device.id());
  message->set_process_index(device.process_index());
  message->set_local_hardware_id(device.local_hardware_id());
  message->set_addressable(device.is_addressable());
  message->set_kind(device.kind());
  message->set_text(device.ToString());
  message->set_debug_string(device.ToString());
  ToMessage(device.attributes(), message->mutable_attributes());
  for (const pjrt::Memory* memory : device.memories()) {
    const auto& all = runtime.memories;
    const auto place = std::find(all.begin(), all.end(), memory) - all.begin();
    message->add_memories(static_cast<uint32_t>(place));
    if (memory == device.default_memory()) {
      message->set_default_memory(static_cast<uint32_t>(place));
    }
  }
}

template <typename T>
T& At(const std::vector<T*>& list, uint32_t place, const char* what) {
  if (place < list.size()) return *list[place];
  throw hlo::Error(hlo::ErrorCode::kNotFound, "there is no " + std::string(what) + " " +
                                                  std::to_string(place) + "; the server has " +
                                                  std::to_string(list.size()));
}

}  // namespace

Runtime::Runtime(const std::string& plugin_path, const pjrt::NamedValues& options)
    : client(pjrt::Client::Create(pjrt::Plugin::Load(plugin_path), options)) {
  for (const pjrt::Device* device : client->addressable_devices()) {
    for (pjrt::Memory* memory : device->memories()) {
      if (std::find(memories.begin(), memories.end(), memory) == memories.end()) {
        memories.push_back(memory);
      }
    }
  }
  description.set_protocol(kProtocol);
  description.set_platform_name(client->platform_name());
  description.set_platform_version(client->platform_version());
  description.set_process_index(client->process_index());
  ToMessage(client->plugin().attributes(), description.mutable_attributes());
  for (const pjrt::Device* device : client->devices()) {
    DescribeDevice(*this, *device, description.add_devices());
  }
  for (const pjrt::Memory* memory : memories) {
    DescribeMemory(client->plugin(), *memory, description.add_memories());
  }
  const hlo::Shape scalar = hlo::Shape::Scalar(hlo::ElementType::kF32);
  const float zero = 0;
  const auto buffer = client->BufferFromHost(&zero, scalar, *client->addressable_devices().at(0));
  description.set_host_memory(buffer->IsOnCpu());
  takes_result_memory = client->plugin().extension<PJRT_ResultMemory_Extension>(
                            PJRT_Extension_Type_ResultMemory) != nullptr;
  IfOffered([&] { description.set_topology(client->topology()->Serialize()); });
}

const pjrt::Device& Runtime::device(uint32_t place) const {
  return At(client->devices(), place, "device");
}

const pjrt::Memory& Runtime::memory(uint32_t place) const { return At(memories, place, "memory"); }

uint32_t Runtime::PlaceOf(const pjrt::Device& device) const {
  const auto& all = client->devices();
  return static_cast<uint32_t>(std::find(all.begin(), all.end(), &device) - all.begin());
}

namespace {

class Describer {
 public:
  Describer(const Runtime& runtime, const pjrt::LoadedExecutable& loaded, wire::Executable* message)
      : runtime_(runtime),
        plugin_(runtime.client->plugin()),
        loaded_(loaded),
        executable_(loaded.executable()),
        message_(*message) {}

  void Run() {
    Program();
    IfOffered([&] { MemoryKinds(); });
    Layouts();
    IfOffered([&] { MemoryStats(); });
    Devices();
    IfOffered([&] { Assignment(); });
    IfOffered([&] { Options(); });
  }

 private:
  void Program() {
    message_.set_name(executable_.name());
    message_.set_replicas(executable_.num_replicas());
    message_.set_partitions(executable_.num_partitions());
    IfOffered([&] { message_.set_code_bytes(executable_.generated_code_bytes()); });
    IfOffered([&] { message_.set_fingerprint(executable_.fingerprint()); });
    for (const hlo::Shape& shape : loaded_.output_shapes()) {
      ToMessage(shape, message_.add_results());
    }
  }

  void MemoryKinds() {
    for (const std::string& kind : executable_.output_memory_kinds()) {
      message_.add_result_memory_kinds(kind);
    }
    pjrt::Arguments<PJRT_Executable_ParameterMemoryKinds_Args> args;
    args->executable = executable_.handle();
    PJRT_INVOKE(plugin_, Executable_ParameterMemoryKinds, args);
    for (size_t i = 0; i < args->num_parameters; ++i) {
      message_.add_parameter_memory_kinds(args->memory_kinds[i], args->memory_kind_sizes[i]);
    }
  }

  std::string Text(const PJRT_Layouts_Extension& extension, PJRT_Layouts_MemoryLayout* layout) {
    pjrt::Arguments<PJRT_Layouts_MemoryLayout_Serialize_Args> args;
    args->layout = layout;
    if (PJRT_Error* error = extension.PJRT_Layouts_MemoryLayout_Serialize(args.get())) {
      plugin_.Throw(error);
    }
    std::string text(args->serialized_bytes, args->serialized_bytes_size);
    if (args->serialized_layout_deleter) args->serialized_layout_deleter(args->serialized_layout);
    return text;
  }

  void Layouts() {
    const auto* extension = plugin_.extension<PJRT_Layouts_Extension>(PJRT_Extension_Type_Layouts);
    if (extension == nullptr) return;
    pjrt::Arguments<PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args> results;
    results->executable = executable_.handle();
    if (PJRT_Error* error =
            extension->PJRT_Layouts_PJRT_Executable_GetOutputLayouts(results.get())) {
      (void)plugin_.ToError(error);
      return;
    }
    for (size_t i = 0; i < results->num_outputs; ++i) {
      message_.add_result_layouts(Text(*extension, results->layouts[i]));
    }
    pjrt::Arguments<PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args> parameters;
    parameters->executable = executable_.handle();
    if (PJRT_Error* error =
            extension->PJRT_Layouts_PJRT_Executable_GetParameterLayouts(parameters.get())) {
      (void)plugin_.ToError(error);
      return;
    }
    for (size_t i = 0; i < parameters->num_parameters; ++i) {
      message_.add_parameter_layouts(Text(*extension, parameters->layouts[i]));
    }
  }

  void MemoryStats() {
    const pjrt::CompiledMemoryStats stats = executable_.memory_stats();
    for (int64_t bytes :
         {stats.generated_code, stats.arguments, stats.outputs, stats.aliased, stats.temporaries,
          stats.host_generated_code, stats.host_arguments, stats.host_outputs, stats.host_aliased,
          stats.host_temporaries, stats.peak, stats.total}) {
      message_.add_memory_stats(bytes);
    }
  }

  void Devices() {
    for (const pjrt::Device* device : loaded_.addressable_devices()) {
      message_.add_devices(runtime_.PlaceOf(*device));
    }
    IfOffered([&] {
      pjrt::Arguments<PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args> args;
      args->executable = loaded_.handle();
      PJRT_INVOKE(plugin_, LoadedExecutable_AddressableDeviceLogicalIds, args);
      for (size_t i = 0; i < args->num_addressable_device_logical_ids; ++i) {
        message_.add_logical_ids(args->addressable_device_logical_ids[i].replica);
        message_.add_logical_ids(args->addressable_device_logical_ids[i].partition);
      }
    });
  }

  void Assignment() {
    pjrt::Arguments<PJRT_LoadedExecutable_GetDeviceAssignment_Args> args;
    args->executable = loaded_.handle();
    PJRT_INVOKE(plugin_, LoadedExecutable_GetDeviceAssignment, args);
    message_.set_device_assignment(args->serialized_bytes, args->serialized_bytes_size);
    if (args->serialized_device_assignment_deleter) {
      args->serialized_device_assignment_deleter(args->serialized_device_assignment);
    }
  }

  void Options() {
    pjrt::Arguments<PJRT_Executable_GetCompileOptions_Args> args;
    args->executable = executable_.handle();
    PJRT_INVOKE(plugin_, Executable_GetCompileOptions, args);
    message_.set_options(args->serialized_bytes, args->serialized_bytes_size);
    if (args->serialized_compile_options_deleter) {
      args->serialized_compile_options_deleter(args->serialized_compile_options);
    }
  }

  const Runtime& runtime_;
  const pjrt::Plugin& plugin_;
  const pjrt::LoadedExecutable& loaded_;
  const pjrt::Executable& executable_;
  wire::Executable& message_;
};

}  // namespace

void DescribeExecutable(const Runtime& runtime, const pjrt::LoadedExecutable& executable,
                        wire::Executable* message) {
  Describer(runtime, executable, message).Run();
}

}  // namespace remote
