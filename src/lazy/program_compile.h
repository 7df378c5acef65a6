// From a graph to its program: checked, lowered, compiled or loaded, and kept. Under SyncMutex,
// where nothing else is said.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hlo/module.h"
#include "lazy/device.h"
#include "lazy/graph.h"
#include "lazy/persistent_cache.h"
#include "lazy/program_cache.h"
#include "pjrt/client/client.h"

namespace lazy {

// What a graph's program is called, for people: "SyncTensorsGraph.12", of 12 nodes.
std::string ProgramName(const Graph& graph);

// A program before it is compiled: nothing of the graph's nodes.
struct LoweredProgram {
  pjrt::Client* client = nullptr;
  std::unique_ptr<hlo::Module> module;
  pjrt::CompileOptions options;
  PlaceInCache place;
  std::shared_ptr<CachedProgram> program;  // its executable and its bytes are missing

  // Makes what is missing, on any thread and under any lock. Throws hlo::Error: what the plugin's
  // compiler says.
  void Compile();
};

// Throws hlo::Error: kResourceExhausted if its results cannot fit into the device's memory. The
// engine is told of `varying_sizes`, which graphs of the same structure have otherwise.
LoweredProgram LowerProgram(Device* device, const Graph& graph, std::vector<uint64_t> signature,
                            Specialization specialization,
                            const std::set<int64_t>& varying_sizes = {});

// Adds it to the cache. Counts in DynamicCompile what takes indices at run time.
void KeepProgram(uint64_t hash, const std::shared_ptr<const CachedProgram>& program);

}  // namespace lazy
