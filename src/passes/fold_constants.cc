#include "passes/passes.h"

#include <algorithm>
#include <optional>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/evaluator.h"

namespace passes {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

// A literal operand may be larger than the result (a slice, a reduction), but not by any factor.
constexpr int64_t kOperandFactor = 16;

bool IsFoldable(Opcode opcode) {
  if (hlo::IsElementwise(opcode)) return true;
  switch (opcode) {
    case Opcode::kBitcastConvert:
    case Opcode::kBroadcastInDim:
    case Opcode::kConcatenate:
    case Opcode::kDotGeneral:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kGather:
    case Opcode::kPad:
    case Opcode::kReduce:
    case Opcode::kReshape:
    case Opcode::kReverse:
    case Opcode::kSlice:
    case Opcode::kTranspose:
      return true;
    default:
      return false;
  }
}

// The scalar that fills `value`, if it is a constant scalar or one broadcast.
const Instruction* FillingScalar(const Instruction* value) {
  if (value->opcode() == Opcode::kBroadcastInDim) value = value->operand(0);
  return value->IsConstant() && value->shape().is_scalar() ? value : nullptr;
}

std::optional<Literal> TryEvaluate(const Instruction& instruction,
                                   const std::vector<Literal>& operands) {
  try {
    return hlo::EvaluateInstruction(instruction, operands).at(0);
  } catch (const hlo::Error&) {
    return std::nullopt;  // what cannot be folded is computed at run time, or fails there
  }
}

class Folder {
 public:
  Folder(hlo::Computation& computation, int64_t max_elements)
      : computation_(computation), max_elements_(max_elements) {}

  bool Run() {
    // By number: folding appends.
    for (size_t i = 0, count = computation_.instructions().size(); i < count; ++i) {
      Instruction& instruction = *computation_.instructions()[i];
      if (instruction.operands().empty() || !IsFoldable(instruction.opcode()) ||
          !instruction.shape().is_array() || instruction.shape().is_dynamic()) {
        continue;
      }
      Instruction* value = Fold(instruction);
      if (!value) continue;
      value->set_metadata(instruction.shared_metadata());
      instruction.ReplaceAllUsesWith(value);
      changed_ = true;
    }
    if (changed_) {
      computation_.RemoveDeadInstructions();
      computation_.SortTopologically();
    }
    return changed_;
  }

 private:
  Instruction* Fold(const Instruction& instruction) {
    const auto& operands = instruction.operands();
    bool is_fill =
        instruction.opcode() == Opcode::kBroadcastInDim && operands[0]->shape().is_scalar();
    if (is_fill && !instruction.shape().is_scalar()) return nullptr;
    if (hlo::IsElementwise(instruction.opcode()) && !instruction.shape().is_scalar() &&
        std::ranges::all_of(operands, FillingScalar)) {
      return FoldFill(instruction);
    }
    if (!std::ranges::all_of(operands, &Instruction::IsConstant)) return nullptr;
    if (instruction.shape().num_elements() > max_elements_) return nullptr;
    std::vector<Literal> literals;
    for (const Instruction* operand : operands) {
      if (operand->shape().num_elements() > max_elements_ * kOperandFactor) return nullptr;
      literals.push_back(operand->literal());
    }
    std::optional<Literal> value = TryEvaluate(instruction, literals);
    return value ? Builder(&computation_).Constant(std::move(*value)) : nullptr;
  }

  // f(fill(a), fill(b)) is fill(f(a, b)), where kernels fill with such numbers: those of less than
  // a byte they only convert to.
  Instruction* FoldFill(const Instruction& instruction) {
    if (!hlo::IsNative(instruction.element_type())) return nullptr;
    std::vector<Instruction*> scalars;
    std::vector<Literal> literals;
    for (const Instruction* operand : instruction.operands()) {
      literals.push_back(FillingScalar(operand)->literal());
    }
    Builder builder(&computation_);
    for (const Literal& literal : literals) scalars.push_back(builder.Constant(literal));
    Instruction* scalar =
        computation_.Add(instruction.opcode(), hlo::Shape::Scalar(instruction.element_type()),
                         scalars, instruction.attributes());
    std::optional<Literal> value = TryEvaluate(*scalar, literals);
    if (!value) return nullptr;
    return builder.BroadcastInDim(builder.Constant(std::move(*value)), instruction.dimensions(),
                                  {});
  }

  hlo::Computation& computation_;
  int64_t max_elements_;
  bool changed_ = false;
};

}  // namespace

bool FoldConstants(hlo::Module& module, int64_t max_elements) {
  bool changed = false;
  for (const auto& computation : module.computations()) {
    changed |= Folder(*computation, max_elements).Run();
  }
  return changed;
}

}  // namespace passes
