// The lock under which graphs are cut, compiled and started.
#pragma once

#include <mutex>

namespace lazy {

// Recursive: what is called under it, such as an observer of graphs, may read values.
class SyncLock {
 public:
  void lock();
  bool try_lock();
  void unlock();
  // Whether the calling thread has it. No code of the user's but an observer of graphs runs under
  // it (graph_observer.h): it could cut another graph in the midst of one.
  static bool IsHeldHere();
  // In a forked child, for its thread: the lock knows its owner by the thread's number, which has
  // changed.
  void Renew();

 private:
  std::recursive_mutex mutex_;
};

SyncLock& SyncMutex();

}  // namespace lazy
