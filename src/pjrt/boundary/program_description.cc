#include "pjrt/boundary/program_description.h"

#include <cstring>
#include <utility>

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/extensions.h"
#include "pjrt/boundary/functions.h"
#include "pjrt/boundary/serialized.h"
#include "pjrt/element_type.h"

namespace pjrt::boundary {
namespace {

const ProgramDescription& Get(const PJRT_Executable* executable) {
  return DescriptionOf(Require(executable, "executable"));
}

const ProgramDevices& Get(const PJRT_LoadedExecutable* executable) {
  return DevicesOf(Require(executable, "executable"));
}

}  // namespace

void MemoryKinds::Add(std::string_view kind) {
  names.push_back(kind.data());
  sizes.push_back(kind.size());
}

void Layouts::Add(std::string text) {
  handles.push_back(&layouts_.emplace_back(PJRT_Layouts_MemoryLayout{std::move(text), true}));
}

void ProgramDescription::AddResult(const hlo::Shape& shape) {
  result_types.push_back(ToBufferType(shape.element_type()));
  result_dimensions.insert(result_dimensions.end(), shape.dimensions().begin(),
                           shape.dimensions().end());
  result_ranks.push_back(shape.dimensions().size());
}

void FillProgram(std::string_view code, const char* format, PJRT_Program& out) {
  out.format = format;
  out.format_size = std::strlen(format);
  if (out.code != nullptr) {
    if (out.code_size < code.size()) {
      throw hlo::Error("the program has " + std::to_string(code.size()) +
                       " bytes, but there is room for " + std::to_string(out.code_size));
    }
    std::memcpy(out.code, code.data(), code.size());
  }
  out.code_size = code.size();
}

void Executable_Name(PJRT_Executable_Name_Args& args) {
  const std::string& name = Get(args.executable).name;
  args.executable_name = name.data();
  args.executable_name_size = name.size();
}

void Executable_NumOutputs(PJRT_Executable_NumOutputs_Args& args) {
  args.num_outputs = Get(args.executable).result_types.size();
}

void Executable_Fingerprint(PJRT_Executable_Fingerprint_Args& args) {
  const std::string& fingerprint = Get(args.executable).fingerprint;
  args.executable_fingerprint = fingerprint.data();
  args.executable_fingerprint_size = fingerprint.size();
}

void Executable_OutputElementTypes(PJRT_Executable_OutputElementTypes_Args& args) {
  const ProgramDescription& program = Get(args.executable);
  args.output_types = const_cast<PJRT_Buffer_Type*>(program.result_types.data());
  args.num_output_types = program.result_types.size();
}

void Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args& args) {
  const ProgramDescription& program = Get(args.executable);
  args.num_outputs = program.result_ranks.size();
  args.dims = program.result_dimensions.data();
  args.dim_sizes = program.result_ranks.data();
}

void Executable_OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args& args) {
  const MemoryKinds& kinds = Get(args.executable).result_memory_kinds;
  args.num_outputs = kinds.names.size();
  args.memory_kinds = kinds.names.data();
  args.memory_kind_sizes = kinds.sizes.data();
}

void Executable_ParameterMemoryKinds(PJRT_Executable_ParameterMemoryKinds_Args& args) {
  const MemoryKinds& kinds = Get(args.executable).parameter_memory_kinds;
  args.num_parameters = kinds.names.size();
  args.memory_kinds = kinds.names.data();
  args.memory_kind_sizes = kinds.sizes.data();
}

void Executable_GetCompileOptions(PJRT_Executable_GetCompileOptions_Args& args) {
  HandOut(Get(args.executable).compile_options, args.serialized_bytes, args.serialized_bytes_size,
          args.serialized_compile_options, args.serialized_compile_options_deleter);
}

void LoadedExecutable_AddressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args& args) {
  const ProgramDevices& loaded = Get(args.executable);
  args.addressable_devices = loaded.devices.data();
  args.num_addressable_devices = loaded.devices.size();
}

void LoadedExecutable_AddressableDeviceLogicalIds(
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args& args) {
  const ProgramDevices& loaded = Get(args.executable);
  args.addressable_device_logical_ids =
      const_cast<PJRT_LogicalDeviceIds*>(loaded.logical_ids.data());
  args.num_addressable_device_logical_ids = loaded.logical_ids.size();
}

void OutputLayouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args& args) {
  const Layouts& layouts = Get(args.executable).result_layouts;
  args.num_outputs = layouts.handles.size();
  args.layouts = const_cast<PJRT_Layouts_MemoryLayout**>(layouts.handles.data());
}

void ParameterLayouts(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args& args) {
  const Layouts& layouts = Get(args.executable).parameter_layouts;
  args.num_parameters = layouts.handles.size();
  args.layouts = const_cast<PJRT_Layouts_MemoryLayout**>(layouts.handles.data());
}

}  // namespace pjrt::boundary
