#include "remote/server/underway.h"

namespace remote {

bool Underway::HasRoomLocked(size_t bytes) const {
  return operations_ == 0 ||
         (operations_ < kMostOperations && bytes_ <= kMostBytes && bytes <= kMostBytes - bytes_);
}

bool Underway::HasRoom(size_t bytes) const {
  std::lock_guard lock(mutex_);
  return HasRoomLocked(bytes);
}

void Underway::WaitAndAdd(size_t bytes) {
  std::unique_lock lock(mutex_);
  removed_.wait(lock, [&] { return HasRoomLocked(bytes); });
  ++operations_;
  bytes_ += bytes;
}

void Underway::Remove(size_t bytes) {
  {
    std::lock_guard lock(mutex_);
    --operations_;
    bytes_ -= bytes;
  }
  removed_.notify_one();
}

}  // namespace remote
