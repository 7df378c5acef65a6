#include "passes/inline_where.h"

#include <unordered_map>

#include "hlo/error.h"

namespace passes {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Functions that call each other twice grow exponentially; no real program comes near.
constexpr size_t kMaxInstructions = size_t{4} << 20;

std::vector<Instruction*> Chosen(const Computation& computation,
                                 const std::function<bool(const Instruction&)>& chosen) {
  std::vector<Instruction*> found;
  for (const auto& instruction : computation.instructions()) {
    if (instruction->called_computations().size() == 1 && chosen(*instruction)) {
      found.push_back(instruction.get());
    }
  }
  return found;
}

// Before anything is copied. Callees come first.
void CheckGrowth(const hlo::Module& module, const std::function<bool(const Instruction&)>& chosen) {
  std::unordered_map<const Computation*, size_t> sizes;
  for (const auto& computation : module.computations()) {
    size_t size = computation->instructions().size();
    for (const Instruction* call : Chosen(*computation, chosen)) {
      size += sizes.at(call->called_computations()[0]);
      if (size <= kMaxInstructions) continue;
      throw hlo::Error(hlo::ErrorCode::kResourceExhausted,
                       "function " + computation->name() + " has more than " +
                           std::to_string(kMaxInstructions) +
                           " instructions when its calls are inlined");
    }
    sizes.emplace(computation.get(), size);
  }
}

bool InlineInto(Computation& computation, const std::function<bool(const Instruction&)>& chosen) {
  std::vector<Instruction*> calls = Chosen(computation, chosen);
  for (Instruction* call : calls) {
    const Computation& callee = *call->called_computations()[0];
    ReplaceResults(*call, hlo::InlineComputation(callee, computation, call->operands()));
    computation.Remove(call);
  }
  if (!calls.empty()) computation.SortTopologically();
  return !calls.empty();
}

}  // namespace

void ReplaceResults(Instruction& instruction, const std::vector<Instruction*>& values) {
  if (!instruction.shape().is_tuple()) return instruction.ReplaceAllUsesWith(values.at(0));
  std::vector<Instruction*> users = instruction.users();
  for (Instruction* user : users) {
    if (user->opcode() != Opcode::kGetTupleElement) continue;
    user->ReplaceAllUsesWith(values.at(static_cast<size_t>(user->tuple_index())));
    user->parent()->Remove(user);
  }
  if (instruction.users().empty()) return;
  Computation& computation = *instruction.parent();
  instruction.ReplaceAllUsesWith(computation.Add(Opcode::kTuple, instruction.shape(), values));
}

bool InlineWhere(hlo::Module& module, const std::function<bool(const Instruction&)>& chosen) {
  bool changed = false;
  module.SortComputations();
  CheckGrowth(module, chosen);
  for (const auto& computation : module.computations()) {
    changed |= InlineInto(*computation, chosen);
  }
  if (changed) module.RemoveUnreachableComputations();
  return changed;
}

}  // namespace passes
