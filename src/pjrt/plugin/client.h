// A client: the devices of this process.
#pragma once

#include <memory>
#include <vector>

#include "pjrt/c_api.h"
#include "pjrt/plugin/device.h"
#include "pjrt/plugin/topology.h"

// Buffers and executables hold references, so that one which outlives Client_Destroy does no harm.
struct PJRT_Client : std::enable_shared_from_this<PJRT_Client> {
  explicit PJRT_Client(const pjrt::plugin::ClientOptions& options);

  // Throws kNotFound.
  PJRT_Device& device(int64_t id) const;

  bool asynchronous;
  PJRT_TopologyDescription topology;
  std::vector<std::unique_ptr<PJRT_Device>> devices;
  std::vector<PJRT_Device*> device_handles;
  std::vector<PJRT_Memory*> memory_handles;
  std::shared_ptr<PJRT_Client> self;  // the framework's reference, until Client_Destroy
};
