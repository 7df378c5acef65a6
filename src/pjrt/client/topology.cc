#include "pjrt/client/topology.h"

#include "pjrt/client/call.h"
#include "pjrt/client/client.h"

namespace pjrt {

std::unique_ptr<Topology> Topology::Create(const Plugin& plugin, const std::string& name,
                                           const NamedValues& options) {
  const std::vector<PJRT_NamedValue> c_options = ToC(options);
  Arguments<PJRT_TopologyDescription_Create_Args> args;
  args->topology_name = name.data();
  args->topology_name_size = name.size();
  args->create_options = c_options.data();
  args->num_options = c_options.size();
  PJRT_INVOKE(plugin, TopologyDescription_Create, args);
  return std::make_unique<Topology>(OwnedTopology(plugin, args->topology));
}

std::unique_ptr<Topology> Topology::Deserialize(const Plugin& plugin, const std::string& bytes) {
  Arguments<PJRT_TopologyDescription_Deserialize_Args> args;
  args->serialized_topology = bytes.data();
  args->serialized_topology_size = bytes.size();
  PJRT_INVOKE(plugin, TopologyDescription_Deserialize, args);
  return std::make_unique<Topology>(OwnedTopology(plugin, args->topology));
}

Topology::Topology(OwnedTopology topology)
    : plugin_(topology.plugin()), topology_(topology.get()), owned_(std::move(topology)) {}

Topology::Topology(const Plugin& plugin, const PJRT_TopologyDescription* topology)
    : plugin_(plugin),
      topology_(const_cast<PJRT_TopologyDescription*>(topology)),
      owned_(plugin, nullptr) {}

std::string Topology::platform_name() const {
  Arguments<PJRT_TopologyDescription_PlatformName_Args> args;
  args->topology = topology_;
  PJRT_INVOKE(plugin_, TopologyDescription_PlatformName, args);
  return std::string(args->platform_name, args->platform_name_size);
}

std::string Topology::platform_version() const {
  Arguments<PJRT_TopologyDescription_PlatformVersion_Args> args;
  args->topology = topology_;
  PJRT_INVOKE(plugin_, TopologyDescription_PlatformVersion, args);
  return std::string(args->platform_version, args->platform_version_size);
}

NamedValues Topology::attributes() const {
  Arguments<PJRT_TopologyDescription_Attributes_Args> args;
  args->topology = topology_;
  PJRT_INVOKE(plugin_, TopologyDescription_Attributes, args);
  return FromC(args->attributes, args->num_attributes);
}

std::vector<std::string> Topology::device_kinds() const {
  Arguments<PJRT_TopologyDescription_GetDeviceDescriptions_Args> args;
  args->topology = topology_;
  PJRT_INVOKE(plugin_, TopologyDescription_GetDeviceDescriptions, args);
  std::vector<std::string> kinds;
  for (size_t i = 0; i < args->num_descriptions; ++i) {
    Arguments<PJRT_DeviceDescription_Kind_Args> kind;
    kind->device_description = args->descriptions[i];
    PJRT_INVOKE(plugin_, DeviceDescription_Kind, kind);
    kinds.emplace_back(kind->device_kind, kind->device_kind_size);
  }
  return kinds;
}

std::string Topology::Serialize() const {
  Arguments<PJRT_TopologyDescription_Serialize_Args> args;
  args->topology = topology_;
  PJRT_INVOKE(plugin_, TopologyDescription_Serialize, args);
  std::string bytes(args->serialized_bytes, args->serialized_bytes_size);
  if (args->serialized_topology_deleter != nullptr) {
    args->serialized_topology_deleter(args->serialized_topology);
  }
  return bytes;
}

std::unique_ptr<Executable> Topology::Compile(const hlo::Module& module,
                                              const CompileOptions& options) const {
  return Compile(SerializeProgram(module, plugin_), "mlir", options);
}

std::unique_ptr<Executable> Topology::Compile(const std::string& code, const std::string& format,
                                              const CompileOptions& options) const {
  const std::string serialized_options = options.Serialize();
  Arguments<PJRT_Program> program;
  program->code = const_cast<char*>(code.data());
  program->code_size = code.size();
  program->format = format.data();
  program->format_size = format.size();
  Arguments<PJRT_Compile_Args> args;
  args->topology = topology_;
  args->program = program.get();
  args->compile_options = serialized_options.data();
  args->compile_options_size = serialized_options.size();
  PJRT_INVOKE(plugin_, Compile, args);
  return std::make_unique<Executable>(OwnedExecutable(plugin_, args->executable));
}

}  // namespace pjrt
