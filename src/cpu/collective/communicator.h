// Communicators: through them several processes ("ranks") exchange arrays, in collectives.
//
// How it works
//
// A communicator is made once per process by ConnectCommunicator, over a key-value store that all
// ranks of a world share. Each rank then runs the same collectives in the same order; one that is
// started is put into a queue, and a communication thread works it off in order, while the program
// goes on computing until it waits for the result.
//
// Between processes of one host data goes through shared memory (shared_memory_transport.h),
// between hosts over TCP (network_transport.h). Both add in the order of the ranks, and every
// element is computed once and copied, so that all ranks, and both transports, get the same bits.
//
// What can go wrong is an hlo::Error on every rank, and never a hang:
//   - ranks that diverge (another operation, type, number of elements, or group) compare a
//     signature with every message: kFailedPrecondition naming the rank and both collectives;
//   - a rank that has died or closed its client: kUnavailable, within a second;
//   - a rank that does not arrive within the timeout: kDeadlineExceeded naming it and what it did
//     last.
// After the first error the world is broken: what follows fails at once with the same reason.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cpu/collective/collective.h"
#include "cpu/collective/key_value_store.h"

namespace cpu {

// One rank's end of a world. Start, Wait and Run may be called from any thread; the collectives of
// all threads form one order, which must be the same on all ranks.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;

  // Queues the collective and returns at once. Until Wait has returned, the collective and the
  // operands must stay as they are, and the results are undefined. Results overlap no operands. In
  // an all_reduce result i may be operand i.
  virtual uint64_t Start(const Collective& collective, const void* const* operands,
                         void* const* results) = 0;
  // Returns when the started collective, and all before it, are done. Throws hlo::Error if it
  // failed; its memory is no longer used then.
  virtual void Wait(uint64_t ticket) = 0;
  // Start and Wait, without a change of threads when nothing else is queued.
  virtual void Run(const Collective& collective, const void* const* operands,
                   void* const* results) = 0;
};

struct CommunicatorOptions {
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
// The communicator belongs to this process; in a child that it forks, collectives throw.
std::unique_ptr<Communicator> ConnectCommunicator(const CommunicatorOptions& options,
                                                  const KeyValueStore& store);

}  // namespace cpu
