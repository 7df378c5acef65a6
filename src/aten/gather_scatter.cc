// One element for each index: gather and take, and their counterparts scatter and put.
#include <cstdint>
#include <string>

#include "aten/indexing.h"
#include "aten/op.h"
#include "aten/value_check.h"

namespace torch_xla {
namespace {

// --- Along a dimension

// Of x's positions along the dimension, for the operators that take one of each element.
void CheckPositions(Builder& b, Value x, Value index, int64_t dimension) {
  const int64_t size = SizeAlong(x, dimension);
  CheckBounds(b, index, Positions(size), OutOfBounds(kRuntimeError, dimension, size));
}

Value GatherOperator(Builder& b, Value x, Dimension dimension, Value index, bool sparse_gradient) {
  CheckPositions(b, x, index, dimension);
  Dimensions shape = index->dimensions();
  Value result = GatherAlong(b, AtLeast1d(b, x), AtLeast1d(b, index), dimension);
  return b.Reshape(result, shape);
}

// The part of src that the index reaches. An empty index reaches none, whatever its rank.
Value MatchIndex(Builder& b, Value src, Value index) {
  if (index->shape().num_elements() == 0) return src;
  if (index->shape().rank() != src->shape().rank()) {
    throw hlo::Error(
        "Index tensor must have the same number of dimensions as src tensor, but got " +
        index->shape().ToString() + " and " + src->shape().ToString());
  }
  Dimensions start(src->dimensions().size(), 0), one(start.size(), 1);
  for (size_t d = 0; d < start.size(); ++d) {
    if (index->shape().dimension(d) > src->shape().dimension(d)) {
      throw hlo::Error("Expected index " + hlo::ToString(index->dimensions()) +
                       " to be no larger than src " + hlo::ToString(src->dimensions()));
    }
  }
  return b.Slice(src, start, index->dimensions(), one);
}

// The combiner: a computation, or the opcode of a reduction.
template <typename Combiner>
Value ScatterWith(Builder& b, Value x, int64_t dimension, Value index, Value updates,
                  Combiner combiner) {
  Dimensions shape = x->dimensions();
  index = AtLeast1d(b, index);
  Value result = ScatterAlong(b, AtLeast1d(b, x), index, updates, dimension, combiner);
  return b.Reshape(result, shape);
}

Value ScatterSource(Builder& b, Value x, Dimension dimension, Value index, Value src) {
  CheckPositions(b, x, index, dimension);
  Value updates = MatchIndex(b, AtLeast1d(b, src), AtLeast1d(b, index));
  return ScatterWith(b, x, dimension, index, updates, Overwrite(b, x->element_type()));
}
Value ScatterValue(Builder& b, Value x, Dimension dimension, Value index, FittingScalar value) {
  CheckPositions(b, x, index, dimension);
  Value updates = Splat(b, b.Convert(value, x->element_type()), AtLeast1d(b, index)->dimensions());
  return ScatterWith(b, x, dimension, index, updates, Overwrite(b, x->element_type()));
}

Value ScatterAdd(Builder& b, Value x, Dimension dimension, Value index, Value src) {
  CheckPositions(b, x, index, dimension);
  Value updates = MatchIndex(b, AtLeast1d(b, src), AtLeast1d(b, index));
  return ScatterWith(b, x, dimension, index, updates, Opcode::kAdd);
}

// scatter has words of its own, which scatter_reduce does not know.
Opcode ScatterCombiner(const std::string& reduce) {
  if (reduce == "add") return Opcode::kAdd;
  if (reduce == "multiply") return Opcode::kMultiply;
  throw hlo::Error("reduce argument must be either add or multiply.");
}

Value ScatterReduceSource(Builder& b, Value x, Dimension dimension, Value index, Value src,
                          std::string reduce) {
  CheckPositions(b, x, index, dimension);
  Value updates = MatchIndex(b, AtLeast1d(b, src), AtLeast1d(b, index));
  return ScatterWith(b, x, dimension, index, updates, ScatterCombiner(reduce));
}
Value ScatterReduceValue(Builder& b, Value x, Dimension dimension, Value index, FittingScalar value,
                         std::string reduce) {
  CheckPositions(b, x, index, dimension);
  Value updates = Splat(b, b.Convert(value, x->element_type()), AtLeast1d(b, index)->dimensions());
  return ScatterWith(b, x, dimension, index, updates, ScatterCombiner(reduce));
}

Value ScatterReduceTwo(Builder& b, Value x, Dimension dimension, Value index, Value src,
                       std::string reduce, bool include_self) {
  CheckPositions(b, x, index, dimension);
  Value updates = MatchIndex(b, AtLeast1d(b, src), AtLeast1d(b, index));
  const auto scatter = [&](Value into, Value values, Opcode reduction) {
    return ScatterWith(b, into, dimension, index, values, reduction);
  };
  return ReduceInto(b, x, updates, reduce, include_self, scatter);
}

// --- Of the flattened tensor

void CheckTaken(Builder& b, Value index, int64_t size) {
  const std::string words = "out of range: tried to access index {} on a tensor of " +
                            std::to_string(size) + " elements.";
  CheckBounds(b, index, WrappedPositions(size), {kIndexError, words});
}
Value Take(Builder& b, Value x, Value index) {
  RequireIndexType(index, false, "take");
  int64_t size = x->shape().num_elements();
  CheckTaken(b, index, size);
  return TakeRows(b, b.Reshape(x, {size}), WrapIndex(b, index, size));
}
Value Put(Builder& b, Value x, Value index, Value source, bool accumulate) {
  RequireIndexType(index, false, "put");
  int64_t size = x->shape().num_elements(), count = index->shape().num_elements();
  if (count == 0) return x;
  CheckTaken(b, index, size);
  Value flat = b.Reshape(x, {size}), flat_index = b.Reshape(WrapIndex(b, index, size), {count});
  source = b.Reshape(source, {count});
  Value result =
      accumulate ? ScatterSlices(b, flat, flat_index, source, 0, Opcode::kAdd)
                 : ScatterSlices(b, flat, flat_index, source, 0, Overwrite(b, x->element_type()));
  return b.Reshape(result, x->dimensions());
}

}  // namespace

// Where nothing is selected, eager does not look at the number.
at::Tensor ScatterValueOf(const at::Tensor& x, int64_t dimension, const at::Tensor& index,
                          const at::Scalar& value) {
  return Record<&ScatterValue>(x, dimension, index, index.numel() == 0 ? at::Scalar(0) : value);
}
at::Tensor ScatterReduceValueOf(const at::Tensor& x, int64_t dimension, const at::Tensor& index,
                                const at::Scalar& value, std::string_view reduce) {
  return Record<&ScatterReduceValue>(x, dimension, index,
                                     index.numel() == 0 ? at::Scalar(0) : value, reduce);
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  Register<&GatherOperator>(m, "gather");
  Register<&ScatterSource>(m, "scatter.src");
  Register<&ScatterValue>(m, "scatter.value", &ScatterValueOf);
  Register<&ScatterAdd>(m, "scatter_add");
  Register<&ScatterReduceSource>(m, "scatter.reduce");
  Register<&ScatterReduceValue>(m, "scatter.value_reduce", &ScatterReduceValueOf);
  Register<&ScatterReduceTwo>(m, "scatter_reduce.two");
  Register<&Take>(m, "take");
  Register<&Put>(m, "put");
}

}  // namespace torch_xla
