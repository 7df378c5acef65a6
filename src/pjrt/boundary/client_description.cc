#include "pjrt/boundary/client_description.h"

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"

namespace pjrt::boundary {
namespace {

const ClientDescription& Get(const PJRT_Client* client) {
  return DescriptionOf(Require(client, "client"));
}

const TopologyDescription& Get(const PJRT_TopologyDescription* topology) {
  return DescriptionOf(Require(topology, "topology"));
}

const TopologyDescription& TopologyGet(PJRT_Client* client) {
  return DescriptionOf(TopologyOf(Require(client, "client")));
}

}  // namespace

void CheckRoom(const PJRT_Client_DefaultDeviceAssignment_Args& args, size_t needed) {
  if (args.default_assignment_size >= needed) return;
  throw hlo::Error("the assignment has " + std::to_string(needed) +
                   " entries, but there is room for " +
                   std::to_string(args.default_assignment_size));
}

void Client_PlatformName(PJRT_Client_PlatformName_Args& args) {
  const std::string& name = TopologyGet(args.client).platform_name;
  args.platform_name = name.data();
  args.platform_name_size = name.size();
}

void Client_PlatformVersion(PJRT_Client_PlatformVersion_Args& args) {
  const std::string& version = TopologyGet(args.client).platform_version;
  args.platform_version = version.data();
  args.platform_version_size = version.size();
}

void Client_ProcessIndex(PJRT_Client_ProcessIndex_Args& args) {
  args.process_index = Get(args.client).process_index;
}

void Client_TopologyDescription(PJRT_Client_TopologyDescription_Args& args) {
  args.topology = &TopologyOf(Require(args.client, "client"));
}

void Client_Devices(PJRT_Client_Devices_Args& args) {
  const ClientDescription& client = Get(args.client);
  args.devices = client.device_handles.data();
  args.num_devices = client.device_handles.size();
}

void Client_AddressableDevices(PJRT_Client_AddressableDevices_Args& args) {
  const ClientDescription& client = Get(args.client);
  args.addressable_devices = client.addressable_handles.data();
  args.num_addressable_devices = client.addressable_handles.size();
}

void Client_AddressableMemories(PJRT_Client_AddressableMemories_Args& args) {
  const ClientDescription& client = Get(args.client);
  args.addressable_memories = client.memory_handles.data();
  args.num_addressable_memories = client.memory_handles.size();
}

// Processes that compute together find out about each other by themselves.
void Client_UpdateGlobalProcessInfo(PJRT_Client_UpdateGlobalProcessInfo_Args& args) {
  Require(args.client, "client");
}

// Transfers need no preparation of the process's memory.
void Client_DmaMap(PJRT_Client_DmaMap_Args& args) { Require(args.client, "client"); }
void Client_DmaUnmap(PJRT_Client_DmaUnmap_Args& args) { Require(args.client, "client"); }

void TopologyDescription_PlatformName(PJRT_TopologyDescription_PlatformName_Args& args) {
  const std::string& name = Get(args.topology).platform_name;
  args.platform_name = name.data();
  args.platform_name_size = name.size();
}

void TopologyDescription_PlatformVersion(PJRT_TopologyDescription_PlatformVersion_Args& args) {
  const std::string& version = Get(args.topology).platform_version;
  args.platform_version = version.data();
  args.platform_version_size = version.size();
}

void TopologyDescription_GetDeviceDescriptions(
    PJRT_TopologyDescription_GetDeviceDescriptions_Args& args) {
  const TopologyDescription& topology = Get(args.topology);
  args.descriptions = topology.handles.data();
  args.num_descriptions = topology.handles.size();
}

void TopologyDescription_Attributes(PJRT_TopologyDescription_Attributes_Args& args) {
  Require(args.topology, "topology");
  args.attributes = nullptr;
  args.num_attributes = 0;
}

}  // namespace pjrt::boundary
