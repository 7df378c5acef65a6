#include "lazy/run_queue.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/error.h"
#include "lazy/interrupt.h"
#include "lazy/live_data.h"
#include "lazy/span.h"
#include "lazy/sync_mutex.h"
#include "lazy/thread_number.h"
#include "lazy/warning.h"
#include "process/fork.h"

namespace lazy {
namespace {

// Executions that may be started and unfinished on one device: enough that recording the next step
// overlaps this one, few enough that their buffers do not pile up.
constexpr size_t kInFlightLimit = 2;

// What is to happen at the end of an execution. The event's own callback may come after who waits
// for the event has been woken, so the first of both does it, and the other waits for that.
class RunEnd {
 public:
  explicit RunEnd(std::function<void()> over) : over_(std::move(over)) {}
  void Come() { std::call_once(once_, over_); }

 private:
  std::once_flag once_;
  std::function<void()> over_;
};

class StartedRun {
 public:
  StartedRun(pjrt::Event done, int64_t number, std::function<void()> over)
      : done_(std::move(done)), number_(number) {
    if (!over) return;
    if (done_.IsReady()) {
      over();
      return;
    }
    end_ = std::make_shared<RunEnd>(std::move(over));
    done_.OnReady([end = end_](const hlo::Error*) { end->Come(); });
  }

  bool IsOver() const { return done_.IsReady(); }
  int64_t number() const { return number_; }
  int64_t thread() const { return thread_; }
  void AwaitOrInterrupt() const {
    if (IsOver()) return;
    Span span("xla::wait");
    lazy::AwaitOrInterrupt(done_);
  }
  // Waits.
  std::optional<hlo::Error> Failure() const {
    std::optional<hlo::Error> failure;
    try {
      done_.Await();
    } catch (const hlo::Error& error) {
      failure = error;
    } catch (const std::exception& error) {
      failure = hlo::Error(hlo::ErrorCode::kInternal, error.what());
    }
    if (end_) end_->Come();
    return failure;
  }

 private:
  pjrt::Event done_;
  int64_t number_;
  int64_t thread_ = ThreadNumber();  // which started it
  std::shared_ptr<RunEnd> end_;      // null: nothing is to happen
};

// The runs that have failed, of which nobody has been told. Thread-safe: reads hold no SyncMutex.
class Failures {
 public:
  int64_t NextRun() { return last_run_.fetch_add(1, std::memory_order_relaxed) + 1; }

  void Note(const StartedRun& run, hlo::Error error) {
    std::lock_guard lock(mutex_);
    const auto told = told_.find(run.thread());
    if (told != told_.end() && run.number() <= told->second) return;
    if (untold_.size() >= kMostThreads && !untold_.contains(run.thread())) DropOldest();
    untold_.try_emplace(run.thread(), run.number(), std::move(error));
    is_empty_.store(untold_.empty(), std::memory_order_relaxed);
  }

  // One of this thread's is told by other means. What else it has started, work on the failed
  // values among it, is no news.
  void Forget(int64_t thread) {
    std::lock_guard lock(mutex_);
    ForgetLocked(thread);
  }

  // Throws one of this thread's, or else, for whoever asks for all, another's.
  void Raise(bool of_all) {
    if (is_empty_.load(std::memory_order_relaxed)) return;
    if (const auto error = Take(of_all)) throw hlo::Error(*error);
  }

 private:
  // That wait to be told, or are remembered as told.
  static constexpr size_t kMostThreads = 64;

  std::optional<hlo::Error> Take(bool of_all) {
    std::lock_guard lock(mutex_);
    auto chosen = untold_.find(ThreadNumber());
    if (chosen == untold_.end() && of_all) chosen = untold_.begin();
    if (chosen == untold_.end()) return std::nullopt;
    std::optional<hlo::Error> error = std::move(chosen->second.error);
    ForgetLocked(chosen->first);
    return error;
  }

  void ForgetLocked(int64_t thread) {
    untold_.erase(thread);
    is_empty_.store(untold_.empty(), std::memory_order_relaxed);
    if (told_.size() >= kMostThreads) told_.erase(told_.begin());  // the oldest thread
    told_[thread] = last_run_.load(std::memory_order_relaxed);
  }

  // For threads that ended without asking.
  void DropOldest() {
    untold_.erase(std::ranges::min_element(untold_, {},
                                           [](const auto& untold) { return untold.second.run; }));
  }

  struct Untold {
    int64_t run;
    hlo::Error error;
  };

  std::atomic<int64_t> last_run_{0};
  std::atomic<bool> is_empty_{true};
  process::Mutex mutex_;
  std::map<int64_t, Untold> untold_;  // the first of each thread
  std::map<int64_t, int64_t> told_;   // through which run
};

// Of one device.
struct Queue {
  using Run = std::shared_ptr<const StartedRun>;

  std::deque<Run> runs;  // under SyncMutex
  Failures failures;

  // Of those that are over. Under SyncMutex.
  void Finish() {
    while (!runs.empty() && runs.front()->IsOver()) {
      const Run oldest = std::move(runs.front());
      runs.pop_front();
      if (auto failure = oldest->Failure()) failures.Note(*oldest, *std::move(failure));
    }
  }
  // All but the `spared` newest.
  std::vector<Run> Oldest(size_t spared) {
    const std::lock_guard lock(SyncMutex());
    Finish();
    if (runs.size() <= spared) return {};
    return {runs.begin(), runs.end() - static_cast<std::ptrdiff_t>(spared)};
  }
  // Waits for them.
  void Await(size_t spared) {
    const std::vector<Run> awaited = Oldest(spared);
    if (awaited.empty()) return;
    for (const Run& run : awaited) run->AwaitOrInterrupt();
    const std::lock_guard lock(SyncMutex());
    Finish();
  }
};

Queue& QueueOf(const Device* device) {
  static auto* mutex = new process::Mutex;
  static auto* queues = new std::unordered_map<const Device*, Queue>;
  std::lock_guard lock(*mutex);
  return (*queues)[device];
}

}  // namespace

void NoteRun(Device* device, pjrt::Event done, std::function<void()> over) {
  Queue& queue = QueueOf(device);
  queue.runs.push_back(std::make_shared<const StartedRun>(std::move(done), queue.failures.NextRun(),
                                                          std::move(over)));
  queue.Finish();
}

void LimitInFlight(Device* device) { QueueOf(device).Await(kInFlightLimit); }

void WaitFor(Device* device) { QueueOf(device).Await(0); }

void RaiseFailedRuns(const Device* device, bool of_all) {
  ExplainingMemory([&] { QueueOf(device).failures.Raise(of_all); });
}

void ForgetFailedRuns(const Device* device, int64_t thread) {
  QueueOf(device).failures.Forget(thread);
}

void FinishWork() {
  std::lock_guard lock(SyncMutex());
  if (!Runtime::IsStarted()) return;
  for (const auto& device : Runtime::Get().devices()) WaitFor(device.get());
}

void WaitDeviceOps() {
  if (!Runtime::IsStarted()) return;
  for (const auto& device : Runtime::Get().devices()) WaitFor(device.get());
  for (const auto& device : Runtime::Get().devices()) {
    RaiseFailedRuns(device.get(), /*of_all=*/true);
    device->value_checks.RaiseThrough(device->value_checks.last_run());
  }
}

namespace {

// At the end of the process there is nobody left to raise to.
template <typename F>
void WarnOf(const std::string& what, F&& raise) {
  try {
    raise();
  } catch (const hlo::Error& error) {
    Warn(what + ", and nothing has asked for an error since: " + error.what());
  }
}

}  // namespace

void WarnOfFailures() {
  if (!Runtime::IsStarted()) return;
  for (const auto& device : Runtime::Get().devices()) {
    WarnOf("a computation has failed", [&] { RaiseFailedRuns(device.get(), /*of_all=*/true); });
    WarnOf("a value was wrong", [&] { device->value_checks.RaiseOfAll(); });
  }
}

}  // namespace lazy
