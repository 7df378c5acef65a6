// Attention written out in f32 or f64, for tests: what a composite of hlo/attention_composite.h is
// to compute.
#pragma once

#include <limits>
#include <vector>

#include "hlo/attention_composite.h"

namespace hlo::formula {

using Values = std::vector<Value>;

inline Value Wide(Builder& b, Value x) {
  return b.Convert(x,
                   x->element_type() == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32);
}

inline Value Contract(Builder& b, Value x, int64_t x_dimension, Value y, int64_t y_dimension) {
  return b.DotGeneral(x, y, {{0, 1}, {0, 1}, {x_dimension}, {y_dimension}, {}});
}

inline Value Repeat(Builder& b, Value x, int64_t heads) {
  Dimensions dimensions = x->dimensions();
  Dimensions repeated = {dimensions[0], dimensions[1], heads / dimensions[1], dimensions[2],
                         dimensions[3]};
  dimensions[1] = heads;
  return b.Reshape(b.BroadcastInDim(x, repeated, {0, 1, 3, 4}), dimensions);
}

inline Value SumGroups(Builder& b, Value x, int64_t heads) {
  const Dimensions& dimensions = x->dimensions();
  return b.Reduce(
      Opcode::kAdd,
      b.Reshape(x, {dimensions[0], heads, dimensions[1] / heads, dimensions[2], dimensions[3]}),
      {2});
}

inline Value AlongRows(Builder& b, Value x, Value like) {
  return b.BroadcastInDim(x, like->dimensions(), {0, 1, 2});
}

struct Weights {
  Value weights, log_sum;

  Weights(Builder& b, Value query, Value key, Value mask, const AttentionAttributes& attributes) {
    Value scores = Contract(b, query, 3, key, 3);
    scores = b.Multiply(scores, b.Full(scores->shape(), attributes.scale));
    if (mask != nullptr) {
      Dimensions to = {0, 1, 2, 3};
      to.erase(to.begin(), to.end() - static_cast<int64_t>(mask->shape().rank()));
      scores = b.Add(scores, b.BroadcastInDim(mask, scores->dimensions(), to));
    }
    const Value nothing = b.Full(scores->shape(), -std::numeric_limits<double>::infinity());
    if (attributes.is_causal) {
      const Shape positions(ElementType::kS32, scores->dimensions());
      scores = b.Select(b.Ge(b.Iota(positions, 2), b.Iota(positions, 3)), scores, nothing);
    }
    const Value largest = b.Reduce(Opcode::kMaximum, scores, {3});
    const Value exponential = b.Exp(b.Subtract(scores, AlongRows(b, largest, scores)));
    const Value sum = b.Reduce(Opcode::kAdd, exponential, {3});
    const Value masked =
        b.Eq(largest, b.Full(largest->shape(), -std::numeric_limits<double>::infinity()));
    weights = b.Select(AlongRows(b, masked, scores), b.Zeros(scores->shape()),
                       b.Divide(exponential, AlongRows(b, sum, scores)));
    log_sum = b.Select(masked, largest, b.Add(largest, b.Log(sum)));
  }
};

inline Values AttentionForward(Builder& b, const Values& x, const AttentionAttributes& attributes) {
  const int64_t heads = x[0]->dimensions()[1];
  const Weights w(b, Wide(b, x[0]), Repeat(b, Wide(b, x[1]), heads),
                  x.size() > 3 ? Wide(b, x[3]) : nullptr, attributes);
  const Value result = Contract(b, w.weights, 3, Repeat(b, Wide(b, x[2]), heads), 2);
  return {b.Convert(result, x[0]->element_type()), w.log_sum};
}

inline Values AttentionBackward(Builder& b, const Values& x,
                                const AttentionAttributes& attributes) {
  const int64_t heads = x[1]->dimensions()[1], key_heads = x[2]->dimensions()[1];
  const Value gradient = Wide(b, x[0]), query = Wide(b, x[1]);
  const Value key = Repeat(b, Wide(b, x[2]), heads), value = Repeat(b, Wide(b, x[3]), heads);
  const Weights w(b, query, key, x.size() > 6 ? Wide(b, x[6]) : nullptr, attributes);
  const Value drop = b.Reduce(Opcode::kAdd, b.Multiply(gradient, Wide(b, x[4])), {3});
  Value of_scores = b.Subtract(Contract(b, gradient, 3, value, 3), AlongRows(b, drop, w.weights));
  of_scores =
      b.Multiply(b.Multiply(w.weights, of_scores), b.Full(of_scores->shape(), attributes.scale));
  const ElementType type = x[1]->element_type();
  return {b.Convert(Contract(b, of_scores, 3, key, 2), type),
          b.Convert(SumGroups(b, Contract(b, of_scores, 2, query, 2), key_heads), type),
          b.Convert(SumGroups(b, Contract(b, w.weights, 2, gradient, 2), key_heads), type)};
}

}  // namespace hlo::formula
