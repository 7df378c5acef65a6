#include "remote/server/outbox.h"

namespace remote {
namespace {

constexpr size_t kMostWaitingBytes = size_t{256} << 20;

// Of a message, about; one larger than all is sent alone.
size_t BytesOf(const wire::Reply& reply) { return reply.ByteSizeLong() + 16; }

}  // namespace

void Outbox::Push(wire::Reply reply) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    bytes_ += BytesOf(reply);
    replies_.push_back(std::move(reply));
  }
  changed_.notify_all();
}

bool Outbox::Take(wire::Replies* batch) {
  batch->Clear();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !replies_.empty(); });
    if (closed_) return false;
    size_t taken = 0;
    while (!replies_.empty()) {
      const size_t bytes = BytesOf(replies_.front());
      if (taken > 0 && taken + bytes > kMostPieceBytes) break;
      taken += bytes;
      *batch->add_replies() = std::move(replies_.front());
      replies_.pop_front();
    }
    bytes_ -= taken;
  }
  changed_.notify_all();
  return true;
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
