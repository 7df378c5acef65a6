#include "lazy/run_queue.h"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "lazy/live_data.h"
#include "lazy/span.h"
#include "lazy/sync_mutex.h"
#include "lazy/warning.h"

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
  StartedRun(pjrt::Event done, std::function<void()> over) : done_(std::move(done)) {
    if (!over) return;
    if (done_.IsReady()) {
      over();
      return;
    }
    end_ = std::make_shared<RunEnd>(std::move(over));
    done_.OnReady([end = end_](const hlo::Error*) { end->Come(); });
  }

  bool IsOver() const { return done_.IsReady(); }
  void Await() const {
    try {
      AwaitEvent();
    } catch (...) {
      if (end_) end_->Come();
      throw;
    }
    if (end_) end_->Come();
  }

 private:
  void AwaitEvent() const {
    if (IsOver()) return done_.Await();
    Span span("xla::wait");
    done_.Await();
  }

  pjrt::Event done_;
  std::shared_ptr<RunEnd> end_;  // null: nothing is to happen
};

using Queue = std::deque<StartedRun>;

Queue& QueueOf(Device* device) {
  static auto* queues = new std::unordered_map<Device*, Queue>;
  return (*queues)[device];
}

}  // namespace

void LimitInFlight(Device* device, pjrt::Event done, bool wait, std::function<void()> over) {
  Queue& queue = QueueOf(device);
  queue.emplace_back(std::move(done), std::move(over));
  while (!queue.empty() && (wait || queue.size() > kInFlightLimit || queue.front().IsOver())) {
    const StartedRun oldest = std::move(queue.front());
    queue.pop_front();
    oldest.Await();
  }
}

void WaitFor(Device* device) {
  Queue& queue = QueueOf(device);
  while (!queue.empty()) {
    const StartedRun oldest = std::move(queue.front());
    queue.pop_front();
    oldest.Await();
  }
}

void WaitForAll() {
  std::lock_guard lock(SyncMutex());
  if (!Runtime::IsStarted()) return;
  ExplainingMemory([&] {
    for (const auto& device : Runtime::Get().devices()) WaitFor(device.get());
  });
}

void WaitDeviceOps() {
  std::lock_guard lock(SyncMutex());
  WaitForAll();
  if (!Runtime::IsStarted()) return;
  for (const auto& device : Runtime::Get().devices()) device->value_checks.RaiseOfAll();
}

// Every error that is met ends one execution, which is left.
void FinishWork() {
  while (true) {
    try {
      return WaitForAll();
    } catch (const std::exception&) {
    }
  }
}

void WarnOfFailedChecks() {
  if (!Runtime::IsStarted()) return;
  for (const auto& device : Runtime::Get().devices()) {
    try {
      device->value_checks.RaiseOfAll();
    } catch (const hlo::Error& error) {
      Warn("a value was wrong, and nothing has asked for an error since: " +
           std::string(error.what()));
    }
  }
}

}  // namespace lazy
