#include "lazy/graph_observer.h"

#include <mutex>
#include <utility>

#include "hlo/error.h"
#include "lazy/settings.h"
#include "lazy/sync_mutex.h"

namespace lazy {
namespace {

std::function<void(const GraphEvent&)>& Observer() {
  static auto* observer = new std::function<void(const GraphEvent&)>;
  return *observer;
}

const std::function<void(const GraphEvent&)>& Nobody() {
  static auto* nobody = new std::function<void(const GraphEvent&)>;
  return *nobody;
}

bool observing = false;

// Tells the observer, if there is one.
void Tell(const std::function<void(const GraphEvent&)>& observer, const GraphEvent& event) {
  if (observing) return;  // what it does itself is not reported to it
  observing = true;
  try {
    observer(event);
  } catch (...) {
    observing = false;
    throw;
  }
  observing = false;
}

}  // namespace

void CheckNotObserved() {
  if (!observing) return;
  throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                   "a value that is not computed yet is read while a graph is reported to an "
                   "observer; read it before or after");
}

void SetGraphObserver(std::function<void(const GraphEvent&)> observer) {
  std::lock_guard lock(SyncMutex());
  Observer() = std::move(observer);
}

Observation::Observation(const Graph& graph, uint64_t hash, bool is_told)
    : observer_(is_told ? Observer() : Nobody()) {
  if (!observer_) return;
  event_.hash = hash;
  event_.inputs = graph.data_leaves().size() + graph.scalar_packs().size();
  event_.outputs = graph.results().size();
  event_.graph = &graph;
  event_.name = GraphName();
  event_.reason = CurrentCutReason();
}

void Observation::Report(GraphEvent::Stage stage) {
  if (!observer_) return;
  event_.stage = stage;
  start_ = std::chrono::steady_clock::now();
  Tell(observer_, event_);
}

void Observation::ReportCompile(const std::vector<bool>& varies) {
  if (!observer_) return;
  event_.varies = varies;
  Report(GraphEvent::Stage::kCompile);
}

void Observation::ReportCompiled(const pjrt::LoadedExecutable& executable) {
  if (!observer_) return;
  event_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  try {
    event_.memory = executable.executable().memory_stats();
  } catch (const hlo::Error&) {
    // Not every plugin says.
  }
  Report(GraphEvent::Stage::kCompiled);
}

void ReportRefused() {
  std::lock_guard lock(SyncMutex());
  if (!Observer()) return;
  GraphEvent event;
  event.stage = GraphEvent::Stage::kRefused;
  event.name = GraphName();
  event.reason = CurrentCutReason();
  Tell(Observer(), event);
}

}  // namespace lazy
