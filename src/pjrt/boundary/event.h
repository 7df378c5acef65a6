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
  using Callback = std::function<void(const FailurePtr&)>;

  Completion() = default;
  // One that the child completes as well: who holds its copy of the handle does.
  static std::shared_ptr<Completion> OfHandle();
  // One that has completed with success, shared by all.
  static const std::shared_ptr<Completion>& Done();
  static std::shared_ptr<Completion> Failed(FailurePtr failure);

  // Runs the callbacks on this thread, each whatever becomes of the others. Later calls change
  // nothing.
  void Set(FailurePtr failure = nullptr) noexcept;
  bool is_set() const { return set_.load(std::memory_order_acquire); }
  void Wait();  // does not throw
  // is_set, after what was lost has failed.
  bool IsSetOrLost();
  // Of a completion that is set.
  const FailurePtr& failure() const { return failure_; }
  // Calls back at once if set, else from Set. What the callback throws is lost: nobody is there to
  // whom it belongs. Throws std::bad_alloc, and does not call back then.
  void OnSet(Callback callback);

 private:
  void Run(const Callback& callback) const noexcept;

  std::atomic<bool> set_{false};
  static constexpr int64_t kAny = -1;
  int64_t generation_ = process::ForkGeneration();
  process::Mutex mutex_;
  FailurePtr failure_;
  std::vector<Callback> callbacks_;
};

using CompletionPtr = std::shared_ptr<Completion>;

PJRT_Event* NewEvent(CompletionPtr completion);

}  // namespace pjrt::boundary

struct PJRT_Event {
  pjrt::boundary::CompletionPtr completion;
};
