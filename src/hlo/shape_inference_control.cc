// Shapes of leaves, tuples, calls and control flow.
#include "hlo/shape_check.h"

namespace hlo {
namespace {

std::vector<Shape> OperandShapes(const ShapeCheck& check, size_t first = 0) {
  std::vector<Shape> shapes;
  for (size_t i = first; i < check.operands.size(); ++i) shapes.push_back(check.operand(i));
  return shapes;
}

Shape InferCall(const ShapeCheck& check) {
  check.RequireCalled(1);
  check.RequireParameters(*check.called[0], OperandShapes(check), "the callee");
  return OneOrTuple(ResultShapes(*check.called[0]));
}

// if and case: the first operand chooses, the others go to every branch.
Shape InferBranches(const ShapeCheck& check) {
  check.RequireAtLeastOperands(1);
  const Shape& choice = check.operand(0);
  if (check.opcode == Opcode::kIf) {
    check.RequireCalled(2);
    check.Require(choice == Shape::Scalar(ElementType::kPred), "the predicate must be pred[]");
  } else {
    check.Require(!check.called.empty(), "it needs at least one branch");
    check.Require(choice == Shape::Scalar(ElementType::kS32), "the index must be s32[]");
  }
  std::vector<Shape> parameters = OperandShapes(check, 1);
  std::vector<Shape> results = ResultShapes(*check.called[0]);
  for (const Computation* branch : check.called) {
    check.RequireParameters(*branch, parameters, "branch");
    check.RequireResults(*branch, results, "branch");
  }
  return OneOrTuple(std::move(results));
}

Shape InferWhile(const ShapeCheck& check) {
  check.RequireCalled(2);
  std::vector<Shape> shapes = OperandShapes(check);
  check.RequireParameters(*check.called[0], shapes, "the condition");
  check.RequireResults(*check.called[0], {Shape::Scalar(ElementType::kPred)}, "the condition");
  check.RequireParameters(*check.called[1], shapes, "the body");
  check.RequireResults(*check.called[1], shapes, "the body");
  return OneOrTuple(std::move(shapes));
}

Shape InferGetTupleElement(const ShapeCheck& check) {
  check.RequireOperands(1);
  check.Require(check.operand(0).is_tuple(), "its operand must be a tuple");
  const auto& elements = check.operand(0).tuple_shapes();
  int64_t index = check.as<TupleIndexAttributes>().index;
  check.RequireDimension(index, static_cast<int64_t>(elements.size()), "index");
  return elements[index];
}

Shape InferConstant(const ShapeCheck& check) {
  check.RequireOperands(0);
  const Shape& shape = check.as<ConstantAttributes>().value.shape();
  check.Require(shape.is_array(), "its value must be a tensor");
  return shape;
}

Shape InferParameter(const ShapeCheck& check) {
  check.RequireOperands(0);
  check.Require(check.as<ParameterAttributes>().number >= 0, "its number must not be negative");
  return check.RequireGiven();
}

Shape InferCustomCall(const ShapeCheck& check) {
  const auto& call = check.as<CustomCallAttributes>();
  const Shape& given = check.RequireGiven();
  for (const OutputOperandAlias& alias : call.output_operand_aliases) {
    check.RequireDimension(alias.operand_index, static_cast<int64_t>(check.operands.size()),
                           "the operand of an alias");
  }
  return given;
}

Shape InferAfterAll(const ShapeCheck& check) {
  for (const Shape* shape : check.operands) {
    check.Require(shape->is_token(), "its operands must be tokens");
  }
  return Shape::Token();
}

}  // namespace

Shape InferControl(const ShapeCheck& check) {
  switch (check.opcode) {
    case Opcode::kAfterAll:
      return InferAfterAll(check);
    case Opcode::kCall:
    case Opcode::kComposite:
      return InferCall(check);
    case Opcode::kCase:
    case Opcode::kIf:
      return InferBranches(check);
    case Opcode::kConstant:
      return InferConstant(check);
    case Opcode::kCustomCall:
      return InferCustomCall(check);
    case Opcode::kGetTupleElement:
      return InferGetTupleElement(check);
    case Opcode::kOptimizationBarrier:
      return OneOrTuple(OperandShapes(check));
    case Opcode::kParameter:
      return InferParameter(check);
    case Opcode::kTuple:
      return Shape::Tuple(OperandShapes(check));
    default:
      return InferWhile(check);
  }
}

}  // namespace hlo
