#include "cpu/passes/engine_passes.h"

#include "hlo/builder.h"
#include "passes/for_each_computation.h"
#include "passes/inline_where.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;
using Value = Instruction*;

bool ReceivesFromItself(const Instruction& permute) {
  for (const auto& pair : permute.as<hlo::CollectiveAttributes>().source_target_pairs) {
    if (pair.size() == 2 && pair[0] == 0 && pair[1] == 0) return true;
  }
  return false;
}

// What each result of such an instruction is.
std::vector<Value> Resolved(Builder& b, const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kCollectivePermute:
      if (ReceivesFromItself(instruction)) return instruction.operands();
      return {b.Zeros(instruction.shape())};
    case Opcode::kReplicaId:
    case Opcode::kPartitionId:
      return {b.ConstantScalar(hlo::ElementType::kU32, int64_t{0})};
    default:
      return instruction.operands();
  }
}

bool ResolveDevices(hlo::Computation& computation) {
  // None is a result of another that is removed with it.
  std::vector<Instruction*> found;
  for (const auto& instruction : computation.instructions()) {
    if (hlo::IsOfWorld(instruction->opcode())) found.push_back(instruction.get());
  }
  Builder b(&computation);
  for (Instruction* instruction : found) {
    passes::ReplaceResults(*instruction, Resolved(b, *instruction));
    computation.Remove(instruction);
  }
  if (!found.empty()) computation.SortTopologically();
  return !found.empty();
}

}  // namespace

bool ResolveSingleDevice(hlo::Module& module) {
  return passes::ForEachComputation(module, ResolveDevices);
}

}  // namespace cpu
