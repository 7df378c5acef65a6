// What is told of a client, and of the topology of its devices.
#pragma once

#include <string>
#include <vector>

#include "pjrt/c_api.h"

namespace pjrt::boundary {

struct TopologyDescription {
  std::string platform_name, platform_version;
  std::vector<PJRT_DeviceDescription*> handles;
};

struct ClientDescription {
  int process_index = 0;
  std::vector<PJRT_Device*> device_handles, addressable_handles;
  std::vector<PJRT_Memory*> memory_handles;  // of the addressable ones
};

// Each plugin says where its clients and topologies keep these.
const TopologyDescription& DescriptionOf(const PJRT_TopologyDescription& topology);
const ClientDescription& DescriptionOf(const PJRT_Client& client);
PJRT_TopologyDescription& TopologyOf(PJRT_Client& client);

// Throws if the caller's array cannot take so many entries.
void CheckRoom(const PJRT_Client_DefaultDeviceAssignment_Args& args, size_t needed);

}  // namespace pjrt::boundary
