// Shapes of element-wise operations and of conversions of element types.
#include "hlo/shape_check.h"

namespace hlo {
namespace {

// The kind of an element type, a letter as in the tables of opcode.h; 0 for types of no tensor.
char KindOf(ElementType type) {
  if (type == ElementType::kPred) return 'p';
  if (IsSignedInteger(type)) return 's';
  if (IsUnsignedInteger(type)) return 'u';
  if (IsFloat(type)) return 'f';
  return IsComplex(type) ? 'c' : 0;
}

std::string Describe(std::string_view kinds) {
  std::string text;
  auto add = [&](std::string_view letters, std::string_view name) {
    if (kinds.find(letters) == std::string_view::npos) return;
    if (!text.empty()) text += ", ";
    text += name;
  };
  add("p", "pred");
  if (kinds.find("su") != std::string_view::npos) {
    add("su", "integer");
  } else {
    add("s", "signed integer");
    add("u", "unsigned integer");
  }
  add("f", "floating-point");
  add("c", "complex");
  return text;
}

void RequireKind(const ShapeCheck& check, ElementType type, std::string_view kinds) {
  check.Require(kinds.find(KindOf(type)) != std::string_view::npos, [&] {
    return "the operands' element type must be one of " + Describe(kinds) + ", not " +
           std::string(ShortName(type));
  });
}

// What the tables say of a unary or binary operation.
std::string_view KindsOf(Opcode opcode) {
  switch (opcode) {
#define HLO_KINDS_CASE(name, mnemonic, kinds) \
  case Opcode::name:                          \
    return kinds;
    HLO_ELEMENTWISE_UNARY_OPCODES(HLO_KINDS_CASE)
    HLO_ELEMENTWISE_BINARY_OPCODES(HLO_KINDS_CASE)
#undef HLO_KINDS_CASE
    default:
      return "";
  }
}

Shape InferUnary(const ShapeCheck& check) {
  check.RequireOperands(1);
  const Shape& x = check.operand(0);
  RequireKind(check, x.element_type(), KindsOf(check.opcode));
  switch (check.opcode) {
    case Opcode::kAbs:
    case Opcode::kImag:
    case Opcode::kReal:
      return x.WithElementType(RealType(x.element_type()));
    case Opcode::kIsFinite:
      return x.WithElementType(ElementType::kPred);
    default:
      return x;
  }
}

// Of two compatible shapes, the dimensions that are known.
Shape MergeDynamic(const Shape& x, const Shape& y) {
  Dimensions dimensions = x.dimensions();
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (dimensions[i] == kDynamic) dimensions[i] = y.dimension(static_cast<int64_t>(i));
  }
  return x.WithDimensions(std::move(dimensions));
}

Shape RequireSameShapes(const ShapeCheck& check) {
  check.RequireOperands(2);
  const Shape &x = check.operand(0), &y = check.operand(1);
  check.Require(CompatibleShapes(x, y),
                "the operands must have the same shape and element type (nothing is broadcast or "
                "promoted implicitly)");
  return x.is_dynamic() ? MergeDynamic(x, y) : x;
}

Shape InferBinary(const ShapeCheck& check) {
  Shape shape = RequireSameShapes(check);
  RequireKind(check, shape.element_type(), KindsOf(check.opcode));
  if (check.opcode != Opcode::kComplex) return shape;
  check.Require(
      shape.element_type() == ElementType::kF32 || shape.element_type() == ElementType::kF64,
      "the parts of a complex number must be f32 or f64");
  return shape.WithElementType(ComplexType(shape.element_type()));
}

Shape InferCompare(const ShapeCheck& check) {
  Shape shape = RequireSameShapes(check);
  const auto& compare = check.as<CompareAttributes>();
  switch (compare.type) {
    case ComparisonType::kNotype:
      break;
    case ComparisonType::kFloat:
      RequireKind(check, shape.element_type(), "fc");
      break;
    case ComparisonType::kTotalOrder:
      RequireKind(check, shape.element_type(), "f");
      break;
    case ComparisonType::kSigned:
      RequireKind(check, shape.element_type(), "s");
      break;
    case ComparisonType::kUnsigned:
      RequireKind(check, shape.element_type(), "pu");
      break;
  }
  check.Require(!IsComplex(shape.element_type()) || compare.direction == ComparisonDirection::kEq ||
                    compare.direction == ComparisonDirection::kNe,
                "complex numbers are compared by EQ and NE only");
  return shape.WithElementType(ElementType::kPred);
}

Shape InferSelect(const ShapeCheck& check) {
  check.RequireOperands(3);
  const Shape& predicate = check.operand(0);
  check.Require(predicate.element_type() == ElementType::kPred,
                "the predicate must be of type pred");
  check.Require(CompatibleShapes(check.operand(1), check.operand(2)),
                "both choices must have the same shape and element type");
  check.Require(predicate.is_scalar() ||
                    SameDimensions(predicate.dimensions(), check.operand(1).dimensions()),
                "the predicate must be a scalar or have the choices' dimensions");
  return check.operand(1);
}

Shape InferClamp(const ShapeCheck& check) {
  check.RequireOperands(3);
  const Shape& x = check.operand(1);
  RequireKind(check, x.element_type(), "psufc");
  for (size_t i : {0, 2}) {
    const Shape& bound = check.operand(i);
    check.Require(bound.element_type() == x.element_type() &&
                      (bound.is_scalar() || SameDimensions(bound.dimensions(), x.dimensions())),
                  "each bound must have the operand's element type and be a scalar or have its "
                  "dimensions");
  }
  return x;
}

Shape InferConvert(const ShapeCheck& check) {
  check.RequireOperands(1);
  const Shape& given = check.RequireGiven();
  check.Require(given.is_array() && KindOf(given.element_type()) != 0,
                "the result must be a tensor");
  return check.operand(0).WithElementType(given.element_type());
}

Shape InferBitcastConvert(const ShapeCheck& check) {
  check.RequireOperands(1);
  const Shape& x = check.operand(0);
  ElementType to = check.RequireGiven().element_type();
  int from_bits = BitWidth(x.element_type()), to_bits = BitWidth(to);
  check.Require(IsComplex(x.element_type()) == IsComplex(to) && from_bits > 0 && to_bits > 0,
                "bits are not reinterpreted between real and complex types");
  check.Require((x.element_type() == ElementType::kPred) == (to == ElementType::kPred),
                "bits are not reinterpreted between pred and other types");
  Dimensions dimensions = x.dimensions();
  if (from_bits < to_bits) {
    check.Require(to_bits % from_bits == 0 && !dimensions.empty() &&
                      SameDimension(dimensions.back(), to_bits / from_bits),
                  "the last dimension must hold exactly the parts of one wider element");
    dimensions.pop_back();
  } else if (from_bits > to_bits) {
    check.Require(from_bits % to_bits == 0, "the wider type must be a multiple of the narrower");
    dimensions.push_back(from_bits / to_bits);
  }
  return Shape(to, std::move(dimensions));
}

Shape InferReducePrecision(const ShapeCheck& check) {
  check.RequireOperands(1);
  RequireKind(check, check.operand(0).element_type(), "f");
  const auto& precision = check.as<ReducePrecisionAttributes>();
  check.Require(precision.exponent_bits >= 1, "exponent_bits must be at least 1");
  check.Require(precision.mantissa_bits >= 0, "mantissa_bits must not be negative");
  return check.operand(0);
}

}  // namespace

Shape InferElementwise(const ShapeCheck& check) {
  check.RequireArrays();
  switch (check.opcode) {
    case Opcode::kCompare:
      return InferCompare(check);
    case Opcode::kSelect:
      return InferSelect(check);
    case Opcode::kClamp:
      return InferClamp(check);
    case Opcode::kConvert:
      return InferConvert(check);
    case Opcode::kBitcastConvert:
      return InferBitcastConvert(check);
    case Opcode::kReducePrecision:
      return InferReducePrecision(check);
    default:
      return IsElementwiseUnary(check.opcode) ? InferUnary(check) : InferBinary(check);
  }
}

}  // namespace hlo
