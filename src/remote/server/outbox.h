// The replies of a session on their way to its client.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "remote/messages.h"

namespace remote {

// Filled by the session's thread, and by those of the plugin, which must never wait for a client.
// What the former puts in it sends itself, and so do the latter with the little that the network
// takes in any case, which spares waking the session's writer; that sends the rest. Thread-safe.
class Outbox {
 public:
  // `send`: writes a batch to the client, and may wait for it. False: the client is gone.
  explicit Outbox(std::function<bool(const wire::Replies&)> send) : send_(std::move(send)) {}

  // Dropped once closed.
  void Push(wire::Reply reply);
  // The session's thread, while it lives, ends what it does by a Send.
  void SetOwner() { owner_ = std::this_thread::get_id(); }
  // Sends what is there. Only where waiting for the client does no harm.
  void Send();
  // Sends until closed.
  void RunWriter();
  // The client has asked for something. One that does so without reading its replies is made to
  // wait before it may ask more. False if closed.
  bool WaitForRoom();
  // Afterwards nothing is sent any more.
  void Close();

 private:
  void Drop();
  bool Take(wire::Replies* batch);
  void SendLocked();

  const std::function<bool(const wire::Replies&)> send_;
  std::atomic<std::thread::id> owner_;
  std::mutex sending_;  // keeps batches in their order; taken before the other
  std::mutex mutex_;
  std::condition_variable filled_, emptied_;  // for the writer; for who waits for room
  std::deque<wire::Reply> replies_;
  size_t bytes_ = 0;
  size_t sent_since_heard_ = 0;  // bytes since the client last asked for something
  bool closed_ = false;
};

}  // namespace remote
