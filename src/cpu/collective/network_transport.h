// Collectives between processes of different hosts, over TCP.
//
// Every rank is connected with every other. What a rank sends and receives in one round of a
// collective is under way at the same time in both directions, by one thread that never blocks.
//
// A small all_reduce is one message from each member to all, and everybody adds everything. A large
// one goes chunk by chunk: member i receives the i-th part of every other member's chunk, adds them
// to its own in the members' order, and sends the sum to all, together with its parts of the next
// chunk.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <vector>

#include "cpu/collective/connections.h"
#include "cpu/collective/message.h"
#include "cpu/collective/transport.h"

namespace cpu {

class NetworkTransport : public Transport {
 public:
  NetworkTransport(std::unique_ptr<Connections> connections, std::chrono::milliseconds timeout);

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
  using Clock = std::chrono::steady_clock;

  // What is to be sent to a rank and received from it, in this order.
  struct Lane {
    std::deque<Message> outgoing, incoming;
    bool busy() const { return !outgoing.empty() || !incoming.empty(); }
    bool broken = false;
    MessageHeader latest{};  // received; its collective is 0 at first
  };

  void Begin(const Exchange& exchange);
  void Send(int64_t rank, const FlatArray& data, int64_t begin, int64_t end);
  void Receive(int64_t rank, const FlatArray& data, int64_t begin, int64_t end);
  // Moves all messages.
  void Finish(const Exchange& exchange);
  bool Move(const Exchange& exchange, int64_t rank);
  bool MoveAll(const Exchange& exchange);
  void AwaitEvents(std::chrono::milliseconds timeout);
  bool HasFailure();
  void ThrowFailure(const Exchange& exchange);
  void CheckHeader(const Exchange& exchange, int64_t rank, const MessageHeader& header,
                   int64_t bytes);
  [[noreturn]] void ThrowGone(const Exchange& exchange, int64_t rank);
  [[noreturn]] void ThrowTimeout(const Exchange& exchange);
  std::string LastOf(int64_t rank) const;

  void AllReduceAtOnce(const Exchange& exchange, hlo::ElementType type, const FlatArray& in,
                       const FlatArray& out);
  void AllReduceInChunks(const Exchange& exchange, hlo::ElementType type, const FlatArray& in,
                         const FlatArray& out);
  // Memory for what is received from each member.
  std::byte* Room(size_t member, int64_t bytes);

  std::unique_ptr<Connections> connections_;
  std::chrono::milliseconds timeout_;
  int64_t me_;
  uint64_t collectives_ = 0;
  MessageHeader header_{};     // of this collective's messages
  std::vector<Lane> lanes_;    // by rank
  std::vector<int64_t> busy_;  // ranks whose lanes are
  std::vector<std::vector<std::byte>> rooms_;
};

}  // namespace cpu
