// Integers that are plain from where an element lies: positions, constants, and sums of them.
#include <cstdint>
#include <optional>

#include "cpu/emit/body_emitter.h"
#include "cpu/kernel_signature.h"

namespace cpu {

using hlo::ComparisonDirection;
using hlo::Instruction;
using hlo::Opcode;
using Bounds = Position::Bounds;

namespace {

// Whether one comparison holds for all numbers within the bounds, or for none of them.
std::optional<bool> Decide(ComparisonDirection direction, const Bounds& a, const Bounds& b) {
  switch (direction) {
    case ComparisonDirection::kLt:
      if (a.high < b.low) return true;
      if (a.low >= b.high) return false;
      break;
    case ComparisonDirection::kGe:
      if (const auto below = Decide(ComparisonDirection::kLt, a, b)) return !*below;
      break;
    case ComparisonDirection::kGt:
      return Decide(ComparisonDirection::kLt, b, a);
    case ComparisonDirection::kLe:
      return Decide(ComparisonDirection::kGe, b, a);
    default:
      break;
  }
  return std::nullopt;
}

// Whether the type has all numbers within the bounds.
bool Has(hlo::ElementType type, const Bounds& bounds) {
  const int bits =
      static_cast<int>(hlo::ByteWidth(type)) * 8 - (hlo::IsSignedInteger(type) ? 1 : 0);
  const int64_t highest = bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
  const int64_t lowest = hlo::IsSignedInteger(type) ? -highest - 1 : 0;
  return lowest <= bounds.low && bounds.high <= highest;
}

}  // namespace

std::optional<Position> BodyEmitter::PlainNumber(const Instruction* x, const Index& index) {
  if (!hlo::IsInteger(x->element_type())) return std::nullopt;
  std::optional<Position> number = PlainNumberOfAnyType(x, index);
  if (!number || !number->bounds || !Has(x->element_type(), *number->bounds)) return std::nullopt;
  // Vectors of positions may be of 32 bits.
  const bool is_narrow = number->vector && !wide_index_;
  if (is_narrow && !Has(hlo::ElementType::kS32, *number->bounds)) return std::nullopt;
  return number;
}

std::optional<Position> BodyEmitter::PlainNumberOfAnyType(const Instruction* x,
                                                          const Index& index) {
  if (const std::optional<Index> moved = OperandIndex(x, index)) {
    return PlainNumber(x->operand(0), *moved);
  }
  const auto operand = [&](size_t i) {
    return PlainNumber(x->operand(i), x->operand(i)->shape().rank() == 0 ? Index{} : index);
  };
  switch (x->opcode()) {
    case Opcode::kConstant:
      if (!x->literal().IsSplat() || Size(*BitsOf(x->literal())).varies) return std::nullopt;
      return ConstantPosition(x->literal().AsInt());
    case Opcode::kIota:
      return PlainCoordinate(index, x->dimensions(), x->as<hlo::DimensionAttributes>().dimension);
    case Opcode::kConvert:
      return operand(0);
    case Opcode::kAdd:
    case Opcode::kSubtract:
    case Opcode::kMultiply:
      return PlainArithmetic(x->opcode(), operand(0), operand(1));
    case Opcode::kConcatenate:
      return PlainPart(x, index);
    case Opcode::kSelect:
      if (const std::optional<bool> condition = PlainCondition(x->operand(0), index)) {
        return operand(*condition ? 1 : 2);
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<Position> BodyEmitter::PlainCoordinate(const Index& index,
                                                     const hlo::Dimensions& dimensions,
                                                     int64_t dimension) {
  if (Size(dimensions[dimension]).varies) return std::nullopt;
  Position position = Coordinate(index, dimensions, dimension);
  if (!position.bounds) position.bounds = {0, dimensions[dimension] - 1};
  return position;
}

std::optional<Position> BodyEmitter::PlainArithmetic(Opcode opcode,
                                                     const std::optional<Position>& a,
                                                     const std::optional<Position>& b) {
  if (!a || !b) return std::nullopt;
  const auto constant = [](const Position& x) -> std::optional<int64_t> {
    if (x.bounds->low != x.bounds->high) return std::nullopt;
    return x.bounds->low;
  };
  if (opcode == Opcode::kAdd) return Add(*a, *b);
  const std::optional<int64_t> factor = constant(*b);
  if (opcode == Opcode::kSubtract) {
    if (!factor) return std::nullopt;
    return Add(*a, -*factor);
  }
  if (factor) return Multiply(*a, *factor);
  if (const std::optional<int64_t> other = constant(*a)) return Multiply(*b, *other);
  return std::nullopt;
}

// Of the operand that lies at one place of the joined dimension.
std::optional<Position> BodyEmitter::PlainPart(const Instruction* concatenate, const Index& given) {
  const int64_t d = concatenate->as<hlo::DimensionAttributes>().dimension;
  Index index =
      SplitAt(SplitAt(given, concatenate->dimensions(), d), concatenate->dimensions(), d + 1);
  for (IndexGroup& group : index) {
    if (group.begin != d) continue;
    const auto& bounds = group.position.bounds;
    if (!bounds || bounds->low != bounds->high) return std::nullopt;
    int64_t place = bounds->low;
    for (const Instruction* part : concatenate->operands()) {
      if (Size(part->dimensions()[d]).varies) return std::nullopt;
      if (place < part->dimensions()[d]) {
        group.position = ConstantPosition(place);
        return PlainNumber(part, index);
      }
      place -= part->dimensions()[d];
    }
  }
  return std::nullopt;
}

std::optional<bool> BodyEmitter::PlainCondition(const Instruction* x, const Index& index) {
  if (const std::optional<Index> moved = OperandIndex(x, index)) {
    return PlainCondition(x->operand(0), *moved);
  }
  if (x->opcode() != Opcode::kCompare) return std::nullopt;
  const auto a = PlainNumber(x->operand(0), index), b = PlainNumber(x->operand(1), index);
  if (!a || !b) return std::nullopt;
  return Decide(x->as<hlo::CompareAttributes>().direction, *a->bounds, *b->bounds);
}

}  // namespace cpu
