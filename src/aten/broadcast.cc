#include "aten/broadcast.h"

#include <algorithm>

namespace torch_xla {

Dimensions BroadcastDimensions(const Dimensions& a, const Dimensions& b) {
  Dimensions result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      throw hlo::Error("The size of tensor a (" + std::to_string(x) +
                       ") must match the size of tensor b (" + std::to_string(y) +
                       ") at non-singleton dimension " + std::to_string(result.size() - 1 - i));
    }
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

Dimensions BroadcastDimensions(const Values& xs) {
  Dimensions result;
  for (Value x : xs) result = BroadcastDimensions(result, x->dimensions());
  return result;
}

std::pair<Value, Value> Broadcast(Builder& b, Value x, Value y) {
  Dimensions dimensions = BroadcastDimensions(x->dimensions(), y->dimensions());
  return {b.BroadcastTo(x, dimensions), b.BroadcastTo(y, dimensions)};
}

void BroadcastAll(Builder& b, Values& xs) {
  Dimensions dimensions = BroadcastDimensions(xs);
  for (Value& x : xs) x = b.BroadcastTo(x, dimensions);
}

}  // namespace torch_xla
