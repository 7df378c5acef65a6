#include "aten/iteration.h"

#include "aten/dimension.h"

namespace torch_xla {
namespace {

// Of a loop, from its number `first` on.
Values ResultsFrom(Builder& b, Value loop, size_t first) {
  Values results;
  for (size_t i = first; i < loop->operand_count(); ++i) {
    results.push_back(b.GetTupleElement(loop, static_cast<int64_t>(i)));
  }
  return results;
}

}  // namespace

Values UntilSettled(Builder& b, const Iteration& iteration, const Values& start,
                    const IterationStep& step) {
  Value begins = iteration.begins != nullptr ? iteration.begins
                                             : b.ConstantScalar(ElementType::kPred, int64_t{1});
  Values carried = {b.ConstantScalar(ElementType::kF64, 1.0), begins};
  carried.insert(carried.end(), start.begin(), start.end());
  std::vector<Shape> shapes;
  for (Value v : carried) shapes.push_back(v->shape());
  auto* condition = b.Region(iteration.name, shapes, [&](Builder& r, const Values& p) -> Values {
    return {r.And(p[1], r.Le(p[0], ScalarLike(r, p[0], iteration.most_steps)))};
  });
  auto* body = b.Region(iteration.name, shapes, [&](Builder& r, const Values& p) -> Values {
    Values next = step(r, p[0], {p.begin() + 2, p.end()});
    Value changes = next[0];
    next[0] = r.Reduce(Opcode::kOr, changes, AllDimensions(changes->shape().rank()));
    next.insert(next.begin(), r.Add(p[0], ScalarLike(r, p[0], 1)));
    return next;
  });
  return ResultsFrom(b, b.While(carried, condition, body), 2);
}

Values EachWhile(Builder& b, const char* name, const Values& start,
                 const std::function<Value(Builder& b, const Values& state)>& goes_on,
                 const std::function<Values(Builder& b, const Values& state)>& step) {
  Values carried = {goes_on(b, start)};
  carried.insert(carried.end(), start.begin(), start.end());
  std::vector<Shape> shapes;
  for (Value v : carried) shapes.push_back(v->shape());
  auto* condition = b.Region(name, shapes, [&](Builder& r, const Values& p) -> Values {
    return {r.Reduce(Opcode::kOr, p[0], AllDimensions(p[0]->shape().rank()))};
  });
  auto* body = b.Region(name, shapes, [&](Builder& r, const Values& p) -> Values {
    Values next = step(r, {p.begin() + 1, p.end()});
    Value left = r.And(p[0], goes_on(r, next));
    for (size_t i = 0; i < next.size(); ++i) {
      if (next[i] != p[i + 1]) next[i] = r.Select(p[0], next[i], p[i + 1]);
    }
    next.insert(next.begin(), left);
    return next;
  });
  return ResultsFrom(b, b.While(carried, condition, body), 1);
}

}  // namespace torch_xla
