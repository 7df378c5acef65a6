#include "lazy/sync_mutex.h"

#include <new>

namespace lazy {
namespace {

thread_local int times_held = 0;

}  // namespace

void SyncLock::lock() {
  mutex_.lock();
  ++times_held;
}

bool SyncLock::try_lock() {
  if (!mutex_.try_lock()) return false;
  ++times_held;
  return true;
}

void SyncLock::unlock() {
  --times_held;
  mutex_.unlock();
}

bool SyncLock::IsHeldHere() { return times_held > 0; }

void SyncLock::Renew() {
  new (&mutex_) std::recursive_mutex;
  times_held = 0;
}

SyncLock& SyncMutex() {
  static auto* mutex = new SyncLock;
  return *mutex;
}

}  // namespace lazy
