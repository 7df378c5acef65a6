#include "cpu/prepare.h"

#include <vector>

#include "cpu/fusion.h"
#include "hlo/builder.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool IsInlined(const Instruction& instruction) {
  return instruction.opcode() == Opcode::kCall ||
         (instruction.opcode() == Opcode::kComposite && !IsFusible(instruction));
}

void Inline(Computation& computation) {
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<Instruction*> calls;
    for (const auto& instruction : computation.instructions()) {
      if (IsInlined(*instruction)) calls.push_back(instruction.get());
    }
    for (Instruction* call : calls) {
      changed = true;
      std::vector<Instruction*> results =
          hlo::InlineComputation(*call->called_computations()[0], computation, call->operands());
      if (!call->shape().is_tuple()) {
        call->ReplaceAllUsesWith(results[0]);
        continue;
      }
      std::vector<Instruction*> users = call->users();
      for (Instruction* user : users) user->ReplaceAllUsesWith(results[user->tuple_index()]);
    }
    if (changed) {
      computation.SortTopologically();
      computation.RemoveDeadInstructions();
    }
  }
}

// Reducing nothing gives the initial values.
void ExpandEmptyReductions(Computation& computation) {
  hlo::Builder builder(&computation);
  std::vector<Instruction*> reduces;
  for (const auto& instruction : computation.instructions()) {
    if (instruction->opcode() == Opcode::kReduce && instruction->operand(0)->shape().num_elements() == 0) {
      reduces.push_back(instruction.get());
    }
  }
  for (Instruction* reduce : reduces) {
    const size_t count = reduce->operand_count() / 2;
    for (size_t i = 0; i < count; ++i) {
      const hlo::Shape& shape =
          reduce->shape().is_tuple() ? reduce->shape().tuple_shapes()[i] : reduce->shape();
      Instruction* value = builder.BroadcastInDim(reduce->operand(count + i), shape.dimensions(), {});
      if (count == 1) {
        reduce->ReplaceAllUsesWith(value);
        continue;
      }
      std::vector<Instruction*> users = reduce->users();
      for (Instruction* user : users) {
        if (user->tuple_index() == static_cast<int64_t>(i)) user->ReplaceAllUsesWith(value);
      }
    }
  }
  if (!reduces.empty()) computation.SortTopologically();
}

}  // namespace

void Prepare(hlo::Module& module) {
  for (const auto& computation : module.computations()) Inline(*computation);
  module.RemoveUnreachableComputations();
  for (const auto& computation : module.computations()) {
    ExpandEmptyReductions(*computation);
    computation->RemoveDeadInstructions();
  }
}

}  // namespace cpu
