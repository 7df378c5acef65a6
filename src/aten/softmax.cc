// Softmax and its logarithm, as plain reductions and element-wise steps that the engine fuses.
#include "aten/dimension.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"

namespace torch_xla {
namespace {

// x along one dimension, with the broadcast back of what a reduction along it gives.
struct Row {
  Builder& b;
  Dimensions full, reduced;
  Row(Builder& b, Value x, int64_t dimension) : b(b), full(x->dimensions()) {
    const int64_t wrapped = WrapDimension(dimension, x->shape().rank());
    if (!full.empty()) reduced = {wrapped};
  }
  Value Spread(Value value) const { return BroadcastReduced(b, value, reduced, full); }
  Value SumSpread(Value x) const { return Spread(Sum(b, x, reduced)); }
};

Value Shifted(const Row& row, Value x) {
  return row.b.Subtract(x, row.Spread(Max(row.b, x, row.reduced)));
}

ElementType WidenedType(Value x, bool half_to_float) {
  return half_to_float ? AccumulationType(x->element_type()) : x->element_type();
}

// Of no elements eager takes any type.
Value Softmax(Builder& b, Value x, int64_t dimension, bool half_to_float) {
  ElementType type = WidenedType(x, half_to_float);
  if (x->shape().num_elements() == 0) return b.Convert(x, type);
  x = ToAccumulation(b, x);
  Row row(b, x, dimension);
  Value exponential = b.Exp(Shifted(row, x));
  return b.Convert(b.Divide(exponential, row.SumSpread(exponential)), type);
}

Value LogSoftmax(Builder& b, Value x, int64_t dimension, bool half_to_float) {
  ElementType type = WidenedType(x, half_to_float);
  if (x->shape().num_elements() == 0) return b.Convert(x, type);
  x = ToAccumulation(b, x);
  Row row(b, x, dimension);
  Value shifted = Shifted(row, x);
  Value log_sum = b.Log(Sum(b, b.Exp(shifted), row.reduced));
  return b.Convert(b.Subtract(shifted, row.Spread(log_sum)), type);
}

// A row that is wholly masked (-inf) gives zeros rather than NaN.
Value SafeSoftmax(Builder& b, Value x, int64_t dimension, std::optional<ElementType> dtype) {
  if (dtype) x = b.Convert(x, *dtype);
  Row row(b, x, dimension);
  Value largest = Max(b, x, row.reduced);
  Value masked = b.Eq(largest, Like(b, largest, -kInfinity));
  return b.Select(row.Spread(masked), Like(b, x, 0), Softmax(b, x, dimension, false));
}

Value SoftmaxBackward(Builder& b, Value gradient, Value y, int64_t dimension, ElementType type) {
  gradient = ToAccumulation(b, gradient);
  y = ToAccumulation(b, y);
  Row row(b, y, dimension);
  Value product = b.Multiply(gradient, y);
  Value result = b.Subtract(product, b.Multiply(y, row.SumSpread(product)));
  return b.Convert(result, type);
}

Value LogSoftmaxBackward(Builder& b, Value gradient, Value y, int64_t dimension, ElementType type) {
  gradient = ToAccumulation(b, gradient);
  y = ToAccumulation(b, y);
  Row row(b, y, dimension);
  Value result = b.Subtract(gradient, b.Multiply(b.Exp(y), row.SumSpread(gradient)));
  return b.Convert(result, type);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  Register<&Softmax>(m, "_softmax");
  Register<&LogSoftmax>(m, "_log_softmax");
  Register<&SafeSoftmax>(m, "_safe_softmax");
  Register<&SoftmaxBackward>(m, "_softmax_backward_data");
  Register<&LogSoftmaxBackward>(m, "_log_softmax_backward_data");
}

}  // namespace torch_xla
