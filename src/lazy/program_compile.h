// From a graph to its program: checked, lowered, compiled or loaded, and kept.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lazy/device.h"
#include "lazy/graph.h"
#include "lazy/program_cache.h"

namespace lazy {

// What a graph's program is called, for people: "SyncTensorsGraph.12", of 12 nodes.
std::string ProgramName(const Graph& graph);

// Adds the program to the cache. Throws hlo::Error: kResourceExhausted if its results cannot fit
// into the device's memory, or what the plugin's compiler says. Counts in DynamicCompile what takes
// indices at run time. Under SyncMutex.
std::shared_ptr<const CachedProgram> CompileProgram(Device* device, const Graph& graph,
                                                    uint64_t hash, std::vector<uint64_t> signature,
                                                    Specialization specialization);

}  // namespace lazy
