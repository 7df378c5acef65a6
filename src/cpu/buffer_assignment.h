// Where each array of a computation lives.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/schedule.h"
#include "cpu/step_sequence.h"
#include "hlo/module.h"

namespace cpu {

struct BufferAssignment {
  struct Copy {
    int32_t from, to;
    int64_t bytes;
  };

  std::vector<BufferLocation> locations;  // of the buffers, by their numbers
  OutputMap<int32_t> buffer_of;
  // Of the scratch memory that was asked for, by position in the schedule: offsets in the arena.
  std::vector<std::vector<int64_t>> scratch;
  int64_t arena_bytes = 0;
  // What is copied before the first and after the last step.
  std::vector<Copy> first_copies, last_copies;

  int32_t Add(BufferLocation location);
  // The buffer of the array that an operand or result is. Throws hlo::Error(kInternal).
  int32_t Of(const hlo::Instruction* instruction, int64_t index = 0) const;
};

// One arena holds what is neither a parameter, a constant nor a result: an array's piece of it is
// another's when nobody reads the first any more. Results are computed where the caller wants them,
// and in place of operands, where that is right.
//
// `aliases[i]`: the parameter whose buffer may be passed as result i's too, or -1; all the others'
// if it is shorter. `scratch_bytes`: what each position of the schedule needs while it runs.
// Constants' data is not copied: the computation must outlive the assignment. Throws
// hlo::Error(kUnimplemented) for parameters that are tuples.
BufferAssignment AssignBuffers(const hlo::Computation& computation, const Schedule& schedule,
                               const std::vector<int64_t>& aliases,
                               const std::vector<std::vector<int64_t>>& scratch_bytes);

}  // namespace cpu
