#include "lazy/run_queue.h"

#include <deque>
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

using Queue = std::deque<pjrt::Event>;

Queue& QueueOf(Device* device) {
  static auto* queues = new std::unordered_map<Device*, Queue>;
  return (*queues)[device];
}

void Await(const pjrt::Event& event) {
  if (event.IsReady()) return event.Await();
  Span span("xla::wait");
  event.Await();
}

}  // namespace

void LimitInFlight(Device* device, pjrt::Event done, bool wait) {
  Queue& queue = QueueOf(device);
  queue.push_back(std::move(done));
  while (!queue.empty() && (wait || queue.size() > kInFlightLimit || queue.front().IsReady())) {
    pjrt::Event oldest = std::move(queue.front());
    queue.pop_front();
    Await(oldest);
  }
}

void WaitFor(Device* device) {
  Queue& queue = QueueOf(device);
  while (!queue.empty()) {
    pjrt::Event oldest = std::move(queue.front());
    queue.pop_front();
    Await(oldest);
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
