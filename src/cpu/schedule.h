// When a computation's instructions run, and for how long their results are needed.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "cpu/output_map.h"
#include "cpu/outputs.h"
#include "hlo/module.h"

namespace cpu {

struct Schedule {
  static constexpr int64_t kEnd = INT64_MAX;

  // Positions are those in `order`. Parameters, constants and views are not in it.
  std::vector<const hlo::Instruction*> order;
  OutputMap<int64_t> defined, last_use;
  // What the computation's results are in memory.
  std::vector<Output> results;
  // Collectives that start at their position and are done later, by their numbers; the others are
  // done at once.
  std::unordered_map<const hlo::Instruction*, int64_t> asynchronous;
  // Which are awaited before the instruction at a position (or kEnd).
  std::map<int64_t, std::vector<const hlo::Instruction*>> done_before;
};

// The module's order, except that collectives start as soon as their operands are there, in their
// own order, which is the same on all ranks, and are done where their results are used first.
// All-gathers do not run far ahead of what uses them: what they gather needs more memory than their
// operands. Where there are no collectives, what frees more memory than it takes runs early
// (early_releases.h). `aliases`: as for AssignBuffers.
Schedule MakeSchedule(const hlo::Computation& computation, const std::vector<int64_t>& aliases);

}  // namespace cpu
