// Shapes of operations that apply a computation to elements or windows: reduce, reduce_window,
// select_and_scatter, map, sort.
#include "hlo/shape_check.h"

namespace hlo {
namespace {

// Operands are N inputs of the same dimensions and N scalar inits; returns N.
size_t RequireInputsAndInits(const ShapeCheck& check) {
  check.RequireAtLeastOperands(2);
  check.Require(check.operands.size() % 2 == 0, "each input needs an init value");
  size_t count = check.operands.size() / 2;
  for (size_t i = 0; i < count; ++i) {
    check.Require(SameDimensions(check.operand(i).dimensions(), check.operand(0).dimensions()),
                  "all inputs must have the same dimensions");
    const Shape& init = check.operand(count + i);
    check.Require(init.is_scalar() && init.element_type() == check.operand(i).element_type(),
                  "each init value must be a scalar of its input's element type");
  }
  return count;
}

std::vector<ElementType> InputTypes(const ShapeCheck& check, size_t count) {
  std::vector<ElementType> types;
  for (size_t i = 0; i < count; ++i) types.push_back(check.operand(i).element_type());
  return types;
}

Shape WithTypes(const std::vector<ElementType>& types, const Dimensions& dimensions) {
  std::vector<Shape> shapes;
  for (ElementType type : types) shapes.emplace_back(type, dimensions);
  return OneOrTuple(std::move(shapes));
}

Shape InferReduce(const ShapeCheck& check) {
  size_t count = RequireInputsAndInits(check);
  check.RequireCalled(1);
  const Shape& x = check.operand(0);
  const Dimensions& reduced = check.as<DimensionsAttributes>().dimensions;
  check.RequireDimensions(reduced, x.rank(), "dimensions");
  Dimensions dimensions;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (!Contains(reduced, i)) dimensions.push_back(x.dimension(i));
  }
  return WithTypes(check.RequireCombiner(*check.called[0], InputTypes(check, count)), dimensions);
}

void RequireWindow(const ShapeCheck& check, const Window& window, int64_t rank) {
  check.RequireLength(window.dimensions.size(), rank, "window_dimensions");
  check.RequireLength(window.strides.size(), rank, "window_strides");
  check.RequireLength(window.padding_low.size(), rank, "padding");
  check.RequireLength(window.padding_high.size(), rank, "padding");
  check.RequireLength(window.base_dilations.size(), rank, "base_dilations");
  check.RequireLength(window.window_dilations.size(), rank, "window_dilations");
  for (int64_t i = 0; i < rank; ++i) {
    check.Require(window.dimensions[i] > 0 && window.strides[i] > 0 &&
                      window.base_dilations[i] > 0 && window.window_dilations[i] > 0,
                  "window sizes, strides and dilations must be positive");
  }
}

Dimensions WindowedDimensions(const Shape& x, const Window& window) {
  Dimensions dimensions;
  for (int64_t i = 0; i < x.rank(); ++i) {
    dimensions.push_back(WindowedSize(x.dimension(i), window.dimensions[i], window.strides[i],
                                      window.padding_low[i], window.padding_high[i],
                                      window.base_dilations[i], window.window_dilations[i]));
  }
  return dimensions;
}

Shape InferReduceWindow(const ShapeCheck& check) {
  size_t count = RequireInputsAndInits(check);
  check.RequireCalled(1);
  const auto& window = check.as<Window>();
  RequireWindow(check, window, check.operand(0).rank());
  return WithTypes(check.RequireCombiner(*check.called[0], InputTypes(check, count)),
                   WindowedDimensions(check.operand(0), window));
}

Shape InferSelectAndScatter(const ShapeCheck& check) {
  check.RequireOperands(3);
  check.RequireCalled(2);
  const Shape &x = check.operand(0), &source = check.operand(1), &init = check.operand(2);
  const auto& window = check.as<Window>();
  RequireWindow(check, window, x.rank());
  for (int64_t i = 0; i < x.rank(); ++i) {
    check.Require(window.base_dilations[i] == 1 && window.window_dilations[i] == 1,
                  "its window has no dilations");
  }
  check.Require(SameDimensions(source.dimensions(), WindowedDimensions(x, window)), [&] {
    return "the source must have one element for each window, " +
           ToString(WindowedDimensions(x, window));
  });
  check.Require(source.element_type() == x.element_type() && init.is_scalar() &&
                    init.element_type() == x.element_type(),
                "the source and the scalar init must have the operand's element type");
  Shape scalar = Shape::Scalar(x.element_type());
  check.RequireParameters(*check.called[0], {scalar, scalar}, "its select");
  check.RequireResults(*check.called[0], {Shape::Scalar(ElementType::kPred)}, "its select");
  return x.WithElementType(check.RequireCombiner(*check.called[1], {x.element_type()})[0]);
}

Shape InferMap(const ShapeCheck& check) {
  check.RequireAtLeastOperands(1);
  check.RequireCalled(1);
  const Shape& x = check.operand(0);
  const Dimensions& dimensions = check.as<DimensionsAttributes>().dimensions;
  check.RequireLength(dimensions.size(), x.rank(), "dimensions");
  std::vector<Shape> scalars;
  for (size_t i = 0; i < check.operands.size(); ++i) {
    check.Require(SameDimensions(check.operand(i).dimensions(), x.dimensions()),
                  "all operands must have the same dimensions");
    check.Require(i >= dimensions.size() || dimensions[i] == static_cast<int64_t>(i),
                  "dimensions must list all dimensions in order");
    scalars.push_back(Shape::Scalar(check.operand(i).element_type()));
  }
  const Computation& body = *check.called[0];
  check.RequireParameters(body, scalars, "its body");
  check.Require(body.results().size() == 1 && body.result()->shape().is_scalar(),
                "its body must return one scalar");
  return x.WithElementType(body.result()->element_type());
}

Shape InferSort(const ShapeCheck& check) {
  check.RequireAtLeastOperands(1);
  check.RequireCalled(1);
  const Shape& x = check.operand(0);
  check.RequireDimension(check.as<SortAttributes>().dimension, x.rank(), "dimension");
  std::vector<Shape> parameters, results;
  for (const Shape* shape : check.operands) {
    check.Require(SameDimensions(shape->dimensions(), x.dimensions()),
                  "all operands must have the same dimensions");
    parameters.insert(parameters.end(), 2, Shape::Scalar(shape->element_type()));
    results.push_back(*shape);
  }
  check.RequireParameters(*check.called[0], parameters, "its comparator");
  check.RequireResults(*check.called[0], {Shape::Scalar(ElementType::kPred)}, "its comparator");
  return OneOrTuple(std::move(results));
}

}  // namespace

Shape InferReduction(const ShapeCheck& check) {
  check.RequireArrays();
  switch (check.opcode) {
    case Opcode::kReduce:
      return InferReduce(check);
    case Opcode::kReduceWindow:
      return InferReduceWindow(check);
    case Opcode::kSelectAndScatter:
      return InferSelectAndScatter(check);
    case Opcode::kMap:
      return InferMap(check);
    default:
      return InferSort(check);
  }
}

}  // namespace hlo
