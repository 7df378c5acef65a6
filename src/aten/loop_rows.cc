#include "aten/loop_rows.h"

namespace torch_xla {
namespace {

std::vector<Value> StartsAt(Builder& b, Value index, int64_t rank) {
  std::vector<Value> starts(rank, b.ConstantScalar(ElementType::kS64, int64_t{0}));
  starts[0] = index;
  return starts;
}

}  // namespace

Value TakeRow(Builder& b, Value x, Value index) {
  Dimensions sizes = x->dimensions();
  sizes[0] = 1;
  Value row = b.DynamicSlice(x, StartsAt(b, index, x->shape().rank()), sizes);
  return b.Reshape(row, Dimensions(sizes.begin() + 1, sizes.end()));
}

Value PutRow(Builder& b, Value x, Value row, Value index) {
  Dimensions sizes = row->dimensions();
  sizes.insert(sizes.begin(), 1);
  return b.DynamicUpdateSlice(x, b.Reshape(row, sizes), StartsAt(b, index, x->shape().rank()));
}

std::vector<Shape> ShapesOf(std::span<const Value> values) {
  std::vector<Shape> shapes;
  for (Value value : values) shapes.push_back(value->shape());
  return shapes;
}

}  // namespace torch_xla
