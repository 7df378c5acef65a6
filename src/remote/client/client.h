// The client of a runtime server as a PJRT client: what stands for the server's devices here.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "pjrt/boundary/client_description.h"
#include "pjrt/boundary/device_description.h"
#include "pjrt/boundary/event.h"
#include "pjrt/boundary/memory.h"
#include "pjrt/c_api.h"
#include "remote/client/arena.h"
#include "remote/client/connection.h"

struct PJRT_TopologyDescription : pjrt::boundary::TopologyDescription {
  std::string serialized;
};

struct PJRT_Device {
  PJRT_Client* client = nullptr;
  PJRT_DeviceDescription description;
  uint32_t place = 0;  // in the server's list
  bool addressable = false;
  int local_hardware_id = -1;
  std::vector<PJRT_Memory*> memories;
  PJRT_Memory* default_memory = nullptr;  // null: the server's plugin knows none

  // Of one of its memories' kinds; the default one for others.
  PJRT_Memory* memory_of_kind(const std::string& kind) const;
};

// Buffers and executables hold references, so that one which outlives Client_Destroy does no harm.
struct PJRT_Client : pjrt::boundary::ClientDescription, std::enable_shared_from_this<PJRT_Client> {
  explicit PJRT_Client(const remote::Endpoint& endpoint);

  // Throws kNotFound.
  PJRT_Device& device(int64_t id) const;
  // The place that a memory, or else a device, names; throws if both are null.
  remote::wire::Place PlaceOf(PJRT_Memory* memory, PJRT_Device* device) const;

  remote::wire::Description description;
  std::shared_ptr<remote::Connection> connection;
  remote::Arena arena;
  PJRT_TopologyDescription topology;
  std::vector<std::unique_ptr<PJRT_Device>> devices;
  std::vector<std::unique_ptr<pjrt::boundary::Memory>> memories;

 private:
  void AddMemories();
  void AddDevices();
  std::deque<PJRT_MemoryDescription> memory_descriptions_;
  std::deque<pjrt::NamedValues> attributes_;  // what the descriptions point at
};

namespace remote {

// Those of this process that have not been destroyed.
std::vector<std::shared_ptr<PJRT_Client>> LiveClients();

}  // namespace remote

namespace pjrt::boundary {

// Sets the completion by the last reply, with its error if it brings one.
remote::Connection::Handler CompletionHandler(CompletionPtr completion);

}  // namespace pjrt::boundary
