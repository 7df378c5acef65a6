// The runs of a device whose values are checked (value_check.h) and have not been judged yet. A
// check that fails stops nothing: its error is raised once, by whoever comes first and may raise
// it. Threads that meet several errors are each told of the runs that they started.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "hlo/error.h"
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

  // Adds a run that gives these numbers. Runs are counted, from 1 on; not two threads at a time.
  void Add(const pjrt::Buffer& numbers, std::shared_ptr<const ValueChecks> checks);
  int64_t last_run() const { return last_run_.load(std::memory_order_relaxed); }

  // Each throws the error of the first check that is known to have failed, of this thread's runs
  // before others, and forgets what else is known of the same thread's. A run is of the thread that
  // cut its graph, which may hold what other threads have recorded. Of this thread's runs that are
  // over:
  void RaiseOfFinished() { RaiseThrough(0); }
  // Of these as well, waiting for them:
  void RaiseThrough(int64_t run_count);
  void RaiseOfAll() { RaiseThrough(std::numeric_limits<int64_t>::max()); }

 private:
  // The numbers come to the host by themselves.
  class Run {
   public:
    Run(const pjrt::Buffer& numbers, std::shared_ptr<const ValueChecks> checks, int64_t count);
    ~Run();
    Run(const Run&) = delete;

    bool IsOver() const { return copied_.IsReady(); }
    int64_t count() const { return count_; }
    std::thread::id thread() const { return thread_; }
    // Waits. Nothing where a check passed, or the run failed: its error is told otherwise.
    std::optional<hlo::Error> Failure() const;

   private:
    std::vector<uint64_t> numbers_;
    pjrt::Event copied_;
    std::shared_ptr<const ValueChecks> checks_;
    int64_t count_;
    std::thread::id thread_ = std::this_thread::get_id();  // which started it
  };
  struct Failure {
    std::thread::id thread;
    int64_t run = 0;
    hlo::Error error;
  };

  // The first run, if it is one of these or over.
  std::unique_ptr<Run> TakeFirst(int64_t through);
  void Judge(const Run& run);
  // That which this thread is to raise, if there is one: its own, or one of these runs.
  std::optional<hlo::Error> TakeFailure(int64_t through);

  std::atomic<int64_t> last_run_{0};
  std::atomic<bool> is_empty_{true};  // no runs, no failure
  process::Mutex mutex_;
  std::deque<std::unique_ptr<Run>> runs_;
  std::deque<Failure> failures_;  // in the order of the runs, the first of each thread
};

}  // namespace lazy
