// Collectives in a world of one device, whose id is 0.
#include <algorithm>

#include "hlo/evaluation.h"

namespace hlo::evaluation {
namespace {

// What a group of one exchanges: each operand is its result.
Leaves Alone(const Instruction& instruction, const Leaves& operands) {
  std::vector<Shape> shapes;
  AppendLeafShapes(instruction.shape(), shapes);
  Leaves results;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (shapes[i].dimensions() != operands[i].shape().dimensions()) {
      ThrowUnimplemented(instruction, "it is made for several devices, but there is one");
    }
    results.push_back(ConvertElements(operands[i], shapes[i].element_type()));
  }
  return results;
}

// Device 0 receives if a pair sends from 0 to 0, or a group holds it; everybody else has zeros.
bool Receives(const Instruction& instruction) {
  const auto& collective = instruction.as<CollectiveAttributes>();
  if (instruction.opcode() == Opcode::kCollectivePermute) {
    return std::ranges::any_of(collective.source_target_pairs,
                               [](const auto& pair) { return pair[0] == 0 && pair[1] == 0; });
  }
  return collective.replica_groups.empty() ||
         std::ranges::any_of(collective.replica_groups, [](const auto& group) {
           return std::ranges::find(group, 0) != group.end();
         });
}

}  // namespace

Leaves EvaluateCollective(const Instruction& instruction, const Leaves& operands) {
  switch (instruction.opcode()) {
    case Opcode::kPartitionId:
    case Opcode::kReplicaId:
      return {Literal::FromInt(ElementType::kU32, 0)};
    case Opcode::kCollectiveBroadcast:
    case Opcode::kCollectivePermute:
      if (!Receives(instruction)) return {Literal(instruction.shape())};
      return operands;
    default:
      return Alone(instruction, operands);
  }
}

}  // namespace hlo::evaluation
