// The runs of a device whose values are checked (value_check.h) and have not been judged yet. A
// check that fails stops nothing: its error is raised once, by whoever comes first and may raise
// it. A check is of the thread that recorded what is checked: it is told of it whoever has been. A
// thread that never asks, such as one that backward runs in, leaves that to whoever starts the run.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "hlo/error.h"
#include "lazy/node.h"
#include "lazy/value_check.h"
#include "pjrt/client/buffer.h"
#include "pjrt/client/event.h"
#include "process/fork.h"

namespace lazy {

// Thread-safe.
class CheckQueue {
 public:
  CheckQueue() = default;
  CheckQueue(const CheckQueue&) = delete;

  // Adds a run that gives these numbers, of checks of these threads (Node::thread). Runs are
  // counted, from 1 on; not two threads at a time.
  void Add(const pjrt::Buffer& numbers, std::shared_ptr<const ValueChecks> checks,
           std::vector<std::vector<uint32_t>> threads);
  int64_t last_run() const { return last_run_.load(std::memory_order_relaxed); }

  // Each throws the error of the first check that is known to have failed, of this thread's before
  // others', and forgets what else is known of the same thread's. Of what this thread recorded or
  // started, in runs that are over:
  void RaiseOfFinished() { RaiseThrough(0); }
  // Of all in these runs as well, waiting for them:
  void RaiseThrough(int64_t run_count);
  void RaiseOfAll() { RaiseThrough(std::numeric_limits<int64_t>::max()); }

 private:
  struct Failure {
    uint32_t thread = 0;
    uint32_t starter = 0;  // of the run
    int64_t run = 0;
    hlo::Error error;
    bool is_told = false;  // to another thread
  };
  // The numbers come to the host by themselves.
  class Run {
   public:
    Run(const pjrt::Buffer& numbers, std::shared_ptr<const ValueChecks> checks,
        std::vector<std::vector<uint32_t>> threads, int64_t count);
    ~Run();
    Run(const Run&) = delete;

    bool IsOver() const { return copied_.IsReady(); }
    int64_t count() const { return count_; }
    // Waits. The first of each thread, in the order of the checks. None where the run failed: its
    // error is told otherwise.
    std::vector<Failure> Failures() const;

   private:
    std::vector<uint64_t> numbers_;
    pjrt::Event copied_;
    std::shared_ptr<const ValueChecks> checks_;
    std::vector<std::vector<uint32_t>> threads_;  // of each check
    uint32_t starter_ = Node::ThisThread();
    int64_t count_;
  };

  // The first run, if it is one of these or over. It stays in the queue until it has been judged:
  // another thread that asks for it meanwhile waits as well.
  std::shared_ptr<const Run> First(int64_t through);
  void Judge(const std::shared_ptr<const Run>& run);
  // Under the lock: another, of a thread of which none is known.
  void Note(Failure failure);
  // That which this thread is to raise, if there is one: its own, or one of these runs, or of those
  // that it started, that nobody has been told of.
  std::optional<hlo::Error> TakeFailure(int64_t through);

  std::atomic<int64_t> last_run_{0};
  std::atomic<bool> is_empty_{true};  // no runs, no failure
  process::Mutex mutex_;
  std::deque<std::shared_ptr<const Run>> runs_;
  std::deque<Failure> failures_;  // in the order of the runs, the first of each thread
};

}  // namespace lazy
