#include "cpu/passes/engine_passes.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "cpu/outputs.h"
#include "hlo/builder.h"
#include "passes/for_each_computation.h"
#include "passes/inline_where.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;
using Value = Instruction*;

// Whether a pair of a collective_permute sends from the device to itself, or a group of a
// collective_broadcast holds it: otherwise it has zeros.
bool Receives(const Instruction& instruction) {
  const auto& collective = instruction.as<hlo::CollectiveAttributes>();
  if (instruction.opcode() == Opcode::kCollectivePermute) {
    return std::ranges::any_of(collective.source_target_pairs, [](const auto& pair) {
      return pair.size() == 2 && pair[0] == 0 && pair[1] == 0;
    });
  }
  return collective.replica_groups.empty() ||
         std::ranges::any_of(collective.replica_groups, [](const auto& group) {
           return std::ranges::find(group, 0) != group.end();
         });
}

// Whether one device has what its results are. Others stay, and say when they run that they need
// other processes.
bool IsOfOneDevice(const Instruction& instruction) {
  for (int64_t i = 0; i < std::ssize(instruction.operands()); ++i) {
    if (ShapeOf({&instruction, i}).dimensions() != instruction.operand(i)->dimensions()) {
      return false;
    }
  }
  return true;
}

// The operands, in the types of the results.
std::vector<Value> Converted(Builder& b, const Instruction& instruction) {
  std::vector<Value> values;
  for (int64_t i = 0; i < std::ssize(instruction.operands()); ++i) {
    values.push_back(b.Convert(instruction.operand(i), ShapeOf({&instruction, i}).element_type()));
  }
  return values;
}

// What each result of such an instruction is.
std::vector<Value> Resolved(Builder& b, const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kCollectivePermute:
    case Opcode::kCollectiveBroadcast:
      if (Receives(instruction)) return instruction.operands();
      return {b.Zeros(instruction.shape())};
    case Opcode::kReplicaId:
    case Opcode::kPartitionId:
      return {b.ConstantScalar(hlo::ElementType::kU32, int64_t{0})};
    default:
      return Converted(b, instruction);
  }
}

bool ResolveDevices(hlo::Computation& computation) {
  // None is a result of another that is removed with it.
  std::vector<Instruction*> found;
  for (const auto& instruction : computation.instructions()) {
    if (hlo::IsOfWorld(instruction->opcode()) && IsOfOneDevice(*instruction)) {
      found.push_back(instruction.get());
    }
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
