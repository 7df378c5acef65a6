#include "passes/passes.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "hlo/builder.h"
#include "passes/combiner.h"
#include "passes/constant_value.h"
#include "passes/inline_where.h"
#include "passes/simplify_rearrangement.h"

namespace passes {
namespace {

using hlo::Builder;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Value;

bool IsReal(ElementType type) { return hlo::IsFloat(type); }
bool IsExact(ElementType type) { return hlo::IsInteger(type) || type == ElementType::kPred; }

// Each rule returns the value that replaces the instruction, or null.

Value SimplifyAdd(Builder&, Instruction& add) {
  for (size_t i : {0, 1}) {
    Value x = add.operand(i), y = add.operand(1 - i);
    if (hlo::IsInteger(add.element_type()) && IsPositiveZero(y)) return x;
    if (!IsReal(add.element_type())) continue;
    if (IsNegativeZero(y)) return x;
    if (IsPositiveZero(y) && IsNeverNegativeZero(x)) return x;
  }
  return nullptr;
}

Value SimplifySubtract(Builder& builder, Instruction& subtract) {
  Value x = subtract.operand(0), y = subtract.operand(1);
  bool is_integer = hlo::IsInteger(subtract.element_type());
  if ((is_integer || IsReal(subtract.element_type())) && IsPositiveZero(y)) return x;
  if (is_integer && x == y) return builder.Zeros(subtract.shape());
  return nullptr;
}

Value SimplifyMultiply(Builder& builder, Instruction& multiply) {
  for (size_t i : {0, 1}) {
    Value x = multiply.operand(i), y = multiply.operand(1 - i);
    std::optional<double> number = NumberOf(y);
    if (number == 1.0 && !hlo::IsComplex(multiply.element_type())) return x;
    if (number == 0.0 && IsExact(multiply.element_type())) {
      return builder.Zeros(multiply.shape());
    }
  }
  return nullptr;
}

// Division by a power of two is multiplication by its inverse, bit for bit, where that is a normal
// number.
Value SimplifyDivide(Builder& builder, Instruction& divide) {
  std::optional<double> number = NumberOf(divide.operand(1));
  if (!number) return nullptr;
  if (*number == 1.0) return divide.operand(0);
  ElementType type = divide.element_type();
  if (type != ElementType::kF32 && type != ElementType::kF64) return nullptr;
  int exponent = 0;
  if (std::abs(std::frexp(*number, &exponent)) != 0.5 || std::abs(exponent) > 100) return nullptr;
  return builder.Multiply(divide.operand(0), builder.Full(divide.shape(), 1.0 / *number));
}

Value SimplifyLogical(Builder&, Instruction& instruction) {
  Value x = instruction.operand(0), y = instruction.operand(1);
  bool is_and = instruction.opcode() == Opcode::kAnd;
  if (x == y) return x;
  for (int i = 0; i < 2; ++i, std::swap(x, y)) {
    if (IsAllOnes(y)) return is_and ? x : y;
    if (IsPositiveZero(y)) return is_and ? y : x;
  }
  return nullptr;
}

Value SimplifyXor(Builder& builder, Instruction& instruction) {
  Value x = instruction.operand(0), y = instruction.operand(1);
  if (x == y) return builder.Zeros(instruction.shape());
  if (IsPositiveZero(y)) return x;
  if (IsPositiveZero(x)) return y;
  return nullptr;
}

Value SimplifyShift(Builder&, Instruction& shift) {
  return IsPositiveZero(shift.operand(1)) ? shift.operand(0) : nullptr;
}

Value SimplifyExtremum(Builder&, Instruction& instruction) {
  return instruction.operand(0) == instruction.operand(1) ? instruction.operand(0) : nullptr;
}

Value SimplifyPower(Builder& builder, Instruction& power) {
  if (hlo::IsComplex(power.element_type())) return nullptr;
  Value x = power.operand(0);
  std::optional<double> exponent = NumberOf(power.operand(1));
  if (exponent == 1.0) return x;
  if (exponent == 2.0) return builder.Multiply(x, x);
  // Narrower floats would be rounded between the two.
  const hlo::ElementType type = power.element_type();
  if (type != hlo::ElementType::kF32 && type != hlo::ElementType::kF64) return nullptr;
  if (exponent == 3.0) return builder.Multiply(builder.Multiply(x, x), x);
  if (exponent == -1.0) return builder.Divide(builder.Full(x->shape(), 1.0), x);
  return nullptr;
}

// negate(negate(x)) and not(not(x)).
Value SimplifyInvolution(Builder&, Instruction& instruction) {
  Value x = instruction.operand(0);
  return x->opcode() == instruction.opcode() ? x->operand(0) : nullptr;
}

// abs(abs(x)); floor, ceil and round of what is whole already.
Value SimplifyIdempotent(Builder&, Instruction& instruction) {
  Value x = instruction.operand(0);
  return x->opcode() == instruction.opcode() ? x : nullptr;
}

Value SimplifyRealImag(Builder&, Instruction& instruction) {
  Value x = instruction.operand(0);
  if (x->opcode() != Opcode::kComplex) return nullptr;
  return x->operand(instruction.opcode() == Opcode::kReal ? 0 : 1);
}

Value SimplifyComplex(Builder&, Instruction& complex) {
  Value real = complex.operand(0), imag = complex.operand(1);
  bool parts = real->opcode() == Opcode::kReal && imag->opcode() == Opcode::kImag &&
               real->operand(0) == imag->operand(0);
  return parts ? real->operand(0) : nullptr;
}

// The middle type of convert(convert(x)) may go if it holds every value of the first. Integers that
// went through a float would saturate where they now wrap, so those stay.
Value SimplifyConvert(Builder& builder, Instruction& convert) {
  Value x = convert.operand(0);
  if (x->element_type() == convert.element_type()) return x;
  if (x->opcode() != Opcode::kConvert) return nullptr;
  ElementType first = x->operand(0)->element_type(), middle = x->element_type();
  if (!Embeds(first, middle)) return nullptr;
  bool saturates = hlo::IsInteger(first) && !hlo::IsInteger(middle) &&
                   hlo::IsInteger(convert.element_type()) && !Embeds(first, convert.element_type());
  return saturates ? nullptr : builder.Convert(x->operand(0), convert.element_type());
}

Value SimplifySelect(Builder& builder, Instruction& select) {
  Value predicate = select.operand(0), x = select.operand(1), y = select.operand(2);
  if (x == y) return x;
  if (std::optional<double> known = NumberOf(predicate)) return *known != 0 ? x : y;
  if (predicate->opcode() == Opcode::kNot) return builder.Select(predicate->operand(0), y, x);
  if (select.element_type() == ElementType::kPred && predicate->shape() == select.shape() &&
      IsAllOnes(x) && IsPositiveZero(y)) {
    return predicate;
  }
  return nullptr;
}

Value SimplifyGetTupleElement(Builder&, Instruction& element) {
  Value tuple = element.operand(0);
  if (tuple->opcode() != Opcode::kTuple) return nullptr;
  return tuple->operand(static_cast<size_t>(element.tuple_index()));
}

// The operand dimension that each dimension of a transpose is.
const hlo::Dimensions* PermutationOf(Value value) {
  if (value->opcode() != Opcode::kTranspose) return nullptr;
  return &value->as<hlo::DimensionsAttributes>().dimensions;
}

bool Contains(const hlo::Dimensions& list, int64_t x) {
  return std::ranges::find(list, x) != list.end();
}

// Rewrites a dot's dimension numbers of one side for the operand of the transpose there. The free
// dimensions must keep their order, which is the result's.
bool AbsorbTranspose(Value operand, hlo::Dimensions& batching, hlo::Dimensions& contracting) {
  const hlo::Dimensions* permutation = PermutationOf(operand);
  if (!permutation) return false;
  int64_t last = -1;
  for (int64_t d = 0; d < operand->shape().rank(); ++d) {
    if (Contains(batching, d) || Contains(contracting, d)) continue;
    if ((*permutation)[d] < last) return false;
    last = (*permutation)[d];
  }
  for (int64_t& d : batching) d = (*permutation)[d];
  for (int64_t& d : contracting) d = (*permutation)[d];
  return true;
}

Value SimplifyDot(Builder& builder, Instruction& dot) {
  auto a = dot.as<hlo::DotAttributes>();
  Value lhs = dot.operand(0), rhs = dot.operand(1);
  bool left = AbsorbTranspose(lhs, a.lhs_batching_dimensions, a.lhs_contracting_dimensions);
  bool right = AbsorbTranspose(rhs, a.rhs_batching_dimensions, a.rhs_contracting_dimensions);
  if (!left && !right) return nullptr;
  return builder.DotGeneral(left ? lhs->operand(0) : lhs, right ? rhs->operand(0) : rhs,
                            std::move(a), dot.element_type());
}

// True if combining `init` with any element of `x` gives that element.
bool IsIdentity(Opcode combiner, Value init, Value x) {
  std::optional<hlo::Literal> splat = SplatOf(init);
  if (!splat) return false;
  switch (combiner) {
    case Opcode::kAdd:
      if (hlo::IsInteger(x->element_type())) return IsPositiveZero(init);
      if (!IsReal(x->element_type())) return false;
      return IsNegativeZero(init) || (IsPositiveZero(init) && IsNeverNegativeZero(x));
    case Opcode::kMultiply:
      if (hlo::IsComplex(x->element_type())) return false;
      return NumberOf(init) == 1.0;
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
      if (hlo::IsComplex(x->element_type())) return false;
      return *splat == hlo::IdentityLiteral(combiner, x->element_type());
    default:
      return false;
  }
}

// Over dimensions of size 1, or none, a reduction combines one element with its initial value.
Value SimplifyReduce(Builder& builder, Instruction& reduce) {
  if (reduce.operand_count() != 2 || reduce.shape().is_tuple()) return nullptr;
  Value x = reduce.operand(0);
  if (x->element_type() != reduce.element_type()) return nullptr;
  for (int64_t d : reduce.as<hlo::DimensionsAttributes>().dimensions) {
    if (x->shape().dimension(d) != 1) return nullptr;
  }
  std::optional<Opcode> combiner = CombinerOf(*reduce.called_computations()[0]);
  if (!combiner || !IsIdentity(*combiner, reduce.operand(1), x)) return nullptr;
  return builder.Reshape(x, reduce.dimensions());
}

// A branch that is known to be taken replaces the choice.
bool TakeBranch(Instruction& instruction) {
  std::optional<double> number = NumberOf(instruction.operand(0));
  if (!number) return false;
  const auto& branches = instruction.called_computations();
  size_t taken;
  if (instruction.opcode() == Opcode::kIf) {
    taken = *number != 0 ? 0 : 1;
  } else {
    bool in_range = *number >= 0 && *number < static_cast<double>(branches.size());
    taken = in_range ? static_cast<size_t>(*number) : branches.size() - 1;
  }
  std::vector<Instruction*> arguments(instruction.operands().begin() + 1,
                                      instruction.operands().end());
  ReplaceResults(instruction,
                 hlo::InlineComputation(*branches[taken], *instruction.parent(), arguments));
  instruction.parent()->Remove(&instruction);
  return true;
}

bool SkipLoop(Instruction& loop) {
  const hlo::Computation& condition = *loop.called_computations()[0];
  if (!IsPositiveZero(condition.result())) return false;
  ReplaceResults(loop, loop.operands());
  loop.parent()->Remove(&loop);
  return true;
}

Value Simplified(Builder& builder, Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kAdd:
      return SimplifyAdd(builder, instruction);
    case Opcode::kSubtract:
      return SimplifySubtract(builder, instruction);
    case Opcode::kMultiply:
      return SimplifyMultiply(builder, instruction);
    case Opcode::kDivide:
      return SimplifyDivide(builder, instruction);
    case Opcode::kAnd:
    case Opcode::kOr:
      return SimplifyLogical(builder, instruction);
    case Opcode::kXor:
      return SimplifyXor(builder, instruction);
    case Opcode::kShiftLeft:
    case Opcode::kShiftRightArithmetic:
    case Opcode::kShiftRightLogical:
      return SimplifyShift(builder, instruction);
    case Opcode::kMaximum:
    case Opcode::kMinimum:
      return SimplifyExtremum(builder, instruction);
    case Opcode::kPower:
      return SimplifyPower(builder, instruction);
    case Opcode::kNegate:
    case Opcode::kNot:
      return SimplifyInvolution(builder, instruction);
    case Opcode::kCeil:
    case Opcode::kFloor:
    case Opcode::kRoundNearestAfz:
    case Opcode::kRoundNearestEven:
    case Opcode::kSign:
      return SimplifyIdempotent(builder, instruction);
    case Opcode::kAbs:
      return hlo::IsComplex(instruction.operand(0)->element_type())
                 ? nullptr
                 : SimplifyIdempotent(builder, instruction);
    case Opcode::kReal:
    case Opcode::kImag:
      return SimplifyRealImag(builder, instruction);
    case Opcode::kComplex:
      return SimplifyComplex(builder, instruction);
    case Opcode::kConvert:
      return SimplifyConvert(builder, instruction);
    case Opcode::kSelect:
      return SimplifySelect(builder, instruction);
    case Opcode::kGetTupleElement:
      return SimplifyGetTupleElement(builder, instruction);
    case Opcode::kDotGeneral:
      return SimplifyDot(builder, instruction);
    case Opcode::kReduce:
      return SimplifyReduce(builder, instruction);
    default:
      return SimplifyRearrangement(builder, instruction);
  }
}

// Control flow whose course is known. Apart from the walk below because it removes instructions at
// once.
bool SimplifyControl(hlo::Computation& computation) {
  std::vector<Instruction*> found;
  for (const auto& owned : computation.instructions()) {
    Opcode opcode = owned->opcode();
    if (opcode == Opcode::kIf || opcode == Opcode::kCase || opcode == Opcode::kWhile) {
      found.push_back(owned.get());
    }
  }
  bool changed = false;
  for (Instruction* instruction : found) {
    changed |=
        instruction->opcode() == Opcode::kWhile ? SkipLoop(*instruction) : TakeBranch(*instruction);
  }
  if (changed) computation.SortTopologically();
  return changed;
}

// One walk. Operands come before their users, so chains collapse as they are met.
bool SimplifyOnce(hlo::Computation& computation) {
  bool changed = SimplifyControl(computation);
  std::vector<Instruction*> instructions;
  for (const auto& owned : computation.instructions()) instructions.push_back(owned.get());
  Builder builder(&computation);
  for (Instruction* instruction : instructions) {
    if (instruction->shape().is_dynamic()) continue;
    const size_t first = computation.instructions().size();
    Value value = Simplified(builder, *instruction);
    for (size_t i = first; i < computation.instructions().size(); ++i) {
      computation.instructions()[i]->set_metadata(instruction->shared_metadata());
    }
    if (!value || value == instruction || value->shape() != instruction->shape()) continue;
    instruction->ReplaceAllUsesWith(value);
    changed = true;
  }
  if (changed) {
    computation.RemoveDeadInstructions();
    computation.SortTopologically();
  }
  return changed;
}

}  // namespace

bool Simplify(hlo::Module& module) {
  constexpr int kMaxWalks = 4;
  bool changed = false;
  for (size_t i = 0; i < module.computations().size(); ++i) {
    hlo::Computation& computation = *module.computations()[i];
    for (int walk = 0; walk < kMaxWalks; ++walk) {
      if (!SimplifyOnce(computation)) break;
      changed = true;
    }
  }
  if (changed) module.RemoveUnreachableComputations();
  return changed;
}

}  // namespace passes
