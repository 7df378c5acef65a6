#include "cpu/element_cost.h"

#include <algorithm>

#include "hlo/opcode.h"

namespace cpu {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool IsExpensive(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kExponential:
    case Opcode::kExponentialMinusOne:
    case Opcode::kLog:
    case Opcode::kLogPlusOne:
    case Opcode::kLogistic:
    case Opcode::kTanh:
    case Opcode::kPower:
    case Opcode::kSine:
    case Opcode::kCosine:
    case Opcode::kTan:
    case Opcode::kAtan2:
    case Opcode::kCbrt:
    case Opcode::kComposite:
      return true;
    case Opcode::kMap:
      return HasLoop(instruction);
    default:
      return false;
  }
}

bool HasLoop(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kMap) return false;
  return std::ranges::any_of(instruction.called_computations()[0]->instructions(),
                             [](const auto& i) { return i->opcode() == Opcode::kWhile; });
}

int OperationCost(const Instruction& instruction) {
  constexpr int kDivision = 6, kFunction = 20, kLongFunction = 40, kLoop = 200;
  if (HasLoop(instruction)) return kLoop;
  switch (instruction.opcode()) {
    case Opcode::kDivide:
    case Opcode::kSqrt:
    case Opcode::kRsqrt:
      return kDivision;
    case Opcode::kRemainder:
    case Opcode::kPower:
    case Opcode::kTan:
    case Opcode::kAtan2:
      return kLongFunction;
    default:
      if (IsExpensive(instruction)) return kFunction;
      return hlo::IsElementwise(instruction.opcode()) ? 1 : 0;
  }
}

double ElementCost(const Computation& body) {
  double cost = 0;
  for (const auto& instruction : body.instructions()) {
    if (!instruction->shape().is_array()) continue;
    const double width = static_cast<double>(hlo::ByteWidth(instruction->element_type()));
    if (instruction->opcode() == Opcode::kParameter) {
      cost += 0.02 * width;
    } else if (HasLoop(*instruction)) {
      cost += 2 * width;
    } else if (IsExpensive(*instruction)) {
      cost += 0.15 * width;
    } else {
      cost += 0.01 * width;
    }
  }
  return cost + 0.1;
}

}  // namespace cpu
