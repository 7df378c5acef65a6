#include "remote/server/outbox.h"

#include <new>

namespace remote {
namespace {

constexpr size_t kMostWaitingBytes = size_t{32} << 20;
// The network takes as much from a server whose client has stopped reading: a quarter of what
// HTTP/2 gives every stream.
constexpr size_t kLittle = size_t{16} << 10;

// Of a message, about; one larger than all is sent alone.
size_t BytesOf(const wire::Reply& reply) { return reply.ByteSizeLong() + 16; }

// What it takes here, about: the smallest reply has a hundred bytes and more.
size_t MemoryOf(const wire::Reply& reply) { return reply.ByteSizeLong() + 256; }

}  // namespace

void Outbox::Push(wire::Reply reply) noexcept {
  // Of several the first goes out while the session's thread makes the next.
  const bool leave = !reply.more() && owner_.load() == std::this_thread::get_id();
  const bool more = reply.more();
  bool little = false;
  {
    std::unique_lock lock(mutex_);
    if (closed_) return;
    const size_t bytes = BytesOf(reply), memory = MemoryOf(reply);
    try {
      replies_.push_back(std::move(reply));
    } catch (const std::bad_alloc&) {
      lock.unlock();
      return Fail();
    }
    bytes_ += bytes;
    memory_ += memory;
    little = bytes_ + sent_since_heard_ <= kLittle;
  }
  if (leave) return;
  if (little && !more && sending_.try_lock()) {
    const std::lock_guard lock(sending_, std::adopt_lock);
    SendLocked();
  } else {
    filled_.notify_one();
  }
}

// Some replies, not more than a message should hold. Null if there are none.
std::unique_ptr<wire::Replies> Outbox::Take() {
  std::lock_guard lock(mutex_);
  if (replies_.empty()) return nullptr;
  return Make<wire::Replies>([this](wire::Replies& batch) {
    size_t taken = 0;
    while (!replies_.empty()) {
      const size_t bytes = BytesOf(replies_.front());
      if (taken > 0 && taken + bytes > kMostPieceBytes) break;
      taken += bytes;
      memory_ -= MemoryOf(replies_.front());
      *batch.add_replies() = std::move(replies_.front());
      replies_.pop_front();
    }
    bytes_ -= taken;
    sent_since_heard_ += taken;
  });
}

void Outbox::Send() noexcept {
  const std::lock_guard lock(sending_);
  SendLocked();
}

void Outbox::SendIfFull() noexcept {
  {
    std::lock_guard lock(mutex_);
    if (memory_ < kMostWaitingBytes) return;
  }
  Send();
}

void Outbox::SendLocked() noexcept {
  try {
    while (const std::unique_ptr<wire::Replies> batch = Take()) {
      if (!send_(*batch)) return Drop();
      emptied_.notify_one();
    }
  } catch (const std::exception&) {
    Fail();
  }
}

void Outbox::RunWriter() noexcept {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      filled_.wait(lock, [&] { return closed_ || !replies_.empty(); });
      if (closed_) break;
    }
    Send();
  }
  if (failed_) give_up_();
}

bool Outbox::WaitForRoom() {
  std::unique_lock lock(mutex_);
  sent_since_heard_ = 0;
  emptied_.wait(lock, [&] { return closed_ || memory_ < kMostWaitingBytes; });
  return !closed_;
}

void Outbox::Close() {
  Drop();
  const std::lock_guard lock(sending_);  // waits for who is sending
}

void Outbox::Fail() noexcept {
  failed_ = true;
  Drop();
}

void Outbox::Drop() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    replies_.clear();
    bytes_ = memory_ = 0;
  }
  filled_.notify_all();
  emptied_.notify_all();
}

}  // namespace remote
