#include "passes/combiner.h"

namespace passes {

using hlo::Opcode;

namespace {

bool TakesAnyOrder(Opcode opcode) {
  switch (opcode) {
    case Opcode::kAdd:
    case Opcode::kMultiply:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::optional<Opcode> CombinerOf(const hlo::Computation& body) {
  if (body.results().size() != 1 || body.parameters().size() != 2) return std::nullopt;
  const hlo::Instruction* result = body.result();
  if (result->operand_count() != 2 || !TakesAnyOrder(result->opcode())) return std::nullopt;
  const hlo::Instruction *a = body.parameter(0), *b = body.parameter(1);
  const bool is_of_parameters = (result->operand(0) == a && result->operand(1) == b) ||
                                (result->operand(0) == b && result->operand(1) == a);
  return is_of_parameters ? std::optional(result->opcode()) : std::nullopt;
}

bool HasIdentity(Opcode combiner, hlo::ElementType type) {
  switch (combiner) {
    case Opcode::kAdd:
    case Opcode::kMultiply:
      return true;
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
      return !hlo::IsComplex(type);
    default:
      return false;
  }
}

}  // namespace passes
