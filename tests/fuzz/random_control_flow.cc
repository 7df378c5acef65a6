// Control flow, to which some values of the pool are passed, calls, and what orders programs.
#include <algorithm>
#include <numeric>

#include "hlo/error.h"
#include "random_generator.h"

namespace fuzz {

Values Generator::Captured() {
  Values captured;
  for (int64_t i = 0, count = 1 + bytes_.Below(3); i < count; ++i) captured.push_back(Any());
  return captured;
}

std::vector<Shape> Generator::ShapesOf(const Values& values) {
  std::vector<Shape> shapes;
  for (Value value : values) shapes.push_back(value->shape());
  return shapes;
}

Computation* Generator::Body(const char* name, const std::vector<Shape>& parameters,
                             const std::vector<Shape>& results) {
  return b_.Region(name, parameters, [&](Builder& inner, const Values& values) {
    Generator generator(bytes_, inner, values, depth_ + 1);
    generator.Grow(bytes_.Below(6));
    Values made;
    for (const Shape& shape : results) made.push_back(generator.Like(shape));
    return made;
  });
}

void Generator::If() {
  if (depth_ >= kMostDepth) return;
  Values captured = Captured();
  const std::vector<Shape> results = {Any()->shape(), Any()->shape()};
  Computation* yes = Body("yes", ShapesOf(captured), results);
  Computation* no = Body("no", ShapesOf(captured), results);
  Push(b_.If(Like(Shape::Scalar(ElementType::kPred)), captured, yes, no));
}

void Generator::Case() {
  if (depth_ >= kMostDepth) return;
  Values captured = Captured();
  const std::vector<Shape> results = {Any()->shape()};
  std::vector<Computation*> branches;
  for (int64_t i = 0, count = 1 + bytes_.Below(3); i < count; ++i) {
    branches.push_back(Body("branch", ShapesOf(captured), results));
  }
  Push(b_.Case(Like(Shape::Scalar(ElementType::kS32)), captured, branches));
}

void Generator::While() {
  if (depth_ >= kMostDepth) return;
  const Shape counter = Shape::Scalar(ElementType::kS32);
  Values initial = Captured();
  initial.insert(initial.begin(), b_.ConstantScalar(ElementType::kS32, int64_t{0}));
  const std::vector<Shape> shapes = ShapesOf(initial);
  const int64_t trips = bytes_.Below(4);
  Computation* condition = b_.Region("condition", shapes, [&](Builder& r, const Values& p) {
    return Values{r.Lt(p[0], r.ConstantScalar(ElementType::kS32, trips))};
  });
  Computation* body = b_.Region("body", shapes, [&](Builder& r, const Values& p) {
    Generator generator(bytes_, r, p, depth_ + 1);
    generator.Grow(bytes_.Below(6));
    Values next = {r.Add(p[0], r.ConstantScalar(ElementType::kS32, int64_t{1}))};
    for (size_t i = 1; i < shapes.size(); ++i) next.push_back(generator.Like(shapes[i]));
    return next;
  });
  Push(b_.While(initial, condition, body));
}

void Generator::Call() {
  if (depth_ >= kMostDepth) return;
  Values captured = Captured();
  const Shape result = Any()->shape();
  Computation* callee = Body("callee", ShapesOf(captured), {result});
  if (bytes_.Chance(128)) return Push(b_.Call(callee, captured));
  hlo::CompositeAttributes attributes;
  attributes.name = "test.composite";
  Push(b_.Create(Opcode::kComposite, captured, attributes, {callee}, result));
}

void Generator::Map() {
  Value x = Any();
  Value y = Like(x->shape());
  const Shape scalar = Shape::Scalar(x->element_type());
  Computation* body = b_.Region("mapped", {scalar, scalar}, [&](Builder& r, const Values& p) {
    return Values{r.Maximum(r.Multiply(p[0], p[1]), r.Add(p[0], p[1]))};
  });
  Dimensions all(x->shape().rank());
  std::iota(all.begin(), all.end(), 0);
  Push(b_.Create(Opcode::kMap, {x, y}, hlo::DimensionsAttributes{all}, {body}));
}

void Generator::Collective() {
  Value x = Any();
  const ElementType type = x->element_type();
  Push(b_.Create(
      Opcode::kAllReduce, {x}, hlo::CollectiveAttributes{},
      {b_.ScalarCombiner(type == ElementType::kPred ? Opcode::kOr : Opcode::kAdd, type)}));
}

void Generator::Barrier() { Push(b_.OptimizationBarrier({Any(), Any()})); }

}  // namespace fuzz
