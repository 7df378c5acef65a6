// EmbeddingBag: rows of a table, summed, averaged or maximised bag by bag.
#include "aten/elementwise.h"
#include "aten/indexing.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "aten/refuse.h"
#include "aten/sort.h"
#include "aten/value_check.h"

namespace torch_xla {
namespace {

enum BagMode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

Value OneForEach(Builder& b, Value like) { return b.Full(like->shape(), int64_t{1}); }

// Slices [n, …] added into `count` rows.
Value AddIntoRows(Builder& b, Value index, Value slices, int64_t count) {
  Dimensions rows = slices->dimensions();
  rows[0] = count;
  Value zeros = b.Zeros(Shape(slices->element_type(), rows));
  return ScatterSlices(b, zeros, index, slices, 0, Opcode::kAdd);
}

// The bag of each index: how many bags begin at or before it, less one.
Value BagOf(Builder& b, Value offsets, int64_t count) {
  Value begins = AddIntoRows(b, offsets, OneForEach(b, offsets), count);
  if (count == 0) return begins;
  return b.Subtract(CumulativeSum(b, begins, 0), OneForEach(b, begins));
}

// How many indices each bag has where all indices count: bags lie one after the other.
Value SizesBetween(Builder& b, Value offsets, int64_t count) {
  const int64_t bags = offsets->shape().dimension(0);
  Value end = b.Full(Shape(ElementType::kS64, {1}), count);
  Value ends = b.Concatenate({b.SliceInDim(offsets, 0, 1, bags), end}, 0);
  return b.Subtract(ends, offsets);
}

// Which indices count: all but the padding, and those behind the last offset, which are of no bag.
Value Counted(Builder& b, Value indices, int64_t padding_index, Value bag, int64_t bags) {
  Value has_bag = b.Lt(bag, b.Full(bag->shape(), bags));
  return b.And(b.Ne(indices, b.Full(indices->shape(), padding_index)), has_bag);
}

Value OverColumns(Builder& b, Value x, int64_t columns) {
  return AlongDimension(b, x, {x->shape().dimension(0), columns}, 0);
}

struct Maxima {
  Value values, rows;  // [bags, width]: the maximum, and the row of the table that it came from
};

Maxima MaximaOfBags(Builder& b, Value taken, Value indices, Value bag, Value counted,
                    Value is_empty) {
  ElementType type = taken->element_type();
  int64_t width = taken->shape().dimension(1), count = taken->shape().dimension(0);
  int64_t bags = is_empty->shape().dimension(0);
  Value lowest = b.Constant(hlo::IdentityLiteral(Opcode::kMaximum, type));
  Value some = OverColumns(b, counted, width);
  Value start = Splat(b, lowest, {bags, width});
  Value maxima =
      ScatterSlices(b, start, bag, b.Select(some, taken, Splat(b, lowest, taken->dimensions())), 0,
                    b.ScalarCombiner(Opcode::kMaximum, type));
  // The first position that has the maximum.
  Value hit = b.And(some, b.Eq(taken, TakeRows(b, maxima, bag)));
  Value position = Iota(b, taken->dimensions(), 0);
  Value none = b.Full(position->shape(), count);
  Value first = ScatterSlices(b, b.Full(Shape(ElementType::kS64, {bags, width}), count), bag,
                              b.Select(hit, position, none), 0,
                              b.ScalarCombiner(Opcode::kMinimum, ElementType::kS64));
  if (count == 0) return {b.Zeros(maxima->shape()), b.Zeros(first->shape())};
  Value empty = OverColumns(b, is_empty, width);
  Value rows = b.Convert(TakeRows(b, indices, first), ElementType::kS64);
  return {ZeroUnless(b, b.Not(empty), maxima), ZeroUnless(b, b.Not(empty), rows)};
}

void CheckBags(Value weight, Value indices, Value offsets) {
  if (!IsFloatValue(weight)) {
    throw hlo::Error("Expected tensor for argument #1 'weight' to be of floats, but got " +
                     weight->shape().ToString());
  }
  auto is_index = [](Value x) {
    return x->element_type() == ElementType::kS64 || x->element_type() == ElementType::kS32;
  };
  if (!is_index(indices) || !is_index(offsets)) {
    throw hlo::Error(
        "embedding_bag(): expected indices and offsets of type int32 or int64, but got " +
        indices->shape().ToString() + " and " + offsets->shape().ToString());
  }
  if (weight->shape().rank() != 2 || indices->shape().rank() != 1 || offsets->shape().rank() != 1) {
    throw hlo::Error(
        "embedding_bag(): expected a matrix of weights and vectors of indices and offsets, but "
        "got " +
        weight->shape().ToString() + ", " + indices->shape().ToString() + " and " +
        offsets->shape().ToString());
  }
}

void CheckBagValues(Builder& b, Value indices, Value offsets, int64_t rows, int64_t mode) {
  const int64_t count = indices->shape().dimension(0), bags = offsets->shape().dimension(0);
  CheckBounds(
      b, indices, Positions(rows),
      {kRuntimeError,
       mode == kMax
           ? "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {}"
           : "Index of input takes value {} which is not in the valid range [0, " +
                 std::to_string(rows) + ")"});
  if (bags == 0) return;
  CheckBounds(
      b, b.SliceInDim(offsets, 0, 0, 1), {0, 1},
      {kRuntimeError,
       "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
       "position 0. However, got {}"});
  CheckBounds(b, b.SliceInDim(offsets, 0, bags - 1, bags), {0, count + 1},
              {kRuntimeError, "offsets[-1] can not be greater than input's length " +
                                  std::to_string(count) + " but got offsets[-1] of {}"});
  if (bags == 1 || !ChecksValues(b)) return;
  Value begins = b.SliceInDim(offsets, 0, 0, bags - 1), ends = b.SliceInDim(offsets, 0, 1, bags);
  CheckNone(b, b.Gt(begins, ends),
            {kRuntimeError, "embedding_bag: each bag has to begin where the one before ends"});
}

// The bags' values; each index's bag; how many indices each bag counts; for a maximum, the rows.
std::vector<Value> EmbeddingBag(Builder& b, Value weight, Value indices, Value offsets,
                                bool scale_by_frequency, int64_t mode, bool sparse,
                                std::optional<Value> scales, bool include_last_offset,
                                int64_t padding_index) {
  CheckBags(weight, indices, offsets);
  if (scales && mode != kSum) {
    throw hlo::Error("embedding_bag: per_sample_weights only supported with mode='sum'");
  }
  ElementType type = weight->element_type();
  if (scales && (*scales)->element_type() != type) {
    Refuse(c10::str("expected scalar type ", ToScalarType(type), " but found ",
                    ToScalarType((*scales)->element_type())),
           "embedding_bag: expected per_sample_weights to have the same type as weight");
  }
  int64_t width = weight->shape().dimension(1), count = indices->shape().dimension(0);
  int64_t bags = offsets->shape().dimension(0) - (include_last_offset ? 1 : 0);
  if (bags < 0) {
    throw hlo::Error("include_last_offset: number of offset should be at least 1");
  }
  indices = b.Convert(indices, ElementType::kS64);
  offsets = b.Convert(offsets, ElementType::kS64);
  CheckBagValues(b, indices, offsets, weight->shape().dimension(0), mode);
  Value bag = BagOf(b, offsets, count);
  if (bags == 0) {
    Value nothing = b.Zeros(Shape(ElementType::kS64, {0}));
    Value rows = mode == kMax ? b.Zeros(Shape(ElementType::kS64, {0, width})) : nothing;
    return {b.Zeros(Shape(type, {0, width})), bag, nothing, rows};
  }
  const bool all_count = padding_index < 0 && !include_last_offset;
  Value counted = Counted(b, indices, padding_index, bag, bags);
  Value sizes = all_count ? SizesBetween(b, offsets, count)
                          : AddIntoRows(b, bag, b.Convert(counted, ElementType::kS64), bags);
  Value taken = ToAccumulation(b, TakeRows(b, weight, indices));
  if (mode == kMax) {
    Maxima maxima =
        MaximaOfBags(b, taken, indices, bag, counted, b.Eq(sizes, b.Zeros(sizes->shape())));
    return {b.Convert(maxima.values, type), bag, sizes, maxima.rows};
  }
  if (scales) {
    Value factor = b.Convert(*scales, taken->element_type());
    taken = b.Multiply(taken, OverColumns(b, factor, width));
  }
  if (!all_count) taken = ZeroUnless(b, OverColumns(b, counted, width), taken);
  Value sums = AddIntoRows(b, bag, taken, bags);
  if (mode == kMean) {
    Value divisor = b.Maximum(sizes, OneForEach(b, sizes));
    sums = b.Divide(sums, OverColumns(b, b.Convert(divisor, sums->element_type()), width));
  }
  return {b.Convert(sums, type), bag, sizes, b.Zeros(Shape(ElementType::kS64, {bags}))};
}

// Every gradient goes to the rows that its maxima came from.
Value MaximumBackward(Builder& b, Value gradient, Value sizes, Value rows, int64_t table_rows) {
  int64_t width = gradient->shape().dimension(1);
  Value is_filled = b.Gt(sizes, b.Zeros(sizes->shape()));
  gradient = ZeroUnless(b, OverColumns(b, is_filled, width), gradient);
  Value zeros = b.Zeros(Shape(gradient->element_type(), {table_rows, width}));
  return ScatterAlong(b, zeros, rows, gradient, 0, Opcode::kAdd);
}

Value EmbeddingBagDenseBackward(Builder& b, Value gradient, Value indices, Value bag, Value sizes,
                                Value rows, int64_t table_rows, bool scale_by_frequency,
                                int64_t mode, std::optional<Value> scales, int64_t padding_index) {
  int64_t width = gradient->shape().dimension(1), bags = gradient->shape().dimension(0);
  if (bags == 0) return b.Zeros(Shape(gradient->element_type(), {table_rows, width}));
  if (mode == kMax) return MaximumBackward(b, gradient, sizes, rows, table_rows);
  ElementType type = AccumulationType(gradient->element_type());
  indices = b.Convert(indices, ElementType::kS64);
  Value spread = b.Convert(TakeRows(b, gradient, bag), type);
  Value counted = Counted(b, indices, padding_index, bag, bags);
  Value factor = b.Convert(counted, type);
  if (scales) factor = b.Multiply(factor, b.Convert(*scales, type));
  if (mode == kMean) {
    Value size = TakeRows(b, b.Maximum(sizes, OneForEach(b, sizes)), bag);
    factor = b.Divide(factor, b.Convert(size, type));
  }
  if (scale_by_frequency) {
    Value frequency =
        TakeRows(b, AddIntoRows(b, indices, OneForEach(b, indices), table_rows), indices);
    factor = b.Divide(factor, b.Convert(frequency, type));
  }
  spread = b.Multiply(spread, OverColumns(b, factor, width));
  spread = ZeroUnless(b, OverColumns(b, counted, width), spread);
  return b.Convert(AddIntoRows(b, indices, spread, table_rows), gradient->element_type());
}

at::Tensor EmbeddingBagBackward(const at::Tensor& gradient, const at::Tensor& indices,
                                const at::Tensor& offsets, const at::Tensor& bag,
                                const at::Tensor& sizes, const at::Tensor& rows, int64_t table_rows,
                                bool scale_by_frequency, int64_t mode, bool sparse,
                                const std::optional<at::Tensor>& scales, int64_t padding_index) {
  if (sparse) {
    return at::_embedding_bag_sparse_backward(gradient, indices, offsets, bag, sizes, table_rows,
                                              scale_by_frequency, mode, scales, padding_index);
  }
  return Record<&EmbeddingBagDenseBackward>(gradient, indices, bag, sizes, rows, table_rows,
                                            scale_by_frequency, mode, scales, padding_index);
}

// Each index's row times its bag's gradient.
Value EmbeddingBagScalesBackward(Builder& b, Value gradient, Value weight, Value indices,
                                 Value offsets, Value bag, int64_t mode, int64_t padding_index) {
  ElementType type = gradient->element_type();
  const int64_t bags = gradient->shape().dimension(0);
  if (bags == 0) return b.Zeros(Shape(type, indices->dimensions()));
  Value spread = TakeRows(b, ToAccumulation(b, gradient), bag);
  Value taken = ToAccumulation(b, TakeRows(b, weight, indices));
  Value products = Sum(b, b.Multiply(spread, taken), {1});
  Value counted = Counted(b, indices, padding_index, bag, bags);
  return b.Convert(ZeroUnless(b, counted, products), type);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  auto forward = [](const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
                    bool scale_by_frequency, int64_t mode, bool sparse,
                    const std::optional<at::Tensor>& scales, bool include_last_offset,
                    int64_t padding_index) {
    return AsTuple<4>(Record<&EmbeddingBag>(weight, indices, offsets, scale_by_frequency, mode,
                                            sparse, scales, include_last_offset, padding_index));
  };
  m.impl("_embedding_bag", forward);
  m.impl("_embedding_bag_forward_only", forward);
  m.impl("_embedding_bag_backward", &EmbeddingBagBackward);
  Register<&EmbeddingBagDenseBackward>(m, "_embedding_bag_dense_backward");
  Register<&EmbeddingBagScalesBackward>(m, "_embedding_bag_per_sample_weights_backward");
  // torch's kernels check no index: out of range they write beyond their results.
  lazy::Op<&EmbeddingBagDenseBackward>::kind().eager_form = nullptr;
  lazy::Op<&EmbeddingBagScalesBackward>::kind().eager_form = nullptr;
}

}  // namespace torch_xla
