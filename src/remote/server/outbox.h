// The replies of a session on their way to its client.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "remote/messages.h"

namespace remote {

// Filled by the threads of the plugin, which must never wait for a client, emptied by the session's
// writer. Thread-safe.
class Outbox {
 public:
  // Dropped once closed.
  void Push(wire::Reply reply);
  // Waits for replies and moves some into `batch`, not more than a message holds. False if closed.
  bool Take(wire::Replies* batch);
  // A client that asks without reading its replies is made to wait before it may ask more. False if
  // closed.
  bool WaitForRoom();
  void Close();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<wire::Reply> replies_;
  size_t bytes_ = 0;
  bool closed_ = false;
};

}  // namespace remote
