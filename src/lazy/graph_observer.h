// What is told, for the debug reports, of each cut, compile and execution.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "lazy/cut_reason.h"
#include "lazy/graph.h"
#include "pjrt/client/executable.h"

namespace lazy {

// What one cut, compile or execution is, for the debug reports.
struct GraphEvent {
  enum class Stage : uint8_t {
    kCut,       // before all
    kCompile,   // before a compile: no program was found
    kCompiled,  // after it; `memory` and `seconds` are known
    kExecute,   // before an execution
    kRefused,   // a value is read where that is not allowed; there is no graph
  };
  Stage stage = Stage::kCut;
  uint64_t hash = 0;
  size_t inputs = 0, outputs = 0;
  const Graph* graph = nullptr;
  std::string name;          // what the user calls the graph, or empty
  std::vector<bool> varies;  // from kCompile on: the indices that the program takes at run time
  CutReason reason;
  pjrt::CompiledMemoryStats memory;
  double seconds = 0;  // that the compilation took
};
// Called under the lock; values that are recorded work cannot be read in it (CheckNotObserved). An
// exception that it throws ends the sync. Empty: nobody.
void SetGraphObserver(std::function<void(const GraphEvent&)> observer);

// What the observer, if there is one, is told about one graph.
class Observation {
 public:
  // Unless `is_told`, nobody is told.
  Observation(const Graph& graph, uint64_t hash, bool is_told = true);
  void Report(GraphEvent::Stage stage);
  void ReportCompile(const std::vector<bool>& varies);
  void ReportCompiled(const pjrt::LoadedExecutable& executable);

 private:
  const std::function<void(const GraphEvent&)>& observer_;
  GraphEvent event_{};
  std::chrono::steady_clock::time_point start_;
};
// A value is read where that is not allowed.
void ReportRefused();
// Throws hlo::Error(kFailedPrecondition) inside an observer: a graph that were cut there would
// write over the notes that the graph observed has made in the same nodes. Under SyncMutex.
void CheckNotObserved();

}  // namespace lazy
