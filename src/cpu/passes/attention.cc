#include "cpu/passes/engine_passes.h"

#include <algorithm>
#include <vector>

#include "cpu/control_flow.h"
#include "cpu/library/attention_call.h"
#include "cpu/passes/composite.h"
#include "hlo/attention_composite.h"

namespace cpu {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using Values = std::vector<Instruction*>;

const hlo::Dimensions& AttentionOrder(const Instruction& transpose) {
  return transpose.as<hlo::DimensionsAttributes>().dimensions;
}

bool IsComputationsResult(const Instruction& value) {
  const auto& results = value.parent()->results();
  return std::ranges::find(results, &value) != results.end();
}

// The one instruction that picks result `index`; made if there is none.
Instruction* Pick(Instruction* attention, int64_t index) {
  Instruction* pick = nullptr;
  const Values users = attention->users();
  for (Instruction* user : users) {
    if (user->tuple_index() != index) continue;
    if (pick == nullptr) {
      pick = user;
    } else {
      user->ReplaceAllUsesWith(pick);
    }
  }
  if (pick != nullptr) return pick;
  return attention->parent()->Add(Opcode::kGetTupleElement,
                                  attention->shape().tuple_shapes()[index], {attention},
                                  hlo::TupleIndexAttributes{index});
}

// What the library writes for result `index`: it, or what it is transposed to and nobody else
// reads it.
void AddOutput(Instruction* attention, int64_t index, Values& members, Values& outputs) {
  Instruction* result = Pick(attention, index);
  members.push_back(result);
  if (result->users().size() == 1 && !IsComputationsResult(*result)) {
    Instruction* user = result->users()[0];
    if (user->opcode() == Opcode::kTranspose &&
        WritesTransposed(*attention, index, AttentionOrder(*user))) {
      members.push_back(result = user);
    }
  }
  outputs.push_back(result);
}

void MakeCall(Instruction* attention) {
  Values members, outputs;
  for (size_t i = 0; i < attention->operand_count(); ++i) {
    Instruction* operand = attention->operand(i);
    if (operand->opcode() == Opcode::kTranspose &&
        ReadsTransposed(*attention, i, AttentionOrder(*operand))) {
      members.push_back(operand);
    }
  }
  members.push_back(attention);
  const auto count = static_cast<int64_t>(attention->shape().tuple_shapes().size());
  for (int64_t i = 0; i < count; ++i) AddOutput(attention, i, members, outputs);
  for (const Replacement& replacement : AddComposite(members, outputs, kAttentionCall)) {
    replacement.by->set_metadata(attention->shared_metadata());
    replacement.value->ReplaceAllUsesWith(replacement.by);
  }
}

bool MakeCalls(Computation& computation) {
  Values attentions;
  for (const auto& instruction : computation.instructions()) {
    if (hlo::IsAttention(*instruction)) attentions.push_back(instruction.get());
  }
  for (Instruction* attention : attentions) MakeCall(attention);
  if (attentions.empty()) return false;
  computation.SortTopologically();
  computation.RemoveDeadInstructions();
  return true;
}

}  // namespace

bool MakeAttentionCalls(hlo::Module& module) { return RewriteSteps(module, MakeCalls); }

}  // namespace cpu
