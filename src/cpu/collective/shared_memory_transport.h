// Collectives between processes of one host, through a SharedSegment.
//
// A message is a slot of the sender's that one or several receivers read. Of its two slots a
// process fills one while the others still read the other; a slot is filled again when all its
// readers have said that they are done. A process that waits spins for a moment, and then sleeps
// until it is woken, so that it does not take the processor from those it waits for.
//
// A small all_reduce is one message from each member to all, and everybody adds everything. A large
// one goes chunk by chunk: member i receives the i-th part of every other member's chunk, adds them
// to its own, and sends the sum to all.
#pragma once

#include <chrono>
#include <memory>
#include <unordered_map>
#include <vector>

#include "cpu/collective/shared_pulse.h"
#include "cpu/collective/shared_segment.h"
#include "cpu/collective/transport.h"

namespace cpu {

class SharedMemoryTransport : public Transport {
 public:
  // `ranks` are the world's ranks of the segment's processes; only these may be members.
  SharedMemoryTransport(std::unique_ptr<SharedSegment> segment, std::vector<int64_t> ranks,
                        std::chrono::milliseconds timeout,
                        std::chrono::milliseconds heartbeat_timeout);

  void AllReduce(const Exchange& exchange, hlo::ElementType type, const FlatArray& in,
                 const FlatArray& out) override;
  void ReduceScatter(const Exchange& exchange, hlo::ElementType type,
                     const std::vector<FlatArray>& parts, const FlatArray& out) override;
  void AllGather(const Exchange& exchange, const FlatArray& in,
                 const std::vector<FlatArray>& parts) override;
  void AllToAll(const Exchange& exchange, const std::vector<FlatArray>& in,
                const std::vector<FlatArray>& out) override;
  void Broadcast(const Exchange& exchange, const FlatArray& in, const FlatArray& out) override;
  void Permute(const Exchange& exchange, const FlatArray& in, const FlatArray& out, int64_t target,
               int64_t source) override;
  void Fail(const std::string& reason) noexcept override;

 private:
  struct Unread {
    int64_t reader;  // its rank
    uint32_t message;
  };

  // A rank's number among the segment's processes.
  int64_t Place(int64_t rank) const { return place_.at(rank); }

  void Begin(const Exchange& exchange);
  void End();
  // An empty slot of this process.
  std::byte* Claim(const Exchange& exchange);
  // Sends the slot claimed last.
  void Post(const Exchange& exchange, int64_t reader);
  void PostToOthers(const Exchange& exchange);
  // The next message from a rank, to be released when it has been read.
  const std::byte* Await(const Exchange& exchange, int64_t sender);
  void Release(int64_t sender);

  void AllReduceAtOnce(const Exchange& exchange, hlo::ElementType type, const FlatArray& in,
                       const FlatArray& out);
  void AllReduceChunk(const Exchange& exchange, hlo::ElementType type, const FlatArray& in,
                      const FlatArray& out, int64_t begin, int64_t end);

  template <typename Ready>
  void WaitFor(const Exchange& exchange, int64_t rank, const Ready& ready);
  void CheckAlive(const Exchange& exchange, int64_t rank);
  void CheckSignature(const Exchange& exchange, int64_t rank, const SharedSegment::Slot& slot);
  [[noreturn]] void ThrowTimeout(const Exchange& exchange, int64_t awaited);
  std::string LastOf(int64_t rank) const;

  std::unique_ptr<SharedSegment> segment_;
  std::unique_ptr<SharedPulse> pulse_;
  std::vector<int64_t> ranks_;
  std::unordered_map<int64_t, int64_t> place_;
  std::chrono::milliseconds timeout_;
  int spins_;
  int64_t me_;                     // this process's place
  int64_t claimed_ = 1;            // the slot claimed last
  std::vector<Unread> unread_[2];  // who has still to read which message in each slot
  std::vector<uint32_t> consumed_;
};

}  // namespace cpu
