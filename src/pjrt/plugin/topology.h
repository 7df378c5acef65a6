// What programs are compiled for: a number of like devices of this machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pjrt/c_api.h"

struct PJRT_DeviceDescription {
  explicit PJRT_DeviceDescription(int id);
  int id;
  std::string debug_string;  // "CPU:0"
};

struct PJRT_TopologyDescription {
  explicit PJRT_TopologyDescription(int num_devices);
  std::vector<std::unique_ptr<PJRT_DeviceDescription>> devices;
  std::vector<PJRT_DeviceDescription*> handles;
};

namespace pjrt::plugin {

inline constexpr char kPlatformName[] = "cpu";
inline constexpr char kDeviceKind[] = "cpu";
// The engine's fingerprint: code made on one platform version is valid on the same.
const std::string& PlatformVersion();

struct ClientOptions {
  int num_devices = 1;
  bool asynchronous = true;
};
// Options of Client_Create and TopologyDescription_Create: cpu_device_count (int64), asynchronous
// (bool); node_id, num_nodes and process_id as far as they say that there is one process. Throws
// for names that it does not know.
ClientOptions ParseClientOptions(const PJRT_NamedValue* options, size_t count);

}  // namespace pjrt::plugin
