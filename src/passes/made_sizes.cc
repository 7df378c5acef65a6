#include "passes/made_sizes.h"

#include <algorithm>

#include "passes/size_classes.h"

namespace passes {
namespace {

using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;

MadeDimensions All(const Instruction& instruction, bool made) {
  const hlo::Shape& shape = instruction.shape();
  return MadeDimensions(shape.is_array() ? static_cast<size_t>(shape.rank()) : 1, made);
}

void Append(const MadeDimensions& made, const Dimensions& chosen, MadeDimensions& into) {
  for (const int64_t d : chosen) into.push_back(made[static_cast<size_t>(d)]);
}

}  // namespace

MadeSizes::MadeSizes(const hlo::Computation& computation) {
  for (const auto& instruction : computation.instructions()) {
    of_[instruction.get()] = Find(*instruction);
  }
}

MadeDimensions MadeSizes::Find(const Instruction& instruction) const {
  if (hlo::IsElementwise(instruction.opcode())) return OfElementwise(instruction);
  switch (instruction.opcode()) {
    case Opcode::kParameter:
      return All(instruction, false);
    case Opcode::kConstant:
    case Opcode::kIota:
    case Opcode::kRng:
    case Opcode::kRngBitGenerator:
      return All(instruction, true);
    case Opcode::kBroadcastInDim:
      return OfBroadcast(instruction);
    case Opcode::kTranspose:
      return OfTranspose(instruction);
    case Opcode::kDotGeneral:
      return OfDot(instruction);
    default:
      return OfOther(instruction);
  }
}

// Operands have equal sizes: one that a parameter gives is none that was made.
MadeDimensions MadeSizes::OfElementwise(const Instruction& instruction) const {
  MadeDimensions made = All(instruction, true);
  for (const Instruction* operand : instruction.operands()) {
    if (operand->shape().is_scalar()) continue;
    for (size_t d = 0; d < made.size(); ++d) made[d] = made[d] && Of(operand)[d];
  }
  return made;
}

MadeDimensions MadeSizes::OfBroadcast(const Instruction& broadcast) const {
  const Instruction* operand = broadcast.operand(0);
  const Dimensions& map = broadcast.as<hlo::DimensionsAttributes>().dimensions;
  MadeDimensions made = All(broadcast, true);
  for (size_t i = 0; i < map.size(); ++i) {
    const auto d = static_cast<size_t>(map[i]);
    if (operand->dimensions()[i] == broadcast.dimensions()[d]) made[d] = Of(operand)[i];
  }
  return made;
}

MadeDimensions MadeSizes::OfTranspose(const Instruction& transpose) const {
  MadeDimensions made;
  Append(Of(transpose.operand(0)), transpose.as<hlo::DimensionsAttributes>().dimensions, made);
  return made;
}

MadeDimensions MadeSizes::OfDot(const Instruction& instruction) const {
  const auto& dot = instruction.as<hlo::DotAttributes>();
  const Instruction *lhs = instruction.operand(0), *rhs = instruction.operand(1);
  MadeDimensions made;
  Append(Of(lhs), dot.lhs_batching_dimensions, made);
  Append(Of(lhs),
         OtherDimensions(lhs->shape().rank(), dot.lhs_contracting_dimensions,
                         dot.lhs_batching_dimensions),
         made);
  Append(Of(rhs),
         OtherDimensions(rhs->shape().rank(), dot.rhs_contracting_dimensions,
                         dot.rhs_batching_dimensions),
         made);
  return made;
}

MadeDimensions MadeSizes::OfOther(const Instruction& instruction) const {
  const auto has_made = [&](const Instruction* operand) {
    return std::ranges::find(Of(operand), true) != Of(operand).end();
  };
  return All(instruction, std::ranges::any_of(instruction.operands(), has_made));
}

}  // namespace passes
