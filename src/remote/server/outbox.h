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
// What the former puts in it sends itself, which spares the writer's waking; the rest is sent by
// the session's writer. Thread-safe.
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
  // A client that asks without reading its replies is made to wait before it may ask more. False if
  // closed.
  bool WaitForRoom();
  void Close();

 private:
  bool Take(wire::Replies* batch);

  const std::function<bool(const wire::Replies&)> send_;
  std::atomic<std::thread::id> owner_;
  std::mutex sending_;  // keeps batches in their order; taken before the other
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<wire::Reply> replies_;
  size_t bytes_ = 0;
  bool closed_ = false;
};

}  // namespace remote
