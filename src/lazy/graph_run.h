// Running one graph: its program is looked up, compiled, or left to the interpreter for its first
// runs, and started.
#pragma once

#include <cstdint>
#include <vector>

#include "lazy/device.h"
#include "lazy/graph.h"
#include "lazy/node.h"

namespace lazy {

// What the caller of a sync does next.
enum class Next : uint8_t { kGoesOn, kReads, kWaits };

// How a graph runs: an operation of eager mode is told to no observer, and is timed as such.
struct Manner {
  Next next = Next::kGoesOn;
  bool is_eager = false;
};

// Starts the graph; gives its results as data leaves, one for each of graph.results(), still in the
// making. Throws hlo::Error: a compile's, or an earlier execution's. Under SyncMutex.
std::vector<Value> RunGraph(Device* device, const Graph& graph, Manner manner);

}  // namespace lazy
