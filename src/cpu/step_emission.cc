#include "cpu/step_emission.h"

#include <utility>

#include "cpu/collective/bind_collective.h"
#include "cpu/collective/collective_step.h"
#include "cpu/control_flow.h"
#include "cpu/data_movement.h"
#include "cpu/kernel_cache.h"  // IWYU pragma: keep (KernelCode, through pointers)
#include "cpu/kernel_kind.h"
#include "cpu/sort.h"
#include "cpu/step_description.h"
#include "hlo/error.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Empty arrays and tokens need no computation.
bool HasWork(const Instruction* instruction) {
  for (int64_t k = 0; k < OutputCount(instruction); ++k) {
    const hlo::Shape& shape = ShapeOf({instruction, k});
    if (shape.is_array() && shape.num_elements() > 0) return true;
  }
  return instruction->HasSideEffect() && instruction->opcode() != Opcode::kAfterAll;
}

StepDescription DescribeStep(const Instruction* instruction) { return Describe(*instruction); }

StepDescription DescribeEnd(const Instruction* collective) {
  StepDescription description = Describe(*collective);
  description.name += ".done";
  // Those of its start.
  description.bytes_read = description.bytes_written = 0;
  return description;
}

StepDescription DescribeCopy(const Instruction*) {
  StepDescription copy;
  copy.name = copy.category = "copy";
  copy.text = "copy of a result";
  return copy;
}

// A while's state lives in its results: the body's i-th result takes over its i-th parameter.
std::vector<int64_t> InPlace(size_t count) {
  std::vector<int64_t> aliases(count);
  for (size_t i = 0; i < count; ++i) aliases[i] = static_cast<int64_t>(i);
  return aliases;
}

BoundStep BindControlFlow(const Instruction& instruction, const SequenceMaker& make_sequence) {
  BoundStep bound;
  const bool is_loop = instruction.opcode() == Opcode::kWhile;
  const auto& called = instruction.called_computations();
  for (size_t i = 0; i < called.size(); ++i) {
    const bool is_body = is_loop && i == 1;
    bound.parts.push_back(make_sequence(
        *called[i], is_body ? InPlace(instruction.operand_count()) : std::vector<int64_t>()));
    bound.scratch_bytes.push_back(bound.parts.back()->arena_bytes);
  }
  if (is_loop) bound.scratch_bytes.push_back(1);  // the condition's result
  return bound;
}

BoundStep Bind(const Instruction& instruction, const SequenceMaker& make_sequence) {
  BoundStep bound;
  if (!HasWork(&instruction)) return bound;
  if (CallsSteps(instruction.opcode())) return BindControlFlow(instruction, make_sequence);
  if (hlo::IsCollective(instruction.opcode()) || NeedsKernel(instruction)) return bound;
  bound.data_movement = BindDataMovement(instruction);
  if (bound.data_movement) return bound;
  bound.call = BindLibraryCall(instruction);
  if (!bound.call) {
    const bool is_foreign = instruction.opcode() == Opcode::kCustomCall;
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "the CPU engine does not implement " +
                         std::string(hlo::Name(instruction.opcode())) +
                         (is_foreign ? ", and nobody has registered a handler for it: " : ": ") +
                         instruction.ToString());
  }
  bound.scratch_bytes.push_back(bound.call->scratch_bytes());
  return bound;
}

class Emitter {
 public:
  Emitter(const Schedule& schedule, BufferAssignment& buffers, const KernelTable& kernels,
          StepSequence& program)
      : schedule_(schedule), buffers_(buffers), kernels_(kernels), program_(program) {}

  void Run(std::vector<BoundStep> bound) {
    Copy(buffers_.first_copies);
    for (size_t p = 0; p < schedule_.order.size(); ++p) {
      const Instruction* instruction = schedule_.order[p];
      EmitDone(static_cast<int64_t>(p));
      if (!HasWork(instruction)) continue;
      Emit(*instruction, std::move(bound[p]), buffers_.scratch[p]);
      DescribeSteps(&DescribeStep, instruction);
    }
    EmitDone(Schedule::kEnd);
    Copy(buffers_.last_copies);
  }

 private:
  template <typename S, typename... Args>
  void Add(Args&&... args) {
    program_.steps.push_back(std::make_unique<S>(std::forward<Args>(args)...));
  }

  // The steps that were added since the last call.
  void DescribeSteps(Step::Describer describe, const Instruction* instruction) {
    for (; described_ < program_.steps.size(); ++described_) {
      program_.steps[described_]->set_describer(describe, instruction);
    }
  }

  void Copy(const std::vector<BufferAssignment::Copy>& copies) {
    for (const auto& copy : copies) Add<CopyStep>(copy.from, copy.to, copy.bytes);
    DescribeSteps(&DescribeCopy, nullptr);
  }

  // The ends of the collectives that are needed at `position`.
  void EmitDone(int64_t position) {
    auto done = schedule_.done_before.find(position);
    if (done == schedule_.done_before.end()) return;
    for (const Instruction* collective : done->second) {
      Add<CollectiveDoneStep>(schedule_.asynchronous.at(collective));
      DescribeSteps(&DescribeEnd, collective);
    }
  }

  std::vector<int32_t> Operands(const Instruction& instruction) const {
    std::vector<int32_t> numbers;
    for (const Instruction* operand : instruction.operands()) {
      if (!operand->shape().is_token()) numbers.push_back(buffers_.Of(operand));
    }
    return numbers;
  }
  std::vector<int32_t> Results(const Instruction& instruction) const {
    std::vector<int32_t> numbers;
    for (int64_t k = 0; k < OutputCount(&instruction); ++k) {
      if (!ShapeOf({&instruction, k}).is_token()) numbers.push_back(Result(instruction, k));
    }
    return numbers;
  }
  int32_t Result(const Instruction& instruction, int64_t index) const {
    return buffers_.buffer_of.at({&instruction, index});
  }

  void Emit(const Instruction& instruction, BoundStep bound, const std::vector<int64_t>& scratch) {
    if (instruction.opcode() == Opcode::kWhile) {
      EmitWhile(instruction, std::move(bound), scratch);
    } else if (CallsSteps(instruction.opcode())) {
      EmitBranch(instruction, std::move(bound), scratch);
    } else if (hlo::IsCollective(instruction.opcode())) {
      auto found = schedule_.asynchronous.find(&instruction);
      const int64_t number = found == schedule_.asynchronous.end() ? -1 : found->second;
      Add<CollectiveStep>(CollectiveOf(instruction), Operands(instruction), Results(instruction),
                          number);
    } else if (bound.data_movement) {
      Add<NativeStep>(std::string(hlo::Name(instruction.opcode())), std::move(bound.data_movement),
                      Operands(instruction), Results(instruction), 0);
    } else if (bound.call) {
      Add<LibraryStep>(std::move(bound.call), Operands(instruction), Results(instruction),
                       scratch[0]);
    } else {
      EmitKernelCall(instruction, *KindOf(instruction), kernels_(instruction));
    }
  }

  void EmitKernelCall(const Instruction& composite, const KernelKind& kind,
                      const CompiledKernel& kernel) {
    if (kind.step == KernelKind::Step::kComparator) return EmitSort(composite, kernel);
    if (kind.step == KernelKind::Step::kUpdate) CopyUpdated(composite);
    std::vector<int32_t> buffers = Operands(composite);
    for (int32_t result : Results(composite)) buffers.push_back(result);
    if (const auto& slots = kernel.info.slots; !slots.empty()) {
      buffers.push_back(buffers_.Add({BufferLocation::kConstant, 0, 0, slots.data()}));
    }
    Add<KernelStep>(kernel.name, kernel.code->function(), std::move(buffers), kernel.info.units,
                    kernel.info.unit_cost);
  }

  // A scatter updates its operands' values in its results' buffers. The composite's operands are
  // the scatter's, repeated ones once.
  void CopyUpdated(const Instruction& composite) {
    const Instruction* scatter = WrappedBy(composite);
    for (int64_t k = 0; k < OutputCount(&composite); ++k) {
      const Instruction* updated = composite.operand(scatter->operand(k)->parameter_number());
      Add<CopyStep>(buffers_.Of(updated), Result(composite, k),
                    scatter->operand(k)->shape().byte_size());
    }
  }

  void EmitSort(const Instruction& composite, const CompiledKernel& kernel) {
    const Instruction* sort = WrappedBy(composite);
    std::vector<int32_t> operands;
    for (const Instruction* operand : sort->operands()) {
      operands.push_back(buffers_.Of(composite.operand(operand->parameter_number())));
    }
    Add<NativeStep>("sort", BindSort(*sort, ReadResults(composite), kernel.code->function()),
                    std::move(operands), Results(composite), 0);
  }

  static std::vector<bool> ReadResults(const Instruction& composite) {
    std::vector<bool> is_read(OutputCount(&composite), !composite.shape().is_tuple());
    for (const Instruction* user : composite.users()) {
      if (user->opcode() != Opcode::kGetTupleElement)
        return std::vector<bool>(is_read.size(), true);
      is_read[user->tuple_index()] = true;
    }
    return is_read;
  }

  void EmitWhile(const Instruction& instruction, BoundStep bound,
                 const std::vector<int64_t>& scratch) {
    std::vector<int64_t> bytes;
    std::vector<int32_t> operands, results;
    for (size_t i = 0; i < instruction.operand_count(); ++i) {
      const Instruction* operand = instruction.operand(i);
      bytes.push_back(operand->shape().byte_size());
      operands.push_back(operand->shape().is_token() ? ArenaBuffer(0) : buffers_.Of(operand));
      results.push_back(operand->shape().is_token()
                            ? operands.back()
                            : buffers_.Of(&instruction, static_cast<int64_t>(i)));
    }
    Add<WhileStep>(WhileStep::Part{std::move(bound.parts[0]), scratch[0]},
                   WhileStep::Part{std::move(bound.parts[1]), scratch[1]}, std::move(operands),
                   std::move(results), std::move(bytes), ArenaBuffer(scratch[2]));
  }

  int32_t ArenaBuffer(int64_t offset) {
    return buffers_.Add({BufferLocation::kArena, 0, offset, nullptr});
  }

  void EmitBranch(const Instruction& instruction, BoundStep bound,
                  const std::vector<int64_t>& scratch) {
    std::vector<WhileStep::Part> branches;
    for (size_t i = 0; i < bound.parts.size(); ++i) {
      branches.push_back({std::move(bound.parts[i]), scratch[i]});
    }
    std::vector<int32_t> operands;
    for (size_t i = 1; i < instruction.operand_count(); ++i) {
      operands.push_back(buffers_.Of(instruction.operand(i)));
    }
    Add<BranchStep>(std::move(branches), instruction.opcode() == Opcode::kIf,
                    buffers_.Of(instruction.operand(0)), std::move(operands), Results(instruction));
  }

  const Schedule& schedule_;
  BufferAssignment& buffers_;
  const KernelTable& kernels_;
  StepSequence& program_;
  size_t described_ = 0;  // steps
};

}  // namespace

std::vector<BoundStep> BindSteps(const Schedule& schedule, const SequenceMaker& make_sequence) {
  std::vector<BoundStep> bound;
  for (const Instruction* instruction : schedule.order) {
    bound.push_back(Bind(*instruction, make_sequence));
  }
  return bound;
}

std::vector<std::vector<int64_t>> ScratchBytes(const std::vector<BoundStep>& bound) {
  std::vector<std::vector<int64_t>> bytes;
  for (const BoundStep& step : bound) bytes.push_back(step.scratch_bytes);
  return bytes;
}

std::unique_ptr<StepSequence> EmitSteps(const Computation& computation, const Schedule& schedule,
                                        BufferAssignment buffers, std::vector<BoundStep> bound,
                                        const KernelTable& kernels) {
  auto program = std::make_unique<StepSequence>();
  program->name = computation.name();
  program->num_asynchronous = static_cast<int64_t>(schedule.asynchronous.size());
  program->arena_bytes = buffers.arena_bytes;
  Emitter(schedule, buffers, kernels, *program).Run(std::move(bound));
  program->buffers = std::move(buffers.locations);
  return program;
}

}  // namespace cpu
