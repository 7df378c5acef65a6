// Numbers of fewer bits than any type of C++: they are computed in a wider type and rounded.
#include <algorithm>
#include <cmath>

#include "hlo/builder.h"
#include "hlo/evaluation.h"
#include "hlo/evaluator.h"
#include "hlo/minifloat.h"

namespace hlo::evaluation {
namespace {

bool IsNarrow(ElementType type) {
  return FindMinifloat(type) != nullptr || (IsInteger(type) && BitWidth(type) < 8);
}

ElementType WideType(ElementType type) {
  if (!IsNarrow(type)) return type;
  if (IsFloat(type)) return ElementType::kF32;
  return IsSignedInteger(type) ? ElementType::kS8 : ElementType::kU8;
}

std::vector<Shape> ResultShapes(const Instruction& instruction) {
  const Shape& shape = instruction.shape();
  return shape.is_tuple() ? shape.tuple_shapes() : std::vector{shape};
}

Shape WideShape(const Instruction& instruction) {
  std::vector<Shape> shapes = ResultShapes(instruction);
  for (Shape& shape : shapes) shape = shape.WithElementType(WideType(shape.element_type()));
  return instruction.shape().is_tuple() ? Shape::Tuple(shapes) : shapes[0];
}

// The low bits as a number with a sign, or without.
int FromLowBits(int bits, int width, bool is_signed) {
  bits &= (1 << width) - 1;
  return is_signed && (bits >> (width - 1)) != 0 ? bits - (1 << width) : bits;
}

template <typename T, typename F>
Literal MapBytes(const Literal& x, ElementType type, F&& f) {
  Literal result(x.shape().WithElementType(type));
  auto out = result.mutable_data<T>();
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<T>(f(std::to_integer<int>(x.bytes()[i])));
  return result;
}

// `is_signed`: as what integers are read.
Literal Widened(const Literal& x, bool is_signed) {
  const ElementType type = x.shape().element_type();
  if (!IsNarrow(type)) return x;
  if (IsFloat(type)) {
    return MapBytes<float>(x, ElementType::kF32, [&](int bits) {
      return DoubleFromMinifloat(type, static_cast<uint8_t>(bits));
    });
  }
  const auto number = [&](int bits) { return FromLowBits(bits, BitWidth(type), is_signed); };
  return IsSignedInteger(type) ? MapBytes<int8_t>(x, ElementType::kS8, number)
                               : MapBytes<uint8_t>(x, ElementType::kU8, number);
}

// Integers keep their low bits.
Literal Narrowed(const Literal& wide, ElementType type) {
  if (!IsNarrow(type)) return wide;
  Literal result(wide.shape().WithElementType(type));
  const std::vector<double> numbers = ReadAs<double>(wide);
  std::ranges::transform(numbers, result.mutable_bytes(), [&](double number) {
    return static_cast<std::byte>(
        IsFloat(type)
            ? RoundToMinifloat(type, number)
            : FromLowBits(static_cast<int>(number), BitWidth(type), IsSignedInteger(type)));
  });
  return result;
}

// Floating point numbers become the nearest integer that there is, no number becomes 0.
Literal Converted(const Literal& x, ElementType to) {
  const ElementType from = x.shape().element_type();
  if (!IsNarrow(to)) return ConvertElements(x, to);
  if (IsFloat(to)) return Narrowed(ConvertElements(x, ElementType::kF64), to);
  if (!IsFloat(from)) return Narrowed(ConvertElements(x, WideType(to)), to);
  const double high = IsSignedInteger(to) ? (1 << (BitWidth(to) - 1)) - 1 : (1 << BitWidth(to)) - 1;
  const double low = IsSignedInteger(to) ? -high - 1 : 0;
  std::vector<double> numbers = ReadAs<double>(x);
  for (double& number : numbers) number = std::isnan(number) ? 0 : std::clamp(number, low, high);
  return Narrowed(WriteAs(x.shape().WithElementType(WideType(to)), numbers), to);
}

// Of those that look at bits: whether they take them for a number with a sign.
bool ReadsSigned(Opcode opcode, ElementType type) {
  switch (opcode) {
    case Opcode::kShiftRightLogical:
    case Opcode::kPopcnt:
    case Opcode::kCountLeadingZeros:
      return false;
    case Opcode::kShiftRightArithmetic:
      return true;
    default:
      return IsSignedInteger(type);
  }
}

Literal WithoutHighZeros(const Literal& counts, int width) {
  return MapBytes<int8_t>(counts, counts.shape().element_type(),
                          [&](int count) { return count - (8 - width); });
}

}  // namespace

bool ComputesNarrow(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kSelect:
      return false;
    case Opcode::kBatchNormGrad:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormTraining:
    case Opcode::kConvolution:
    case Opcode::kDotGeneral:
    case Opcode::kIota:
      break;
    default:
      if (!IsElementwise(instruction.opcode())) return false;
  }
  return IsNarrow(instruction.element_type()) ||
         std::ranges::any_of(instruction.operands(),
                             [](const Instruction* x) { return IsNarrow(x->element_type()); });
}

Leaves EvaluateNarrow(const Instruction& instruction, const Leaves& operands) {
  const ElementType type = instruction.element_type();
  Leaves wide;
  for (const Literal& operand : operands) {
    wide.push_back(
        Widened(operand, ReadsSigned(instruction.opcode(), operand.shape().element_type())));
  }
  if (instruction.opcode() == Opcode::kConvert) return {Converted(wide[0], type)};
  Module scratch("wide");
  Builder b(scratch.AddComputation("wide"));
  std::vector<Value> parameters;
  for (const Literal& operand : wide) parameters.push_back(b.Parameter(operand.shape()));
  const Value twin = b.Create(instruction.opcode(), parameters, instruction.attributes(), {},
                              WideShape(instruction));
  Leaves results = EvaluateInstruction(*twin, wide);
  if (instruction.opcode() == Opcode::kCountLeadingZeros) {
    results[0] = WithoutHighZeros(results[0], BitWidth(type));
  }
  const std::vector<Shape> shapes = ResultShapes(instruction);
  for (size_t i = 0; i < results.size(); ++i) {
    results[i] = Narrowed(results[i], shapes[i].element_type());
  }
  return results;
}

}  // namespace hlo::evaluation
