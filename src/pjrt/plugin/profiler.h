// What the plugin's devices did, for the Profiler extension.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "pjrt/plugin/executable.h"

namespace pjrt::plugin {

// One run of a program on one device; times on std::chrono::steady_clock.
struct ProgramRun {
  std::shared_ptr<const CompiledProgram> program;  // keeps the steps' descriptions alive
  int device_id = 0;
  int launch_id = 0;  // as the caller numbers it; 0: not at all
  int64_t start_ns = 0, end_ns = 0;
  std::vector<cpu::StepTime> steps;
};

// True while a profiler is between Start and Stop: one relaxed load.
extern std::atomic<bool> runs_are_recorded;
inline bool RunsAreRecorded() { return runs_are_recorded.load(std::memory_order_relaxed); }

// To all profilers that have started and not stopped.
void RecordRun(ProgramRun run);

}  // namespace pjrt::plugin
