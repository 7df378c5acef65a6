#include "cpu/element_cost.h"

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
    default:
      return false;
  }
}

double ElementCost(const Computation& body) {
  double cost = 0;
  for (const auto& instruction : body.instructions()) {
    if (!instruction->shape().is_array()) continue;
    const double width = static_cast<double>(hlo::ByteWidth(instruction->element_type()));
    if (instruction->opcode() == Opcode::kParameter) {
      cost += 0.02 * width;
    } else if (IsExpensive(*instruction)) {
      cost += 0.15 * width;
    } else {
      cost += 0.01 * width;
    }
  }
  return cost + 0.1;
}

}  // namespace cpu
