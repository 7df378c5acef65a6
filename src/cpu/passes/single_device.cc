#include "cpu/passes/single_device.h"

#include "hlo/builder.h"
#include "passes/for_each_computation.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Value;

bool ReceivesFromItself(const Instruction& permute) {
  for (const auto& pair : permute.as<hlo::CollectiveAttributes>().source_target_pairs) {
    if (pair.size() == 2 && pair[0] == 0 && pair[1] == 0) return true;
  }
  return false;
}

// What each result is, or nothing if the instruction is none of these.
std::vector<Value> Resolved(Builder& b, const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kAllReduce:
    case Opcode::kAllGather:
    case Opcode::kReduceScatter:
    case Opcode::kAllToAll:
    case Opcode::kCollectiveBroadcast:
      return instruction.operands();
    case Opcode::kCollectivePermute:
      if (ReceivesFromItself(instruction)) return instruction.operands();
      return {b.Zeros(instruction.shape())};
    case Opcode::kReplicaId:
    case Opcode::kPartitionId:
      return {b.ConstantScalar(hlo::ElementType::kU32, int64_t{0})};
    default:
      return {};
  }
}

bool ResolveDevices(hlo::Computation& computation) {
  std::vector<Instruction*> instructions;
  for (const auto& instruction : computation.instructions())
    instructions.push_back(instruction.get());
  bool changed = false;
  Builder b(&computation);
  for (Instruction* instruction : instructions) {
    std::vector<Value> values = Resolved(b, *instruction);
    if (values.empty()) continue;
    changed = true;
    if (instruction->shape().is_tuple()) {
      std::vector<Instruction*> users = instruction->users();
      for (Instruction* user : users) {
        user->ReplaceAllUsesWith(values[user->tuple_index()]);
        computation.Remove(user);
      }
    } else {
      instruction->ReplaceAllUsesWith(values[0]);
    }
    computation.Remove(instruction);
  }
  if (changed) computation.SortTopologically();
  return changed;
}

}  // namespace

bool ResolveSingleDevice(hlo::Module& module) {
  return passes::ForEachComputation(module, ResolveDevices);
}

}  // namespace cpu
