// Leaves, tuples, calls and control flow.
#include "hlo/evaluation.h"
#include "hlo/evaluator.h"

namespace hlo::evaluation {
namespace {

Leaves RunBranch(const Instruction& instruction, const Leaves& operands) {
  const auto& branches = instruction.called_computations();
  size_t branch;
  if (instruction.opcode() == Opcode::kIf) {
    branch = operands[0].data<bool>()[0] ? 0 : 1;
  } else {
    // An index out of range chooses the last branch.
    auto index = static_cast<uint64_t>(operands[0].AsInt());
    branch = index < branches.size() ? index : branches.size() - 1;
  }
  return EvaluateComputation(*branches[branch], Leaves(operands.begin() + 1, operands.end()));
}

Leaves RunWhile(const Instruction& instruction, Leaves state) {
  const auto& called = instruction.called_computations();
  while (EvaluateComputation(*called[0], state)[0].data<bool>()[0]) {
    state = EvaluateComputation(*called[1], state);
  }
  return state;
}

Leaves PickElement(const Instruction& instruction, const Leaves& operands) {
  const auto& elements = instruction.operand(0)->shape().tuple_shapes();
  int64_t first = 0;
  for (int64_t i = 0; i < instruction.tuple_index(); ++i) first += LeafCount(elements[i]);
  auto begin = operands.begin() + first;
  return Leaves(begin, begin + LeafCount(instruction.shape()));
}

// Custom calls that are annotations, of no effect on one device.
bool IsIdentityTarget(const std::string& target) {
  return target == "Sharding" || target == "SPMDFullToShardShape" ||
         target == "SPMDShardToFullShape" || target == "annotate_device_placement" ||
         target == "LayoutConstraint" || target == "MoveToDevice" || target == "MoveToHost";
}

}  // namespace

Leaves EvaluateControl(const Instruction& instruction, const Leaves& operands) {
  switch (instruction.opcode()) {
    case Opcode::kConstant:
      return {instruction.literal()};
    case Opcode::kTuple:
    case Opcode::kOptimizationBarrier:
      return operands;
    case Opcode::kGetTupleElement:
      return PickElement(instruction, operands);
    case Opcode::kAfterAll:
      return {Literal(Shape::Token())};
    case Opcode::kCall:
    case Opcode::kComposite:
      return EvaluateComputation(*instruction.called_computations()[0], operands);
    case Opcode::kIf:
    case Opcode::kCase:
      return RunBranch(instruction, operands);
    case Opcode::kWhile:
      return RunWhile(instruction, operands);
    case Opcode::kCustomCall: {
      const std::string& target = instruction.as<CustomCallAttributes>().target;
      if (IsIdentityTarget(target) && operands.size() == 1 &&
          operands[0].shape() == instruction.shape()) {
        return operands;
      }
      ThrowUnimplemented(instruction, "the custom call target " + target + " is unknown");
    }
    default:
      ThrowUnimplemented(instruction, "it has no value without its computation");
  }
}

}  // namespace hlo::evaluation
