#include "passes/constant_value.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace passes {
namespace {

using hlo::ElementType;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

bool IsNeverNegativeZeroAt(const Instruction* value, int depth) {
  constexpr int kMaxDepth = 4;
  if (depth > kMaxDepth) return false;
  auto operand = [&](size_t i) { return IsNeverNegativeZeroAt(value->operand(i), depth + 1); };
  switch (value->opcode()) {
    case Opcode::kAbs:
    case Opcode::kExponential:
    case Opcode::kIota:
    case Opcode::kLogistic:
      return true;
    case Opcode::kConvert:
      return !hlo::IsFloat(value->operand(0)->element_type()) || operand(0);
    case Opcode::kMultiply:
      return value->operand(0) == value->operand(1);
    case Opcode::kAdd:
      return operand(0) || operand(1);
    case Opcode::kBroadcastInDim:
    case Opcode::kReshape:
    case Opcode::kSlice:
    case Opcode::kTranspose:
      return operand(0);
    case Opcode::kSelect:
      return operand(1) && operand(2);
    case Opcode::kConstant: {
      std::optional<double> number = NumberOf(value);
      return number && !(*number == 0 && std::signbit(*number));
    }
    default:
      return false;
  }
}

// Digits of the integers that a float holds exactly, and bits of its exponent.
struct FloatFormat {
  int precision, exponent;
};

std::optional<FloatFormat> FormatOf(ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return FloatFormat{11, 5};
    case ElementType::kBF16:
      return FloatFormat{8, 8};
    case ElementType::kF32:
      return FloatFormat{24, 8};
    case ElementType::kF64:
      return FloatFormat{53, 11};
    default:
      return std::nullopt;
  }
}

// A constant of which every element of `value` has the first one's bytes; null if there is none.
// Rules ask for it of every operand, so nothing is copied.
const Literal* FillOf(const Instruction* value) {
  while (value->opcode() == Opcode::kBroadcastInDim || value->opcode() == Opcode::kReshape) {
    value = value->operand(0);
  }
  if (!value->IsConstant() || !hlo::IsNative(value->element_type())) return nullptr;
  const Literal& literal = value->literal();
  return value->shape().is_scalar() || literal.IsSplat() ? &literal : nullptr;
}

}  // namespace

std::optional<Literal> SplatOf(const Instruction* value) {
  const Literal* literal = FillOf(value);
  if (literal == nullptr) return std::nullopt;
  if (literal->shape().is_scalar()) return *literal;
  return Literal(hlo::Shape::Scalar(literal->shape().element_type()), literal->bytes());
}

std::optional<double> NumberOf(const Instruction* value) {
  if (hlo::IsComplex(value->element_type())) return std::nullopt;
  const Literal* fill = FillOf(value);
  if (fill == nullptr) return std::nullopt;
  return fill->AsDouble();
}

bool IsPositiveZero(const Instruction* value) {
  std::optional<double> number = NumberOf(value);
  return number && *number == 0 && !std::signbit(*number);
}

bool IsNegativeZero(const Instruction* value) {
  std::optional<double> number = NumberOf(value);
  return number && *number == 0 && std::signbit(*number);
}

bool IsAllOnes(const Instruction* value) {
  ElementType type = value->element_type();
  if (type != ElementType::kPred && !hlo::IsInteger(type)) return false;
  const Literal* fill = FillOf(value);
  if (fill == nullptr) return false;
  const auto byte = type == ElementType::kPred ? std::byte{1} : std::byte{0xff};
  const std::span element(fill->bytes(), hlo::ByteWidth(type));
  return std::ranges::all_of(element, [&](std::byte b) { return b == byte; });
}

bool IsNeverNegativeZero(const Instruction* value) { return IsNeverNegativeZeroAt(value, 0); }

bool Embeds(ElementType from, ElementType to) {
  if (from == to) return true;
  if (hlo::IsComplex(from)) return hlo::IsComplex(to) && to == ElementType::kC128;
  if (hlo::IsComplex(to)) return Embeds(from, hlo::RealType(to));
  if (from == ElementType::kPred) return hlo::IsInteger(to) || FormatOf(to).has_value();
  std::optional<FloatFormat> to_format = FormatOf(to);
  if (hlo::IsInteger(from)) {
    bool is_signed = hlo::IsSignedInteger(from);
    int digits = hlo::BitWidth(from) - (is_signed ? 1 : 0);
    if (to_format) {
      return digits <= to_format->precision && digits < (1 << (to_format->exponent - 1));
    }
    if (!hlo::IsInteger(to) || (is_signed && !hlo::IsSignedInteger(to))) return false;
    return digits <= hlo::BitWidth(to) - (hlo::IsSignedInteger(to) ? 1 : 0);
  }
  std::optional<FloatFormat> from_format = FormatOf(from);
  return from_format && to_format && from_format->precision <= to_format->precision &&
         from_format->exponent <= to_format->exponent;
}

}  // namespace passes
