// segment_reduce: consecutive elements along an axis, reduced segment by segment. Each element
// finds its segment by the segments' ends, and is combined into it.
#include <limits>

#include "aten/constant.h"
#include "aten/dimension.h"
#include "aten/elementwise.h"
#include "aten/indexing.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "aten/sort.h"
#include "aten/value_check.h"

namespace torch_xla {
namespace {

using OptionalConstant = std::optional<FittingConstant>;

struct Segments {
  int64_t axis;
  Dimensions data, reduced;  // shapes; the axis counts elements in one and segments in the other
  Value index;               // [batch…, elements]: each element's segment, out of range for none
  Value lengths;             // [batch…, segments]
};

// `elements` combined into `start` along the index' last dimension; those that would be outside are
// dropped.
Value CombineAt(Builder& b, Value start, Value index, Value elements, Opcode combiner) {
  const int64_t axis = index->shape().rank() - 1;
  hlo::ScatterAttributes attributes;
  for (int64_t d = 0; d < axis; ++d) attributes.input_batching_dims.push_back(d);
  attributes.scatter_indices_batching_dims = attributes.input_batching_dims;
  for (int64_t d = axis + 1; d < start->shape().rank(); ++d) {
    attributes.update_window_dims.push_back(d);
  }
  attributes.inserted_window_dims = attributes.scatter_dims_to_operand_dims = {axis};
  attributes.index_vector_dim = axis + 1;
  Dimensions with_vector = index->dimensions();
  with_vector.push_back(1);
  return b.Scatter(start, b.Reshape(index, with_vector), elements,
                   b.ScalarCombiner(combiner, start->element_type()), attributes);
}

// How many of the segments' `places` each element is not in front of.
Value CountUpTo(Builder& b, Value places, const Dimensions& elements) {
  Value none = b.Zeros(Shape(ElementType::kS64, elements));
  Value ones = b.Full(places->shape(), int64_t{1});
  Value marks = CombineAt(b, none, places, ones, Opcode::kAdd);
  return CumulativeSum(b, marks, static_cast<int64_t>(elements.size()) - 1);
}

Segments MakeSegments(Builder& b, Value data, const OptionalValue& lengths,
                      const OptionalValue& offsets, int64_t axis) {
  if (!lengths && !offsets) {
    throw hlo::Error("segment_reduce(): Either lengths or offsets must be defined.");
  }
  Value given = lengths ? *lengths : *offsets;
  if (!hlo::IsInteger(given->element_type())) {
    throw hlo::Error(
        hlo::ErrorCode::kUnimplemented,
        "segment_reduce() is not implemented for lengths of type " + given->shape().ToString());
  }
  given = b.Convert(given, ElementType::kS64);
  const char* const name = lengths ? "lengths" : "offsets";
  if (axis != given->shape().rank() - 1) {
    throw hlo::Error("segment_reduce(): Expected axis to be the last dimension of " +
                     std::string(name) + " but got " + std::to_string(axis) + ".");
  }
  if (data->shape().rank() < given->shape().rank()) {
    throw hlo::Error("segment_reduce(): expected data of at least as many dimensions as " +
                     std::string(name) + ", but got " + data->shape().ToString() + " and " +
                     given->shape().ToString());
  }
  Segments s{axis, data->dimensions(), data->dimensions(), nullptr, nullptr};
  Value starts, ends;
  if (lengths) {
    s.lengths = given;
    ends = CumulativeSum(b, given, axis);
    starts = b.Subtract(ends, given);
  } else {
    int64_t count = given->shape().dimension(axis) - 1;
    if (count < 0) throw hlo::Error("Trying to create tensor with negative dimension -1: [-1]");
    starts = b.SliceInDim(given, axis, 0, count);
    ends = b.SliceInDim(given, axis, 1, count + 1);
    s.lengths = b.Subtract(ends, starts);
  }
  s.reduced[axis] = s.lengths->shape().dimension(axis);
  Dimensions elements(s.data.begin(), s.data.begin() + axis + 1);
  if (s.reduced[axis] == 0 || s.data[axis] == 0) {
    s.index = b.Zeros(Shape(ElementType::kS64, elements));
    return s;
  }
  s.index = CountUpTo(b, ends, elements);
  if (lengths) return s;  // the first one starts with the first element
  Value first = b.Reshape(b.SliceInDim(starts, axis, 0, 1), {elements.begin(), elements.end() - 1});
  Value before_first = b.Lt(Iota(b, elements, axis), BroadcastReduced(b, first, {axis}, elements));
  s.index = b.Select(before_first, b.Full(s.index->shape(), s.reduced[axis]), s.index);
  return s;
}

// `elements` combined into their segments, which start as `start` (of the reduced shape).
Value Combine(Builder& b, const Segments& s, Value start, Value elements, Opcode combiner) {
  if (elements->shape().num_elements() == 0 || start->shape().num_elements() == 0) return start;
  return CombineAt(b, start, s.index, elements, combiner);
}

// Each element's value of `reduced`; undefined where there is no segment.
Value SpreadOverSegments(Builder& b, const Segments& s, Value reduced) {
  Value index = b.BroadcastInDim(s.index, s.data, AllDimensions(s.axis + 1));
  return GatherAlong(b, reduced, index, s.axis);
}

Value OfSegments(Builder& b, const Segments& s, Value x) {
  return b.BroadcastInDim(x, s.reduced, AllDimensions(s.axis + 1));
}

Opcode Combiner(const std::string& reduce) {
  if (reduce == "max" || reduce == "amax") return Opcode::kMaximum;
  if (reduce == "min" || reduce == "amin") return Opcode::kMinimum;
  if (reduce == "prod") return Opcode::kMultiply;
  if (reduce == "sum" || reduce == "mean") return Opcode::kAdd;
  throw hlo::Error("reduce argument must be either sum, prod, mean, amax or amin, got " + reduce);
}

Value StartValue(Builder& b, const Segments& s, ElementType type, Opcode combiner,
                 const OptionalConstant& initial) {
  if (initial) return b.Full(Shape(type, s.reduced), NumberOf(*initial));
  return Splat(b, b.Constant(hlo::IdentityLiteral(combiner, type)), s.reduced);
}

void RequireFloat(Value x) {
  if (IsFloatValue(x)) return;
  throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                   "\"_segment_reduce_cpu\" not implemented for " + x->shape().ToString());
}

void CheckLengths(Builder& b, Value lengths, int64_t elements, bool unsafe) {
  if (!unsafe && lengths->shape().num_elements() == 0) {
    // Eager looks for the smallest length.
    throw hlo::Error(
        "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
        "reduction dim with the 'dim' argument.");
  }
  if (!ChecksValues(b)) return;
  lengths = b.Convert(lengths, ElementType::kS64);
  CheckBounds(b, lengths, {0, std::numeric_limits<int64_t>::max()},
              {kRuntimeError, "lengths contains negative value!"});
  if (unsafe) return;
  CheckBounds(b, Sum(b, lengths, {lengths->shape().rank() - 1}), {elements, elements + 1},
              {kRuntimeError,
               "segment_reduce(): Expected all rows of lengths along axis to sum to "
               "data.size(lengths.dim()-1) when !unsafe."});
}

Value SegmentReduce(Builder& b, Value x, std::string reduce, OptionalValue lengths,
                    OptionalValue indices, OptionalValue offsets, Dimension axis, bool unsafe,
                    OptionalConstant initial) {
  RequireFloat(x);
  if (indices) {
    throw hlo::Error("segment_reduce(): indices based reduction is not supported yet.");
  }
  ElementType type = x->element_type();
  Segments s = MakeSegments(b, x, lengths, offsets, axis);
  if (lengths) CheckLengths(b, *lengths, s.data[s.axis], unsafe);
  Opcode combiner = Combiner(reduce);
  x = ToAccumulation(b, x);
  Value result = Combine(b, s, StartValue(b, s, x->element_type(), combiner, initial), x, combiner);
  if (reduce == "mean") {
    Value count = OfSegments(b, s, b.Convert(s.lengths, result->element_type()));
    Value is_empty = b.Eq(count, Like(b, count, 0));
    Value of_empty = initial ? result : Like(b, result, kNaN);
    result = b.Select(is_empty, of_empty, b.Divide(result, count));
  }
  return b.Convert(result, type);
}

// The extreme's gradient is shared among the elements that have its value.
Value ExtremeBackward(Builder& b, const Segments& s, Value gradient, Value output, Value x) {
  Value is_extreme = b.Or(b.Eq(x, SpreadOverSegments(b, s, output)), IsNan(b, x));
  Value one = b.Convert(is_extreme, x->element_type());
  Value count = Combine(b, s, b.Zeros(output->shape()), one, Opcode::kAdd);
  count = b.Maximum(count, Like(b, count, 1));
  return ZeroUnless(b, is_extreme, SpreadOverSegments(b, s, b.Divide(gradient, count)));
}

// The product of the others: the product itself over the element, unless it is zero or NaN.
Value ProductBackward(Builder& b, const Segments& s, Value gradient, Value output, Value x,
                      const OptionalConstant& initial) {
  Value zero = Like(b, x, 0), one = Like(b, x, 1);
  Value is_zero = b.Eq(x, zero), is_nan = IsNan(b, x);
  Value is_special = b.Or(is_zero, is_nan);
  Value start = StartValue(b, s, x->element_type(), Opcode::kMultiply, initial);
  Value ordinary = Combine(b, s, start, b.Select(is_special, one, x), Opcode::kMultiply);
  // Whether there are others of these.
  const auto has_other = [&](Value is_such) {
    Value mine = b.Convert(is_such, x->element_type());
    Value all = Combine(b, s, b.Zeros(output->shape()), mine, Opcode::kAdd);
    return b.Gt(SpreadOverSegments(b, s, all), mine);
  };
  Value others = b.Select(has_other(is_zero), zero, SpreadOverSegments(b, s, ordinary));
  others = b.Select(has_other(is_nan), Like(b, x, kNaN), others);
  Value of_special = b.Multiply(SpreadOverSegments(b, s, gradient), others);
  Value quotient = b.Divide(SpreadOverSegments(b, s, b.Multiply(gradient, output)), x);
  return b.Select(is_special, of_special, quotient);
}

Value SegmentReduceBackward(Builder& b, Value gradient, Value output, Value x, std::string reduce,
                            OptionalValue lengths, OptionalValue offsets, Dimension axis,
                            OptionalConstant initial) {
  ElementType type = x->element_type();
  Segments s = MakeSegments(b, x, lengths, offsets, axis);
  if (x->shape().num_elements() == 0 || output->shape().num_elements() == 0) {
    return b.Zeros(x->shape());
  }
  Opcode combiner = Combiner(reduce);
  if (combiner != Opcode::kMultiply) {
    gradient = ToAccumulation(b, gradient);
    output = ToAccumulation(b, output);
    x = ToAccumulation(b, x);
  }
  Value result;
  if (combiner == Opcode::kMultiply) {
    result = ProductBackward(b, s, gradient, output, x, initial);
  } else if (combiner != Opcode::kAdd) {
    result = ExtremeBackward(b, s, gradient, output, x);
  } else {
    if (reduce == "mean") {
      Value count = b.Convert(s.lengths, gradient->element_type());
      gradient = b.Divide(gradient, OfSegments(b, s, count));
    }
    result = SpreadOverSegments(b, s, gradient);
  }
  Value has_segment = b.Lt(s.index, b.Full(s.index->shape(), s.reduced[s.axis]));
  Value everywhere = b.BroadcastInDim(has_segment, s.data, AllDimensions(s.axis + 1));
  return b.Convert(ZeroUnless(b, everywhere, result), type);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  Register<&SegmentReduce>(m, "segment_reduce");
  Register<&SegmentReduceBackward>(m, "_segment_reduce_backward");
}

}  // namespace torch_xla
