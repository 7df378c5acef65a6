// The replies of a session on their way to its client.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "remote/messages.h"

namespace remote {

// Filled by the session's thread, and by those of the plugin, which must never wait for a client.
// What the former puts in it sends itself, and so do the latter with the little that the network
// takes in any case, which spares waking the session's writer; that sends the rest. Thread-safe.
//
// A reply for which there is no memory would leave its client waiting for ever: then the outbox has
// failed, and the session must end. Nothing here throws.
class Outbox {
 public:
  // `send`: writes a batch to the client, and may wait for it. False: the client is gone.
  // `give_up`: called by the writer once the outbox has failed, so that nobody waits for the
  // client.
  explicit Outbox(std::function<bool(const wire::Replies&)> send, std::function<void()> give_up)
      : send_(std::move(send)), give_up_(std::move(give_up)) {}

  // Dropped once closed.
  void Push(wire::Reply reply) noexcept;
  // The same for what `fill`, which may throw, makes of an empty reply of the number.
  template <typename Fill>
  void Answer(uint64_t number, const Fill& fill) noexcept {
    try {
      Push(std::move(*Make<wire::Reply>([&](wire::Reply& reply) {
        reply.set_reply(number);
        fill(reply);
      })));
    } catch (const std::exception&) {
      Fail();
    }
  }
  // The session's thread, while it lives, ends what it does by a Send.
  void SetOwner() { owner_ = std::this_thread::get_id(); }
  // Sends what is there. Only where waiting for the client does no harm.
  void Send() noexcept;
  // Sends, and waits for the client, if there is much. For the session's thread between requests.
  void SendIfFull() noexcept;
  // Sends until closed.
  void RunWriter() noexcept;
  // The client has asked for something. One that does so without reading its replies is made to
  // wait before it may ask more. False if closed.
  bool WaitForRoom();
  // Afterwards nothing is sent any more.
  void Close();
  void Fail() noexcept;
  bool has_failed() const { return failed_; }

 private:
  void Drop();
  std::unique_ptr<wire::Replies> Take();
  void SendLocked() noexcept;

  const std::function<bool(const wire::Replies&)> send_;
  const std::function<void()> give_up_;
  std::atomic<std::thread::id> owner_;
  std::mutex sending_;  // keeps batches in their order; taken before the other
  std::mutex mutex_;
  std::condition_variable filled_, emptied_;  // for the writer; for who waits for room
  std::deque<wire::Reply> replies_;
  size_t bytes_ = 0, memory_ = 0;  // of the replies: sent, and kept here
  size_t sent_since_heard_ = 0;    // bytes since the client last asked for something
  bool closed_ = false;
  std::atomic<bool> failed_{false};
};

}  // namespace remote
