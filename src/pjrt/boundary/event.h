// Completion of asynchronous work.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "pjrt/boundary/error.h"
#include "pjrt/c_api.h"
#include "process/fork.h"

namespace pjrt::boundary {

// Completes once, with success or a failure. Thread-safe. What a forked child finds incomplete is
// work that another thread does in the parent: it fails in the child when it is asked for.
class Completion {
 public:
  Completion() = default;
  // One that the child completes as well: who holds its copy of the handle does.
  static std::shared_ptr<Completion> OfHandle();
  // One that has completed with success, shared by all.
  static const std::shared_ptr<Completion>& Done();
  static std::shared_ptr<Completion> Failed(FailurePtr failure);

  // Runs the callbacks on this thread. Later calls change nothing.
  void Set(FailurePtr failure = nullptr);
  bool is_set() const { return set_.load(std::memory_order_acquire); }
  void Wait();  // does not throw
  // is_set, after what was lost has failed.
  bool IsSetOrLost();
  // Of a completion that is set.
  const FailurePtr& failure() const { return failure_; }
  // Calls back at once if set, else from Set. Exceptions must not leave the callback.
  void OnSet(std::function<void(const FailurePtr&)> callback);

 private:
  std::atomic<bool> set_{false};
  static constexpr int64_t kAny = -1;
  int64_t generation_ = process::ForkGeneration();
  process::Mutex mutex_;
  FailurePtr failure_;
  std::vector<std::function<void(const FailurePtr&)>> callbacks_;
};

using CompletionPtr = std::shared_ptr<Completion>;

PJRT_Event* NewEvent(CompletionPtr completion);

}  // namespace pjrt::boundary

struct PJRT_Event {
  pjrt::boundary::CompletionPtr completion;
};
