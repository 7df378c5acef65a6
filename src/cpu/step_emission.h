// The steps of a program: what runs each instruction, bound to its buffers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cpu/buffer_assignment.h"
#include "cpu/emit/kernel_emitter.h"
#include "cpu/schedule.h"
#include "cpu/step_sequence.h"
#include "hlo/module.h"

namespace cpu {

class KernelCode;

// Steps refer to its slots.
struct CompiledKernel {
  std::string name;
  std::shared_ptr<const KernelCode> code;
  KernelInfo info;
};
// The kernel compiled for an instruction (see NeedsKernel).
using KernelTable = std::function<const CompiledKernel&(const hlo::Instruction&)>;

// Makes the program of a computation that control flow calls; aliases as for AssignBuffers.
using SequenceMaker = std::function<std::unique_ptr<StepSequence>(
    const hlo::Computation& computation, const std::vector<int64_t>& aliases)>;

// What runs an instruction, before its buffers are known.
struct BoundStep {
  NativeStep::Function data_movement;                // null: none
  std::unique_ptr<LibraryCall> call;                 // null: none
  std::vector<std::unique_ptr<StepSequence>> parts;  // of control flow
  std::vector<int64_t> scratch_bytes;                // which it needs while it runs
};

// For each position of the schedule. Throws hlo::Error(kUnimplemented) naming the operation.
std::vector<BoundStep> BindSteps(const Schedule& schedule, const SequenceMaker& make_sequence);

std::vector<std::vector<int64_t>> ScratchBytes(const std::vector<BoundStep>& bound);

// The program, named after the computation.
std::unique_ptr<StepSequence> EmitSteps(const hlo::Computation& computation,
                                        const Schedule& schedule, BufferAssignment buffers,
                                        std::vector<BoundStep> bound, const KernelTable& kernels);

}  // namespace cpu
