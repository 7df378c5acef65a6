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

void Generator::ElementLoop() {
  if (depth_ >= kMostDepth) return;
  const Dimensions space = Any()->dimensions();
  Values initial = {Like(Shape(ElementType::kPred, space)), Like(Shape(ElementType::kS32, space))};
  for (int64_t i = 0, count = 1 + bytes_.Below(3); i < count; ++i) {
    // Among them scalars, which are the same for all elements.
    const ElementType type = bytes_.Chance(160) ? AnyFloat() : AnyType();
    initial.push_back(Like(i > 0 && bytes_.Chance(60) ? Shape::Scalar(type) : Shape(type, space)));
  }
  // At most so many turns.
  Value most = b_.Full(initial[1]->shape(), int64_t{6});
  initial[1] = b_.Minimum(initial[1], most);
  const std::vector<Shape> shapes = ShapesOf(initial);
  Dimensions all(space.size());
  std::iota(all.begin(), all.end(), 0);
  Computation* condition = b_.Region("any", shapes, [&](Builder& r, const Values& p) {
    return Values{r.Reduce(Opcode::kOr, p[0], all)};
  });
  Computation* body = b_.Region("turn", shapes, [&](Builder& r, const Values& p) {
    Values pool = p;
    for (Value& value : pool) {
      if (value->shape().rank() == 0) value = r.BroadcastInDim(value, space, {});
    }
    Generator generator(bytes_, r, pool, depth_ + 1);
    generator.GrowElementwise(1 + bytes_.Below(8));
    Values next = {r.And(p[0], r.Gt(p[1], r.Zeros(p[1]->shape()))),
                   r.Select(p[0], r.Subtract(p[1], r.Full(p[1]->shape(), int64_t{1})), p[1])};
    // Now and then an element's turns end by what it has come to.
    if (bytes_.Chance(128)) next[0] = r.And(next[0], generator.Like(p[0]->shape()));
    for (size_t i = 2; i < p.size(); ++i) {
      const bool is_invariant = p[i]->shape() != Shape(p[i]->element_type(), space);
      next.push_back(is_invariant ? p[i] : r.Select(p[0], generator.Like(p[i]->shape()), p[i]));
    }
    return next;
  });
  Value loop = b_.While(initial, condition, body);
  if (bytes_.Chance(40)) return Push(loop);
  // Loops become kernels whose last arrays alone are read.
  Push(b_.GetTupleElement(loop, 1 + bytes_.Below(2)));
}

void Generator::LoopOverRows() {
  if (depth_ >= kMostDepth) return;
  Value rows = Any();
  const int64_t rank = rows->shape().rank();
  if (rank == 0 || rows->dimensions()[0] == 0 || rows->dimensions()[0] > 9) return;
  const int64_t count = rows->dimensions()[0];
  Dimensions sizes = rows->dimensions();
  sizes[0] = 1;
  const Shape row = rows->shape().WithDimensions(sizes);
  const Values initial = {b_.ConstantScalar(ElementType::kS32, int64_t{0}), rows, Like(row),
                          Like(rows->shape())};
  const std::vector<Shape> shapes = ShapesOf(initial);
  Computation* condition = b_.Region("rows_left", shapes, [&](Builder& r, const Values& p) {
    return Values{r.Lt(p[0], r.ConstantScalar(ElementType::kS32, count))};
  });
  const bool writes_what_it_reads = bytes_.Chance(100);
  Computation* body = b_.Region("row", shapes, [&](Builder& r, const Values& p) {
    Values starts(rank, r.ConstantScalar(ElementType::kS32, int64_t{0}));
    starts[0] = p[0];
    Generator generator(bytes_, r, {p[2], r.DynamicSlice(p[1], starts, sizes)}, depth_ + 1);
    generator.Grow(1 + bytes_.Below(6));
    if (bytes_.Chance(60)) generator.Try(&Generator::Collective);
    Value carried = generator.Like(row);
    Value made = generator.Like(row);
    Value written = r.DynamicUpdateSlice(writes_what_it_reads ? p[1] : p[3], made, starts);
    Value one = r.Add(p[0], r.ConstantScalar(ElementType::kS32, int64_t{1}));
    if (writes_what_it_reads) return Values{one, written, carried, p[3]};
    return Values{one, p[1], carried, written};
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
