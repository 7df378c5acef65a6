// Forks beside threads that work. A forked child has one thread, the one that forked, and finds
// every lock as it was: one that another thread held stays locked for ever, and what that thread
// was changing stays half changed. So each of our shared libraries forks in one order, which
// fork.cc registers with the system once:
//
//   1. prepare hooks wait for what other threads have to finish first (AtFork; the newest first);
//   2. the library closes: who wants a NoFork waits, and the fork waits for those that there are;
//   3. the process forks;
//   4. the library opens again, in both processes; then the hooks' other parts, the oldest first.
//
// Our libraries hold their own copy of this. Where one calls another it registers again after
// loading it (RegisterForkHandlers), so that it closes first and its threads can still finish their
// calls. Locks fall into two kinds:
//
// - those under which a thread may wait for others, the interpreter's lock among them: a prepare
//   hook takes them, outermost first;
// - all others: Mutex, or any mutex below a NoFork. Under these a thread waits for nobody and takes
//   no lock of the first kind.
#pragma once

#include <cstdint>
#include <mutex>

namespace process {

// While one lives, no other thread forks. It does not wait for a fork if its thread has one
// already.
class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork&) = delete;
};

// The same, for what is no scope.
void BeginNoFork();
void EndNoFork();

// Within a NoFork: forks are allowed while this lives. Around waiting for other threads and around
// calls of functions that are not ours.
class MayFork {
 public:
  MayFork();
  ~MayFork();
  MayFork(const MayFork&) = delete;

 private:
  const int no_forks_;
};

// A thread that works for one that has a NoFork and waits for it: covered by that one.
class NoForkOfCaller {
 public:
  NoForkOfCaller();
  ~NoForkOfCaller();
  NoForkOfCaller(const NoForkOfCaller&) = delete;
};

// A mutex that no forked child finds locked.
class Mutex {
 public:
  void lock();
  void unlock();

 private:
  std::mutex mutex_;
};

// What a part of the library does at forks; null for nothing.
struct ForkHooks {
  void (*prepare)() = nullptr;
  void (*parent)() = nullptr;  // also when the fork failed
  void (*child)() = nullptr;
};
// Adds them for good, at most 16. They live for ever.
void AtFork(const ForkHooks& hooks);

// How many forks lie between this process and the one that loaded the library: work of an earlier
// number has no thread here.
int64_t ForkGeneration();

// The hooks alone, before a fork that this thread will do: an interpreter takes locks of its own
// before it forks, and wants them called before.
void PrepareFork();
void EndForkInParent();

// Called once by itself when the library is loaded, and by whoever has loaded a library that it
// calls.
void RegisterForkHandlers();

}  // namespace process
