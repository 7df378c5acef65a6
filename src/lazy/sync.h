// Running recorded work: a graph is cut from what is pending, its program is looked up or compiled,
// and started; the results become the tensors' data at once, though still in the making.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lazy/cut_reason.h"
#include "lazy/graph.h"
#include "lazy/storage.h"
#include "pjrt/client/executable.h"

namespace lazy {

// Computes everything that is pending on the device. With `wait`, returns when it is computed.
// Throws hlo::Error: a compile's, an earlier execution's (once), or with `wait` this one's.
void Sync(Device* device, bool wait = false);
// How many times what was pending on the device has been started.
int64_t CutCount(const Device* device);
// Notes that a recorded operation is one that other processes take part in: it runs at the next
// sync, after those noted before, whether or not its result is wanted. The line that this thread
// carries out (SourceScope) goes with it.
void NoteCollective(Device* device, const Reference<Node>& node);
// The data of a storage's value; syncs when it is recorded work.
Reference<Data> Materialized(const Reference<Storage>& storage);
// The data of a value that no storage holds (a view's part).
Reference<Data> Evaluate(Device* device, const Value& value);
// Waits for everything started on the devices; throws the first error.
void WaitDeviceOps();

// While execution is not allowed, only Sync runs anything: reading a value that is recorded work
// throws hlo::Error(kFailedPrecondition).
void SetAllowExecution(bool allow);
bool AllowExecution();
// What the programs compiled from now on are called, for people.
void SetGraphName(const std::string& name);
std::string GraphName();
// "default", "high" or "highest": the precision that contractions ask of the engine.
void SetMatMulPrecision(const std::string& precision);
std::string MatMulPrecision();

// The lock under which graphs are cut.
std::recursive_mutex& SyncMutex();

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
  std::string name;  // what the user calls the graph, or empty
  CutReason reason;
  pjrt::CompiledMemoryStats memory;
  double seconds = 0;  // that the compilation took
};
// Called under the lock. An exception that it throws ends the sync. Empty: nobody.
void SetGraphObserver(std::function<void(const GraphEvent&)> observer);

// The compiled programs.
struct CacheStatistics {
  int64_t entries = 0;
  int64_t bytes = 0;  // of the host's memory, as far as that is known
};
CacheStatistics ComputationCacheStatistics();
void ClearComputationCache();
// Keeps compiled programs in a folder, for later processes. Programs of another engine, or damaged
// files, are compiled anew.
void InitializePersistentCache(const std::string& path, bool readonly);
bool HasPersistentCache();
// The plugin's own options for the compiles that follow (part of the cache's key).
void SetCustomCompileOptions(
    std::map<std::string, std::variant<std::string, bool, int64_t, double>> options);

}  // namespace lazy
