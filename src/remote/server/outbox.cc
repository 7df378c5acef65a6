#include "remote/server/outbox.h"

namespace remote {
namespace {

constexpr size_t kMostWaitingBytes = size_t{256} << 20;

// Of a message, about; one larger than all is sent alone.
size_t BytesOf(const wire::Reply& reply) { return reply.ByteSizeLong() + 16; }

}  // namespace

void Outbox::Push(wire::Reply reply) {
  // Of several the first goes out while the session's thread makes the next.
  const bool wake = reply.more() || owner_.load() != std::this_thread::get_id();
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    bytes_ += BytesOf(reply);
    replies_.push_back(std::move(reply));
  }
  if (wake) changed_.notify_all();
}

// Some replies, not more than a message should hold. False if there are none.
bool Outbox::Take(wire::Replies* batch) {
  batch->Clear();
  std::lock_guard lock(mutex_);
  size_t taken = 0;
  while (!replies_.empty()) {
    const size_t bytes = BytesOf(replies_.front());
    if (taken > 0 && taken + bytes > kMostPieceBytes) break;
    taken += bytes;
    *batch->add_replies() = std::move(replies_.front());
    replies_.pop_front();
  }
  bytes_ -= taken;
  return taken > 0;
}

void Outbox::Send() {
  std::lock_guard lock(sending_);
  wire::Replies batch;
  while (Take(&batch)) {
    if (!send_(batch)) return Close();
    changed_.notify_all();  // who waits for room
  }
}

void Outbox::RunWriter() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return closed_ || !replies_.empty(); });
      if (closed_) return;
    }
    Send();
  }
}

bool Outbox::WaitForRoom() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || bytes_ < kMostWaitingBytes; });
  return !closed_;
}

void Outbox::Close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    replies_.clear();
  }
  changed_.notify_all();
}

}  // namespace remote
