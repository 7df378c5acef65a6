#include "aten/broadcast.h"

#include <algorithm>

#include "aten/refuse.h"
#include "hlo/error.h"

namespace torch_xla {
namespace {

// The first of the sizes that face each other which differ and are not 1, counted from the end (the
// last is 1), or 0.
size_t FirstMismatch(const Dimensions& a, const Dimensions& b) {
  for (size_t back = std::min(a.size(), b.size()); back > 0; --back) {
    const int64_t x = a[a.size() - back], y = b[b.size() - back];
    if (x != y && x != 1 && y != 1) return back;
  }
  return 0;
}

// Throws of the first two operands that do not stretch to a common shape.
void ExplainShapes(const Values& values, const std::string& eager) {
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const Dimensions &a = values[j]->dimensions(), &b = values[i]->dimensions();
      const size_t back = FirstMismatch(a, b);
      if (back == 0) continue;
      const std::string first = values[j]->shape().ToString(),
                        second = values[i]->shape().ToString();
      const size_t in_first = a.size() - back, in_second = b.size() - back;
      Refuse(eager, "Shapes are not compatible for broadcasting: ", first, " vs. ", second,
             ". Expected dimension ", in_first, " of shape ", first, " (", a[in_first],
             ") to match dimension ", in_second, " of shape ", second, " (", b[in_second],
             "). Either that or that any of them is either 1 or unbounded. Try reshaping one of "
             "the tensors to match the other.");
    }
  }
}

}  // namespace

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

Dimensions ElementwiseDimensions(const Values& xs) {
  try {
    return BroadcastDimensions(xs);
  } catch (const hlo::Error& error) {
    ExplainShapes(xs, error.what());
    throw;
  }
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
