#include "aten/iteration.h"

#include "aten/dimension.h"

namespace torch_xla {

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
    Value number = p[0], changes = nullptr;
    Values state(p.begin() + 2, p.end());
    for (int i = 0; i < iteration.steps_at_a_time; ++i) {
      Values next = step(r, number, state);
      changes = next[0];
      state.assign(next.begin() + 1, next.end());
      number = r.Add(number, ScalarLike(r, number, 1));
    }
    Values result = {number,
                     r.Reduce(Opcode::kOr, changes, AllDimensions(changes->shape().rank()))};
    result.insert(result.end(), state.begin(), state.end());
    return result;
  });
  Value loop = b.While(carried, condition, body);
  Values result;
  for (size_t i = 2; i < carried.size(); ++i) {
    result.push_back(b.GetTupleElement(loop, static_cast<int64_t>(i)));
  }
  return result;
}

}  // namespace torch_xla
