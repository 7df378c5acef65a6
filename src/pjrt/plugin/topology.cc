#include "pjrt/plugin/topology.h"

#include <functional>

#include "cpu/executable.h"
#include "pjrt/plugin/boundary.h"
#include "pjrt/plugin/device.h"
#include "pjrt/plugin/executable.h"
#include "pjrt/plugin/functions.h"
#include "pjrt/plugin/memory.h"
#include "pjrt/plugin/named_value.h"
#include "pjrt/plugin/serialized.h"

PJRT_DeviceDescription::PJRT_DeviceDescription(int id)
    : id(id), debug_string("CPU:" + std::to_string(id)) {}

PJRT_TopologyDescription::PJRT_TopologyDescription(int num_devices) {
  for (int id = 0; id < num_devices; ++id) {
    handles.push_back(devices.emplace_back(new PJRT_DeviceDescription(id)).get());
  }
}

namespace pjrt::plugin {
namespace {

constexpr std::string_view kSerializedTopology = "cpu topology 1:";

}  // namespace

const std::string& PlatformVersion() {
  static const auto* version = new std::string(cpu::EngineFingerprint());
  return *version;
}

ClientOptions ParseClientOptions(const PJRT_NamedValue* options, size_t count) {
  constexpr int64_t kMostDevices = 1024;
  ClientOptions parsed;
  for (size_t i = 0; i < count; ++i) {
    const PJRT_NamedValue& option = options[i];
    const std::string_view name = NameOf(option);
    if (name == "cpu_device_count") {
      const int64_t devices = Int64Of(option);
      if (devices < 1 || devices > kMostDevices) {
        throw hlo::Error("option 'cpu_device_count' is " + std::to_string(devices) +
                         "; it must be from 1 to " + std::to_string(kMostDevices));
      }
      parsed.num_devices = static_cast<int>(devices);
    } else if (name == "asynchronous") {
      parsed.asynchronous = BoolOf(option);
    } else if (name == "num_nodes" || name == "node_id" || name == "process_id") {
      if (Int64Of(option) != (name == "num_nodes" ? 1 : 0)) {
        throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                         "option '" + std::string(name) + "' is " +
                             std::to_string(Int64Of(option)) +
                             ", but clients that span processes are not supported");
      }
    } else {
      throw hlo::Error("unknown option '" + std::string(name) +
                       "'; known are cpu_device_count and asynchronous");
    }
  }
  return parsed;
}

void TopologyDescription_Create(PJRT_TopologyDescription_Create_Args& args) {
  args.topology = new PJRT_TopologyDescription(
      ParseClientOptions(args.create_options, args.num_options).num_devices);
}

void TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args& args) {
  delete args.topology;
}

void TopologyDescription_PlatformName(PJRT_TopologyDescription_PlatformName_Args& args) {
  args.platform_name = kPlatformName;
  args.platform_name_size = std::strlen(kPlatformName);
}

void TopologyDescription_PlatformVersion(PJRT_TopologyDescription_PlatformVersion_Args& args) {
  args.platform_version = PlatformVersion().data();
  args.platform_version_size = PlatformVersion().size();
}

void TopologyDescription_GetDeviceDescriptions(
    PJRT_TopologyDescription_GetDeviceDescriptions_Args& args) {
  const PJRT_TopologyDescription& topology = Require(args.topology, "topology");
  args.descriptions = topology.handles.data();
  args.num_descriptions = topology.handles.size();
}

void TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args& args) {
  const PJRT_TopologyDescription& topology = Require(args.topology, "topology");
  auto* serialized = new PJRT_SerializedTopology{
      {std::string(kSerializedTopology) + std::to_string(topology.handles.size())}};
  args.serialized_bytes = serialized->bytes.data();
  args.serialized_bytes_size = serialized->bytes.size();
  args.serialized_topology = serialized;
  args.serialized_topology_deleter = [](PJRT_SerializedTopology* s) { delete s; };
}

void TopologyDescription_Deserialize(PJRT_TopologyDescription_Deserialize_Args& args) {
  const std::string bytes(args.serialized_topology, args.serialized_topology_size);
  int devices = 0;
  if (bytes.starts_with(kSerializedTopology) && bytes.size() < kSerializedTopology.size() + 8) {
    devices = std::atoi(bytes.c_str() + kSerializedTopology.size());
  }
  if (devices < 1) throw hlo::Error("the bytes are no serialized topology of this plugin");
  args.topology = new PJRT_TopologyDescription(devices);
}

void TopologyDescription_Attributes(PJRT_TopologyDescription_Attributes_Args& args) {
  Require(args.topology, "topology");
  args.attributes = nullptr;
  args.num_attributes = 0;
}

void TopologyDescription_Fingerprint(PJRT_TopologyDescription_Fingerprint_Args& args) {
  const PJRT_TopologyDescription& topology = Require(args.topology, "topology");
  args.fingerprint = Fingerprint64(PlatformVersion()) * 31 + topology.handles.size();
}

void TopologyDescription_MakeCanonicalShapeForMemorySpace(
    PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args& args) {
  throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                   "shapes here have one layout, dense and row-major; there is no other to make");
}

void TopologyDescription_GetMemorySpaceKindIds(
    PJRT_TopologyDescription_GetMemorySpaceKindIds_Args& args) {
  static const int kind_id = Memory::kKindId;
  args.memory_space_kind_ids = &kind_id;
  args.num_memory_space_kind_ids = 1;
}

void Compile(PJRT_Compile_Args& args) {
  const PJRT_TopologyDescription& topology = Require(args.topology, "topology");
  const PJRT_Program program = Complete(Require(args.program, "program"));
  const std::string_view options(args.compile_options, args.compile_options_size);
  args.executable = new PJRT_Executable{
      Program::Compile(program, options, static_cast<int64_t>(topology.handles.size()))};
}

}  // namespace pjrt::plugin
