#include "lazy/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "lazy/capture.h"
#include "lazy/sync_mutex.h"
#include "pjrt/client/wait.h"
#include "process/fork.h"

namespace lazy {
namespace {

// Soon for who has pressed a key, and next to no work.
constexpr std::chrono::milliseconds kBetweenChecks{50};

std::atomic<InterruptCheck> interrupt_check{nullptr};

// Set by another thread, which may come to it after the waiting one has left.
class Signal {
 public:
  void Set() {
    std::lock_guard lock(mutex_);
    is_set_ = true;
    changed_.notify_one();
  }
  bool IsSetWithin(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return is_set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

// Of the process in which the thread began: asked once, as each read asks. A forked child's thread,
// if it was not the main one, waits plainly.
bool IsMainThread() {
  thread_local const bool is_main = gettid() == getpid();
  return is_main;
}

}  // namespace

void SetInterruptCheck(InterruptCheck check) { interrupt_check = check; }

bool MayBeInterrupted() {
  return interrupt_check.load(std::memory_order_relaxed) != nullptr && IsMainThread() &&
         !SyncLock::IsHeldHere() && CaptureScope::Current() == nullptr;
}

void AwaitOrInterrupt(const pjrt::Event& event) {
  if (event.IsReady()) return;
  if (!MayBeInterrupted()) return pjrt::Wait(event);
  const process::MayFork waits;
  const auto ready = std::make_shared<Signal>();
  event.OnReady([ready](const hlo::Error*) { ready->Set(); });
  const int64_t generation = process::ForkGeneration();
  while (!ready->IsSetWithin(kBetweenChecks)) {
    interrupt_check.load(std::memory_order_relaxed)();
    // The user's code has forked: nobody sets it in the child, where the event says so itself.
    if (process::ForkGeneration() != generation) break;
  }
  pjrt::Wait(event);
}

}  // namespace lazy
