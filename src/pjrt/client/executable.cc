#include "pjrt/client/executable.h"

#include <utility>

#include "pjrt/client/call.h"
#include "pjrt/client/client.h"
#include "pjrt/client/wait.h"
#include "pjrt/element_type.h"

namespace pjrt {

std::string Executable::name() const {
  Arguments<PJRT_Executable_Name_Args> args;
  args->executable = handle();
  PJRT_INVOKE(plugin_, Executable_Name, args);
  return std::string(args->executable_name, args->executable_name_size);
}

int64_t Executable::num_replicas() const {
  Arguments<PJRT_Executable_NumReplicas_Args> args;
  args->executable = handle();
  PJRT_INVOKE(plugin_, Executable_NumReplicas, args);
  return args->num_replicas;
}

int64_t Executable::num_partitions() const {
  Arguments<PJRT_Executable_NumPartitions_Args> args;
  args->executable = handle();
  PJRT_INVOKE(plugin_, Executable_NumPartitions, args);
  return args->num_partitions;
}

std::vector<hlo::Shape> Executable::output_shapes() const {
  Arguments<PJRT_Executable_OutputElementTypes_Args> types;
  types->executable = handle();
  PJRT_INVOKE(plugin_, Executable_OutputElementTypes, types);
  Arguments<PJRT_Executable_OutputDimensions_Args> dimensions;
  dimensions->executable = handle();
  PJRT_INVOKE(plugin_, Executable_OutputDimensions, dimensions);

  std::vector<hlo::Shape> shapes;
  const int64_t* next = dimensions->dims;
  for (size_t i = 0; i < types->num_output_types; ++i) {
    const size_t rank = dimensions->dim_sizes[i];
    shapes.emplace_back(ToElementType(types->output_types[i]), hlo::Dimensions(next, next + rank));
    next += rank;
  }
  return shapes;
}

std::vector<std::string> Executable::output_memory_kinds() const {
  Arguments<PJRT_Executable_OutputMemoryKinds_Args> args;
  args->executable = handle();
  PJRT_INVOKE(plugin_, Executable_OutputMemoryKinds, args);
  std::vector<std::string> kinds;
  for (size_t i = 0; i < args->num_outputs; ++i) {
    kinds.emplace_back(args->memory_kinds[i], args->memory_kind_sizes[i]);
  }
  return kinds;
}

int64_t Executable::generated_code_bytes() const {
  Arguments<PJRT_Executable_SizeOfGeneratedCodeInBytes_Args> args;
  args->executable = handle();
  PJRT_INVOKE(plugin_, Executable_SizeOfGeneratedCodeInBytes, args);
  return args->size_in_bytes;
}

std::string Executable::fingerprint() const {
  Arguments<PJRT_Executable_Fingerprint_Args> args;
  args->executable = handle();
  PJRT_INVOKE(plugin_, Executable_Fingerprint, args);
  return std::string(args->executable_fingerprint, args->executable_fingerprint_size);
}

CompiledMemoryStats Executable::memory_stats() const {
  Arguments<PJRT_Executable_GetCompiledMemoryStats_Args> args;
  args->executable = handle();
  PJRT_INVOKE(plugin_, Executable_GetCompiledMemoryStats, args);
  CompiledMemoryStats stats;
  stats.generated_code = args->generated_code_size_in_bytes;
  stats.arguments = args->argument_size_in_bytes;
  stats.outputs = args->output_size_in_bytes;
  stats.aliased = args->alias_size_in_bytes;
  stats.temporaries = args->temp_size_in_bytes;
  stats.host_generated_code = args->host_generated_code_size_in_bytes;
  stats.host_arguments = args->host_argument_size_in_bytes;
  stats.host_outputs = args->host_output_size_in_bytes;
  stats.host_aliased = args->host_alias_size_in_bytes;
  stats.host_temporaries = args->host_temp_size_in_bytes;
  stats.peak = args->peak_memory_in_bytes;
  stats.total = args->total_size_in_bytes;
  return stats;
}

NamedValues Executable::cost_analysis() const {
  Arguments<PJRT_Executable_GetCostAnalysis_Args> args;
  args->executable = handle();
  PJRT_INVOKE(plugin_, Executable_GetCostAnalysis, args);
  return FromC(args->properties, args->num_properties);
}

// Asked twice: for the size, then for the code.
OptimizedProgram Executable::optimized_program() const {
  Arguments<PJRT_Program> program;
  Arguments<PJRT_Executable_OptimizedProgram_Args> args;
  args->executable = handle();
  args->program = program.get();
  PJRT_INVOKE(plugin_, Executable_OptimizedProgram, args);
  OptimizedProgram result;
  result.code.resize(program->code_size);
  program->code = result.code.data();
  PJRT_INVOKE(plugin_, Executable_OptimizedProgram, args);
  result.format.assign(program->format, program->format_size);
  return result;
}

std::string Executable::Serialize() const {
  Arguments<PJRT_Executable_Serialize_Args> args;
  args->executable = handle();
  PJRT_INVOKE(plugin_, Executable_Serialize, args);
  std::string bytes(args->serialized_bytes, args->serialized_bytes_size);
  if (args->serialized_executable_deleter != nullptr) {
    args->serialized_executable_deleter(args->serialized_executable);
  }
  return bytes;
}

LoadedExecutable::LoadedExecutable(std::shared_ptr<Client> client, OwnedLoadedExecutable executable)
    : client_(std::move(client)), loaded_(std::move(executable)) {
  Arguments<PJRT_LoadedExecutable_GetExecutable_Args> args;
  args->loaded_executable = handle();
  PJRT_INVOKE(client_->plugin(), LoadedExecutable_GetExecutable, args);
  executable_ = std::make_unique<Executable>(OwnedExecutable(client_->plugin(), args->executable));
  output_shapes_ = executable_->output_shapes();
  for (const hlo::Shape& shape : output_shapes_) {
    shared_output_shapes_.push_back(std::make_shared<const hlo::Shape>(shape));
  }
}

std::vector<Device*> LoadedExecutable::addressable_devices() const {
  Arguments<PJRT_LoadedExecutable_AddressableDevices_Args> args;
  args->executable = handle();
  PJRT_INVOKE(client_->plugin(), LoadedExecutable_AddressableDevices, args);
  std::vector<Device*> devices;
  for (size_t i = 0; i < args->num_addressable_devices; ++i) {
    devices.push_back(&client_->device(args->addressable_devices[i]));
  }
  return devices;
}

void LoadedExecutable::Delete() {
  Arguments<PJRT_LoadedExecutable_Delete_Args> args;
  args->executable = handle();
  PJRT_INVOKE(client_->plugin(), LoadedExecutable_Delete, args);
}

bool LoadedExecutable::IsDeleted() const {
  Arguments<PJRT_LoadedExecutable_IsDeleted_Args> args;
  args->executable = handle();
  PJRT_INVOKE(client_->plugin(), LoadedExecutable_IsDeleted, args);
  return args->is_deleted;
}

ExecuteResult LoadedExecutable::Execute(std::span<const Buffer* const> arguments,
                                        const ExecuteOptions& options) const {
  return std::move(Start({&arguments, 1}, options)[0]);
}

std::vector<ExecuteResult> LoadedExecutable::ExecuteSharded(
    const std::vector<std::vector<const Buffer*>>& arguments, const ExecuteOptions& options) const {
  const std::vector<ArgumentList> lists(arguments.begin(), arguments.end());
  return Start(lists, options);
}

std::vector<ExecuteResult> LoadedExecutable::Start(std::span<const ArgumentList> arguments,
                                                   const ExecuteOptions& options) const {
  const size_t num_devices = arguments.size();
  const size_t num_arguments = num_devices > 0 ? arguments[0].size() : 0;
  const size_t num_outputs = output_shapes_.size();
  // Device after device.
  std::vector<PJRT_Buffer*> inputs, outputs(num_devices * num_outputs);
  inputs.reserve(num_devices * num_arguments);
  std::vector<PJRT_Buffer* const*> input_lists(num_devices);
  std::vector<PJRT_Buffer**> output_lists(num_devices);
  std::vector<PJRT_Event*> events(num_devices);
  for (size_t d = 0; d < num_devices; ++d) {
    if (arguments[d].size() != num_arguments) {
      throw hlo::Error("device " + std::to_string(d) + " is given " +
                       std::to_string(arguments[d].size()) + " arguments, device 0 " +
                       std::to_string(num_arguments));
    }
    for (const Buffer* buffer : arguments[d]) inputs.push_back(buffer->handle());
    input_lists[d] = inputs.data() + d * num_arguments;
    output_lists[d] = outputs.data() + d * num_outputs;
  }

  Arguments<PJRT_ExecuteOptions> c_options;
  if (options.result_memory != nullptr) c_options->extension_start = &options.result_memory->base;
  PJRT_CallerWaits_Extension waits{
      {sizeof waits, PJRT_Extension_Type_CallerWaits, c_options->extension_start}};
  if (options.caller_waits && client_->plugin().extension<PJRT_CallerWaits_Extension>(
                                  PJRT_Extension_Type_CallerWaits) != nullptr) {
    c_options->extension_start = &waits.base;
  }
  c_options->launch_id = options.launch_id;
  c_options->non_donatable_input_indices = options.non_donatable_inputs.data();
  c_options->num_non_donatable_input_indices = options.non_donatable_inputs.size();

  Arguments<PJRT_LoadedExecutable_Execute_Args> args;
  args->executable = handle();
  args->options = c_options.get();
  args->argument_lists = input_lists.data();
  args->num_devices = num_devices;
  args->num_args = num_arguments;
  args->output_lists = output_lists.data();
  args->device_complete_events = events.data();
  args->execute_device = options.device != nullptr ? options.device->handle() : nullptr;
  std::vector<ExecuteResult> results(num_devices);
  for (ExecuteResult& result : results) result.outputs.reserve(num_outputs);
  std::vector<OwnedBuffer> owned;
  owned.reserve(outputs.size());
  PJRT_INVOKE(client_->plugin(), LoadedExecutable_Execute, args);

  for (PJRT_Buffer* output : outputs) owned.emplace_back(client_->plugin(), output);
  for (size_t d = 0; d < num_devices; ++d) {
    results[d].done = Event(client_->plugin(), events[d]);
  }
  try {
    for (size_t d = 0; d < num_devices; ++d) {
      for (size_t i = 0; i < num_outputs; ++i) {
        OwnedBuffer& output = owned[d * num_outputs + i];
        results[d].outputs.push_back(
            std::make_unique<Buffer>(client_, std::move(output), shared_output_shapes_[i]));
      }
    }
  } catch (...) {  // what the caller lent the execution must stay until it is done
    for (const ExecuteResult& result : results) Wait(result.done);
    throw;
  }
  return results;
}

}  // namespace pjrt
