// Makes the processes of a run into a world in which collectives work.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cpu/collective/collectives.h"
#include "cpu/collective/key_value_store.h"

namespace cpu {

struct WorldOptions {
  int64_t rank = 0, size = 1;
  // How long a collective, or the rendezvous itself, waits for the other ranks.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  // How long a rank may give no sign of life: one that computes, or sleeps, still gives them; one
  // that is stopped, or whose host or network has gone, does not. The same on all ranks.
  std::chrono::milliseconds heartbeat_timeout = std::chrono::seconds(100);
  // Processes of equal hosts share memory; empty: what HostIdentity says.
  std::string host;
  // The job's. With it, ranks of different hosts prove themselves to each other, and encrypt what
  // they send unless TORCH_XLA_TLS is 0. Empty: they trust the network, and say so.
  std::string secret;
};

// TORCH_XLA_COLLECTIVE_TIMEOUT in seconds, half an hour without it. Throws hlo::Error for what is
// no number.
std::chrono::milliseconds CollectiveTimeout();
// TORCH_XLA_HEARTBEAT_TIMEOUT likewise, 100 seconds without it.
std::chrono::milliseconds HeartbeatTimeout();

// Meets the other ranks at the store, under keys that begin with "collectives/": a store, or a
// prefix of one, serves one world. Blocks until all are there. Throws hlo::Error(kDeadlineExceeded)
// naming the ranks that do not come within the timeout.
//
// The world belongs to this process; in a child that it forks, collectives throw.
std::unique_ptr<Collectives> ConnectWorld(const WorldOptions& options, const KeyValueStore& store);

}  // namespace cpu
