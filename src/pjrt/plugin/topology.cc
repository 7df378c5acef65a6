#include "pjrt/plugin/topology.h"

#include <cstdio>

#include "cpu/executable.h"
#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"
#include "pjrt/boundary/named_value.h"
#include "pjrt/boundary/serialized.h"
#include "pjrt/plugin/executable.h"
#include "pjrt/wire/option_names.h"
#include "process/sha256.h"

PJRT_TopologyDescription::PJRT_TopologyDescription(int num_devices, int num_processes)
    : num_processes(num_processes) {
  platform_name = pjrt::plugin::kPlatformName;
  platform_version = pjrt::plugin::PlatformVersion();
  static const PJRT_MemoryDescription memory{pjrt::plugin::kMemoryKind,
                                             pjrt::plugin::kMemoryKindId};
  for (int id = 0; id < num_devices; ++id) {
    auto description = std::make_unique<PJRT_DeviceDescription>();
    description->id = id;
    description->process_index = num_processes > 1 ? id : 0;
    description->kind = pjrt::plugin::kDeviceKind;
    description->debug_string = "CPU:" + std::to_string(id);
    description->text = description->debug_string;
    description->memories = {&memory};
    handles.push_back(devices.emplace_back(std::move(description)).get());
  }
}

namespace pjrt::plugin {

using namespace boundary;
namespace {

constexpr int64_t kMostDevices = 1024;

}  // namespace

const std::string& PlatformVersion() {
  static const auto* version = new std::string(cpu::EngineFingerprint());
  return *version;
}

ClientOptions ParseClientOptions(const PJRT_NamedValue* options, size_t count) {
  ClientOptions parsed;
  bool devices_given = false;
  int64_t process_index = 0;
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
      devices_given = true;
    } else if (name == "asynchronous") {
      parsed.asynchronous = BoolOf(option);
    } else if (name == "num_nodes") {
      const int64_t processes = Int64Of(option);
      if (processes < 1 || processes > kMostDevices) {
        throw hlo::Error("option 'num_nodes' is " + std::to_string(processes) +
                         "; it must be from 1 to " + std::to_string(kMostDevices));
      }
      parsed.num_processes = static_cast<int>(processes);
    } else if (name == kJobSecret) {
      parsed.job_secret = TextOf(option);
    } else if (name == "node_id" || name == "process_id") {
      process_index = Int64Of(option);
    } else {
      throw hlo::Error(
          "unknown option '" + std::string(name) +
          "'; known are cpu_device_count, asynchronous, num_nodes, node_id and job_secret");
    }
  }
  if (process_index < 0 || process_index >= parsed.num_processes) {
    throw hlo::Error("option 'node_id' is " + std::to_string(process_index) +
                     ", but 'num_nodes' is " + std::to_string(parsed.num_processes));
  }
  parsed.process_index = static_cast<int>(process_index);
  if (parsed.num_processes > 1) {
    if (devices_given && parsed.num_devices != 1) {
      throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                       "option 'cpu_device_count' is " + std::to_string(parsed.num_devices) +
                           ", but clients that span processes have one device in each");
    }
    parsed.num_devices = parsed.num_processes;
  }
  return parsed;
}

}  // namespace pjrt::plugin

namespace pjrt::boundary {

using namespace plugin;
namespace {

// Followed by the numbers of devices and processes.
constexpr char kSerializedTopology[] = "cpu topology 2:";

std::string Serialized(int devices, int processes) {
  return kSerializedTopology + std::to_string(devices) + "," + std::to_string(processes);
}

}  // namespace

const TopologyDescription& DescriptionOf(const PJRT_TopologyDescription& topology) {
  return topology;
}

void TopologyDescription_Create(PJRT_TopologyDescription_Create_Args& args) {
  const ClientOptions options = ParseClientOptions(args.create_options, args.num_options);
  args.topology = new PJRT_TopologyDescription(options.num_devices, options.num_processes);
}

void TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args& args) {
  delete args.topology;
}

void TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args& args) {
  const PJRT_TopologyDescription& topology = Require(args.topology, "topology");
  HandOut(Serialized(static_cast<int>(topology.handles.size()), topology.num_processes),
          args.serialized_bytes, args.serialized_bytes_size, args.serialized_topology,
          args.serialized_topology_deleter);
}

void TopologyDescription_Deserialize(PJRT_TopologyDescription_Deserialize_Args& args) {
  const std::string bytes(args.serialized_topology, args.serialized_topology_size);
  int devices = 0, processes = 0;
  std::sscanf(bytes.c_str(), "cpu topology 2:%d,%d", &devices, &processes);
  if (bytes != Serialized(devices, processes) || devices < 1 || devices > kMostDevices ||
      (processes != 1 && processes != devices))
    throw hlo::Error("the bytes are no serialized topology of this plugin");
  args.topology = new PJRT_TopologyDescription(devices, processes);
}

void TopologyDescription_Fingerprint(PJRT_TopologyDescription_Fingerprint_Args& args) {
  const PJRT_TopologyDescription& topology = Require(args.topology, "topology");
  args.fingerprint = process::First64Bits(process::Sha256OfParts(
      {PlatformVersion(),
       Serialized(static_cast<int>(topology.handles.size()), topology.num_processes)}));
}

void TopologyDescription_MakeCanonicalShapeForMemorySpace(
    PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args& args) {
  throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                   "shapes here have one layout, dense and row-major; there is no other to make");
}

void TopologyDescription_GetMemorySpaceKindIds(
    PJRT_TopologyDescription_GetMemorySpaceKindIds_Args& args) {
  static const int kind_id = kMemoryKindId;
  args.memory_space_kind_ids = &kind_id;
  args.num_memory_space_kind_ids = 1;
}

void Compile(PJRT_Compile_Args& args) {
  const PJRT_TopologyDescription& topology = Require(args.topology, "topology");
  const PJRT_Program program = Complete(Require(args.program, "program"));
  const std::string_view options(args.compile_options, args.compile_options_size);
  args.executable = new PJRT_Executable{
      CompiledProgram::Compile(program, options, static_cast<int64_t>(topology.handles.size()))};
}

}  // namespace pjrt::boundary
