#include "hlo/shape_check.h"

#include <algorithm>

namespace hlo {

void ShapeCheck::Fail(const std::string& rule, ErrorCode code) const {
  std::string message = std::string(Name(opcode)) + "(";
  for (size_t i = 0; i < operands.size(); ++i) {
    message += (i ? ", " : "") + operands[i]->ToString();
  }
  message += ")";
  std::string text = ToString(attributes);
  if (!text.empty()) message += " {" + text + "}";
  if (given) message += " -> " + given->ToString();
  throw Error(code, message + ": " + rule);
}

void ShapeCheck::RequireOperands(size_t count) const {
  Require(operands.size() == count, [&] {
    return "it takes " + std::to_string(count) + " operands, not " +
           std::to_string(operands.size());
  });
}

void ShapeCheck::RequireAtLeastOperands(size_t count) const {
  Require(operands.size() >= count, [&] {
    return "it takes at least " + std::to_string(count) + " operands, not " +
           std::to_string(operands.size());
  });
}

void ShapeCheck::RequireCalled(size_t count) const {
  Require(called.size() == count, [&] {
    return "it calls " + std::to_string(count) + " computations, not " +
           std::to_string(called.size());
  });
}

void ShapeCheck::RequireArrays() const {
  for (const Shape* shape : operands) {
    Require(shape->is_array(), "its operands must be tensors, not tuples or tokens");
  }
}

const Shape& ShapeCheck::RequireGiven() const {
  if (!given) Fail("its operands do not determine the result's shape, so it must be stated");
  return *given;
}

void ShapeCheck::RequireDimension(int64_t dimension, int64_t rank, const char* name) const {
  Require(dimension >= 0 && dimension < rank, [&] {
    return std::string(name) + " " + std::to_string(dimension) + " is not in [0, " +
           std::to_string(rank) + ")";
  });
}

void ShapeCheck::RequireDimensions(std::span<const int64_t> dimensions, int64_t rank,
                                   const char* name) const {
  std::vector<bool> seen(rank);
  for (int64_t dimension : dimensions) {
    RequireDimension(dimension, rank, name);
    Require(!seen[dimension], [&] {
      return std::string(name) + " " + ToString(dimensions) + " names a dimension twice";
    });
    seen[dimension] = true;
  }
}

void ShapeCheck::RequireLength(size_t length, int64_t expected, const char* name) const {
  Require(static_cast<int64_t>(length) == expected, [&] {
    return std::string(name) + " must have " + std::to_string(expected) + " entries, not " +
           std::to_string(length);
  });
}

void ShapeCheck::RequireIndexScalar(const Shape& shape, const char* name) const {
  Require(shape.is_scalar() && IsInteger(shape.element_type()),
          [&] { return std::string(name) + " must be a scalar of an integer type"; });
}

void ShapeCheck::RequireParameters(const Computation& computation, const std::vector<Shape>& shapes,
                                   const char* name) const {
  bool fits = computation.parameters().size() == shapes.size();
  for (size_t i = 0; fits && i < shapes.size(); ++i) {
    fits = CompatibleShapes(computation.parameter(i)->shape(), shapes[i]);
  }
  if (fits) return;
  std::vector<Shape> taken;
  for (const Instruction* parameter : computation.parameters()) taken.push_back(parameter->shape());
  Fail(std::string(name) + " @" + computation.name() + " must take " +
       Shape::Tuple(shapes).ToString() + ", but takes " + Shape::Tuple(taken).ToString());
}

void ShapeCheck::RequireResults(const Computation& computation, const std::vector<Shape>& shapes,
                                const char* name) const {
  std::vector<Shape> results = ResultShapes(computation);
  if (CompatibleShapes(Shape::Tuple(results), Shape::Tuple(shapes))) return;
  Fail(std::string(name) + " @" + computation.name() + " must return " +
       Shape::Tuple(shapes).ToString() + ", but returns " + Shape::Tuple(results).ToString());
}

std::vector<ElementType> ShapeCheck::RequireCombiner(const Computation& body,
                                                     const std::vector<ElementType>& inputs) const {
  std::vector<ElementType> types;
  std::vector<Shape> scalars;
  for (const Instruction* result : body.results()) {
    types.push_back(result->element_type());
    scalars.push_back(Shape::Scalar(result->element_type()));
  }
  Require(types.size() == inputs.size(), [&] {
    return "its body @" + body.name() + " must return " + std::to_string(inputs.size()) +
           " scalars, not " + std::to_string(types.size()) + " values";
  });
  RequireResults(body, scalars, "its body");
  std::vector<Shape> parameters = scalars;
  parameters.insert(parameters.end(), scalars.begin(), scalars.end());
  RequireParameters(body, parameters, "its body");
  for (size_t i = 0; i < types.size(); ++i) {
    Require(SameKind(inputs[i], types[i]) && BitWidth(inputs[i]) <= BitWidth(types[i]), [&] {
      return "its body @" + body.name() + " returns " + std::string(ShortName(types[i])) +
             ", to which elements of type " + std::string(ShortName(inputs[i])) +
             " cannot be promoted";
    });
  }
  return types;
}

bool SameDimensions(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::ranges::equal(a, b, SameDimension);
}

bool CompatibleShapes(const Shape& a, const Shape& b) {
  return a.element_type() == b.element_type() && SameDimensions(a.dimensions(), b.dimensions()) &&
         std::ranges::equal(a.tuple_shapes(), b.tuple_shapes(), CompatibleShapes);
}

bool SameKind(ElementType a, ElementType b) {
  return a == b || (IsFloat(a) && IsFloat(b)) || (IsComplex(a) && IsComplex(b)) ||
         (IsSignedInteger(a) && IsSignedInteger(b)) ||
         (IsUnsignedInteger(a) && IsUnsignedInteger(b));
}

bool Contains(std::span<const int64_t> list, int64_t value) {
  return std::ranges::find(list, value) != list.end();
}

bool IsSorted(std::span<const int64_t> list) { return std::ranges::is_sorted(list); }

Shape OneOrTuple(std::vector<Shape> shapes) {
  return shapes.size() == 1 ? std::move(shapes[0]) : Shape::Tuple(std::move(shapes));
}

std::vector<Shape> ResultShapes(const Computation& computation) {
  std::vector<Shape> shapes;
  for (const Instruction* result : computation.results()) shapes.push_back(result->shape());
  return shapes;
}

int64_t WindowedSize(int64_t size, int64_t window, int64_t stride, int64_t low, int64_t high,
                     int64_t base_dilation, int64_t window_dilation) {
  if (size == kDynamic || window == kDynamic) return kDynamic;
  int64_t base = size == 0 ? 0 : (size - 1) * base_dilation + 1;
  int64_t padded = base + low + high;
  int64_t dilated_window = window == 0 ? 0 : (window - 1) * window_dilation + 1;
  if (padded <= 0 || dilated_window > padded) return 0;
  return (padded - dilated_window) / stride + 1;
}

}  // namespace hlo
