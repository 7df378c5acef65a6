// A client: the devices of this process, and what it knows of those of the others.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cpu/collective/communicator.h"
#include "cpu/collective/key_value_store.h"
#include "pjrt/c_api.h"
#include "pjrt/plugin/device.h"
#include "pjrt/plugin/topology.h"
#include "process/fork.h"

// Buffers and executables hold references, so that one which outlives Client_Destroy does no harm.
struct PJRT_Client : pjrt::boundary::ClientDescription, std::enable_shared_from_this<PJRT_Client> {
  // Throws if there are several processes and no store.
  PJRT_Client(const pjrt::plugin::ClientOptions& options, cpu::KeyValueStore store);
  ~PJRT_Client();

  // This process's among several; nothing if it is the only one.
  std::optional<int64_t> rank() const {
    return topology.num_processes > 1 ? std::optional<int64_t>(process_index) : std::nullopt;
  }
  // Throws kNotFound.
  PJRT_Device& device(int64_t id) const;
  // The other processes, or null if there are none. The first call waits for them; throws
  // kDeadlineExceeded naming those that do not come.
  cpu::Communicator* communicator();

  bool asynchronous;
  PJRT_TopologyDescription topology;

 private:
  const int64_t generation_ = process::ForkGeneration();
  cpu::KeyValueStore store_;
  std::string job_secret_;
  std::mutex communicator_mutex_;
  std::unique_ptr<cpu::Communicator> communicator_;

 public:
  std::vector<std::unique_ptr<PJRT_Device>> devices;
  std::shared_ptr<PJRT_Client> self;  // the framework's reference, until Client_Destroy
};
