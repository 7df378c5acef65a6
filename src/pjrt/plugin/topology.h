// What programs are compiled for: a number of like devices, of one process or one of each process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pjrt/boundary/client_description.h"
#include "pjrt/boundary/device_description.h"
#include "pjrt/c_api.h"

struct PJRT_TopologyDescription : pjrt::boundary::TopologyDescription {
  // With several processes each has one of the devices.
  PJRT_TopologyDescription(int num_devices, int num_processes);
  int num_processes;
  std::vector<std::unique_ptr<PJRT_DeviceDescription>> devices;
};

namespace pjrt::plugin {

inline constexpr char kPlatformName[] = "cpu";
inline constexpr char kDeviceKind[] = "cpu";
// There is one kind of memory: the process's own.
inline constexpr char kMemoryKind[] = "device";
inline constexpr int kMemoryKindId = 0;
// The engine's fingerprint: code made on one platform version is valid on the same.
const std::string& PlatformVersion();

struct ClientOptions {
  int num_devices = 1;    // of all processes
  int num_processes = 1;  // more than 1: each has one device, whose id is the process's index
  int process_index = 0;
  bool asynchronous = true;
  std::string job_secret;  // empty: none
};
// Options of Client_Create and TopologyDescription_Create: cpu_device_count (int64), asynchronous
// (bool), num_nodes (int64: the number of processes), node_id or process_id (int64: which of them
// this is), job_secret (string: what all of them know, and nobody else). Throws for names that it
// does not know.
ClientOptions ParseClientOptions(const PJRT_NamedValue* options, size_t count);

}  // namespace pjrt::plugin
