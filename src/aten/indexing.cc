// Gather and scatter in the forms that other families compose.
#include "aten/indexing.h"

#include <algorithm>
#include <optional>
#include <string>

#include "aten/dimension.h"
#include "aten/elementwise.h"
#include "aten/refuse.h"
#include "hlo/error.h"
#include "hlo/size_arithmetic.h"

namespace torch_xla {
namespace {

// What an operator's `reduce` argument combines with.
Opcode ReductionCombiner(const std::string& reduce) {
  if (reduce == "sum" || reduce == "mean") return Opcode::kAdd;
  if (reduce == "prod") return Opcode::kMultiply;
  if (reduce == "amax" || reduce == "max") return Opcode::kMaximum;
  if (reduce == "amin" || reduce == "min") return Opcode::kMinimum;
  throw hlo::Error("reduce argument must be either sum, prod, mean, amax or amin, got " + reduce);
}

// Throws if the index of a gather is not of x's rank, or reaches over x's sizes besides
// `dimension`.
void CheckGathered(Value x, Value index, int64_t dimension) {
  if (x->shape().rank() != index->shape().rank()) {
    Refuse("Index tensor must have the same number of dimensions as input tensor",
           "gather(): expected rank of input (", x->shape().rank(), ") and index (",
           index->shape().rank(), ") tensors to be the same.");
  }
  Dimensions over;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (d != dimension && index->shape().dimension(d) > x->shape().dimension(d)) over.push_back(d);
  }
  if (over.empty()) return;
  const c10::IntArrayRef sizes = x->dimensions(), index_sizes = index->dimensions();
  Refuse(
      c10::str("Size does not match at dimension ", over.front(), " expected index ", index_sizes,
               " to be no larger than self ", sizes, " apart from dimension ", dimension),
      "gather(): expected sizes of index ", index_sizes, " to be smaller or equal those of input ",
      sizes, " on all dimensions, except on dimension ", dimension,
      ". However, that's not true on dimensions ", c10::IntArrayRef(over), ".");
}

// The same of a scatter.
void CheckScattered(Value x, Value index, int64_t dimension) {
  if (x->shape().rank() != index->shape().rank()) {
    throw hlo::Error(
        "Index tensor must have the same number of dimensions as input tensor, but got " +
        index->shape().ToString() + " and " + x->shape().ToString());
  }
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (d == dimension || index->shape().dimension(d) <= x->shape().dimension(d)) continue;
    throw hlo::Error("Size does not match at dimension " + std::to_string(d) + " expected index " +
                     hlo::ToString(index->dimensions()) + " to be no larger than self " +
                     hlo::ToString(x->dimensions()) + " apart from dimension " +
                     std::to_string(dimension));
  }
}

void RequireIntegerIndex(Value index, const std::string& name) {
  const ElementType type = index->element_type();
  if (type == ElementType::kS64 || type == ElementType::kS32) return;
  throw hlo::Error(name + "(): Expected dtype int64 for index");
}

bool SameBesides(Value x, Value index, int64_t dimension) {
  return KeepDimensions(x->dimensions(), {dimension}) ==
         KeepDimensions(index->dimensions(), {dimension});
}

// Every element's full coordinates, with `index` for one of them: [index shape…, rank].
Value FullCoordinates(Builder& b, Value index, int64_t dimension) {
  Values columns;
  for (int64_t d = 0; d < index->shape().rank(); ++d) {
    columns.push_back(d == dimension ? index : b.Iota(index->shape(), d));
  }
  return JoinIndices(b, columns, index->dimensions());
}

Value WithIndexVector(Builder& b, Value index) {
  Dimensions dimensions = index->dimensions();
  dimensions.push_back(1);
  return b.Reshape(index, dimensions);
}

// An index along a dimension that is the same at all places of some of the others: of slices.
struct SliceIndex {
  Value index;           // without the dimensions of a slice
  Dimensions varying;    // the others that it has, of x
  Dimensions batching;   // the same, of the index
  Dimensions of_slices;  // those that it lacks
};

// Fewer elements are gathered one by one in vectors in less time.
constexpr int64_t kFewestOfASlice = 32;

// An index that was stretched to the shape of what it is an index of; nullopt of any other.
std::optional<SliceIndex> AsSliceIndex(Builder& b, Value index, int64_t dimension) {
  if (index->opcode() != Opcode::kBroadcastInDim) return std::nullopt;
  Value source = index->operand(0);
  const Dimensions& places = index->as<hlo::DimensionsAttributes>().dimensions;
  if (!std::ranges::is_sorted(places)) return std::nullopt;
  SliceIndex found;
  Dimensions kept;
  for (int64_t d = 0; d < index->shape().rank(); ++d) {
    const auto place = std::ranges::find(places, d);
    const int64_t size = index->shape().dimension(d);
    const bool varies =
        place != places.end() && source->dimensions()[place - places.begin()] == size;
    if (d != dimension && (!varies || size == 1)) {
      found.of_slices.push_back(d);
      continue;
    }
    if (!varies && size != 1) return std::nullopt;  // slices that are all the same one
    if (d != dimension) {
      found.varying.push_back(d);
      found.batching.push_back(std::ssize(kept));
    }
    kept.push_back(size);
  }
  if (hlo::ProductOf(index->dimensions(), found.of_slices) < kFewestOfASlice) return std::nullopt;
  found.index = b.Reshape(source, kept);
  return found;
}

Value GatherSlices(Builder& b, Value x, const SliceIndex& slices, int64_t dimension) {
  hlo::GatherAttributes attributes;
  attributes.offset_dims = slices.of_slices;
  attributes.collapsed_slice_dims = attributes.start_index_map = {dimension};
  attributes.operand_batching_dims = slices.varying;
  attributes.start_indices_batching_dims = slices.batching;
  attributes.index_vector_dim = slices.index->shape().rank();
  attributes.slice_sizes = Dimensions(x->shape().rank(), 1);
  for (int64_t d : slices.of_slices) attributes.slice_sizes[d] = x->shape().dimension(d);
  return b.Gather(x, WithIndexVector(b, slices.index), attributes);
}

Value ScatterToSlices(Builder& b, Value x, const SliceIndex& slices, Value updates,
                      int64_t dimension, hlo::Computation* combiner) {
  hlo::ScatterAttributes attributes;
  attributes.update_window_dims = slices.of_slices;
  attributes.inserted_window_dims = attributes.scatter_dims_to_operand_dims = {dimension};
  attributes.input_batching_dims = slices.varying;
  attributes.scatter_indices_batching_dims = slices.batching;
  attributes.index_vector_dim = slices.index->shape().rank();
  return b.Scatter(x, WithIndexVector(b, slices.index), updates, combiner, attributes);
}

}  // namespace

Words OutOfRange() { return {kIndexError, "index out of range in self"}; }

void RequireIndexType(Value index, bool narrow, const char* name) {
  const ElementType type = index->element_type();
  if (type == ElementType::kS64 || (narrow && type == ElementType::kS32)) return;
  throw hlo::Error(std::string(name) + "(): expected an index of type " +
                   (narrow ? "int32 or int64" : "int64") + ", but got " +
                   index->shape().ToString());
}

Value AtLeast1d(Builder& b, Value x) { return x->dimensions().empty() ? b.Reshape(x, {1}) : x; }

int64_t SizeAlong(Value x, int64_t dimension) {
  return x->dimensions().empty() ? 1 : x->shape().dimension(dimension);
}

Value JoinIndices(Builder& b, const Values& indices, const Dimensions& shape) {
  Dimensions with_vector = shape;
  with_vector.push_back(1);
  Values columns;
  for (Value index : indices) columns.push_back(b.Reshape(index, with_vector));
  return b.Concatenate(columns, static_cast<int64_t>(shape.size()));
}

Value WrapIndex(Builder& b, Value index, int64_t size) {
  if (size == 0 && index->shape().num_elements() > 0) {
    throw hlo::Error(kIndexError, "index is out of bounds for dimension with size 0");
  }
  if (!hlo::IsSignedInteger(index->element_type())) return index;
  Value is_negative = b.Lt(index, b.Zeros(index->shape()));
  return b.Select(is_negative, b.Add(index, b.Full(index->shape(), size)), index);
}

Value TakeAlong(Builder& b, Value x, Value index, int64_t dimension) {
  if (index->shape().num_elements() == 0) {
    Dimensions empty = x->dimensions();
    empty[dimension] = 0;
    return b.Zeros(Shape(x->element_type(), empty));
  }
  hlo::GatherAttributes attributes;
  attributes.offset_dims = OtherDimensions({dimension}, x->shape().rank());
  attributes.collapsed_slice_dims = {dimension};
  attributes.start_index_map = {dimension};
  attributes.index_vector_dim = 1;
  attributes.slice_sizes = KeepDimensions(x->dimensions(), {dimension});
  return b.Gather(x, WithIndexVector(b, index), attributes);
}

Value TakeRows(Builder& b, Value table, Value index) {
  int64_t index_rank = index->shape().rank();
  if (index->shape().num_elements() == 0) {
    Dimensions empty = index->dimensions();
    empty.insert(empty.end(), table->dimensions().begin() + 1, table->dimensions().end());
    return b.Zeros(Shape(table->element_type(), empty));
  }
  hlo::GatherAttributes attributes;
  for (int64_t d = 1; d < table->shape().rank(); ++d)
    attributes.offset_dims.push_back(index_rank + d - 1);
  attributes.collapsed_slice_dims = {0};
  attributes.start_index_map = {0};
  attributes.index_vector_dim = index_rank;
  attributes.slice_sizes = KeepDimensions(table->dimensions(), {0});
  return b.Gather(table, WithIndexVector(b, index), attributes);
}

Value GatherAlong(Builder& b, Value x, Value index, int64_t dimension) {
  if (index->shape().num_elements() == 0) {  // whatever its type, as in eager
    return b.Zeros(Shape(x->element_type(), index->dimensions()));
  }
  RequireIntegerIndex(index, "gather");
  CheckGathered(x, index, dimension);
  int64_t rank = x->shape().rank();
  Dimensions others = OtherDimensions({dimension}, rank);
  hlo::GatherAttributes attributes;
  attributes.index_vector_dim = rank;
  attributes.slice_sizes = Dimensions(rank, 1);
  if (SameBesides(x, index, dimension)) {
    const auto slices = AsSliceIndex(b, index, dimension);
    if (slices) return GatherSlices(b, x, *slices, dimension);
    attributes.collapsed_slice_dims = attributes.start_index_map = {dimension};
    attributes.operand_batching_dims = attributes.start_indices_batching_dims = others;
    return b.Gather(x, WithIndexVector(b, index), attributes);
  }
  attributes.collapsed_slice_dims = attributes.start_index_map = AllDimensions(rank);
  return b.Gather(x, FullCoordinates(b, index, dimension), attributes);
}

Value ScatterAlong(Builder& b, Value x, Value index, Value updates, int64_t dimension,
                   hlo::Computation* combiner) {
  if (index->shape().num_elements() == 0) return x;  // whatever its type, as in eager
  RequireIntegerIndex(index, "scatter");
  CheckScattered(x, index, dimension);
  int64_t rank = x->shape().rank();
  hlo::ScatterAttributes attributes;
  attributes.index_vector_dim = rank;
  if (SameBesides(x, index, dimension)) {
    const auto slices = AsSliceIndex(b, index, dimension);
    if (slices) return ScatterToSlices(b, x, *slices, updates, dimension, combiner);
    attributes.inserted_window_dims = attributes.scatter_dims_to_operand_dims = {dimension};
    attributes.input_batching_dims = attributes.scatter_indices_batching_dims =
        OtherDimensions({dimension}, rank);
    return b.Scatter(x, WithIndexVector(b, index), updates, combiner, attributes);
  }
  attributes.inserted_window_dims = attributes.scatter_dims_to_operand_dims = AllDimensions(rank);
  return b.Scatter(x, FullCoordinates(b, index, dimension), updates, combiner, attributes);
}

Value ScatterSlices(Builder& b, Value x, Value index, Value slices, int64_t dimension,
                    hlo::Computation* combiner) {
  hlo::ScatterAttributes attributes;
  attributes.update_window_dims = OtherDimensions({dimension}, x->shape().rank());
  attributes.inserted_window_dims = {dimension};
  attributes.scatter_dims_to_operand_dims = {dimension};
  attributes.index_vector_dim = 1;
  return b.Scatter(x, WithIndexVector(b, index), slices, combiner, attributes);
}

void RequireOneType(Value x, Value updates) {
  if (updates->shape().num_elements() == 0 || x->element_type() == updates->element_type()) return;
  throw hlo::Error("self and source expected to have the same dtype, but got " +
                   x->shape().ToString() + " and " + updates->shape().ToString());
}

Value ScatterAlong(Builder& b, Value x, Value index, Value updates, int64_t dimension,
                   Opcode reduction) {
  return ReduceWidely(b, x, updates, reduction, [&](Value into, Value from, auto* combiner) {
    return ScatterAlong(b, into, index, from, dimension, combiner);
  });
}

Value ScatterSlices(Builder& b, Value x, Value index, Value slices, int64_t dimension,
                    Opcode reduction) {
  return ReduceWidely(b, x, slices, reduction, [&](Value into, Value from, auto* combiner) {
    return ScatterSlices(b, into, index, from, dimension, combiner);
  });
}

hlo::Computation* Overwrite(Builder& b, ElementType type) {
  Shape scalar = Shape::Scalar(type);
  return b.Region("overwrite", {scalar, scalar},
                  [](Builder&, const Values& p) -> Values { return {p[1]}; });
}

Value ReduceInto(Builder& b, Value x, Value updates, const std::string& reduce, bool include_self,
                 const ReductionScatter& scatter) {
  const Opcode opcode = ReductionCombiner(reduce);
  const bool orders = opcode == Opcode::kMaximum || opcode == Opcode::kMinimum;
  if (hlo::IsComplex(x->element_type()) && orders) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented, "complex numbers have no order");
  }
  Value zero = b.Zeros(x->shape()), one = b.Full(x->shape(), int64_t{1});
  Value counts = nullptr, receives = nullptr;
  if (!include_self || reduce == "mean") {
    Value ones = b.Full(updates->shape(), int64_t{1});
    counts = scatter(include_self ? one : zero, ones, Opcode::kAdd);
    receives = b.Ne(counts, zero);  // complex numbers have no order
  }
  Value start = x;
  if (!include_self) {
    hlo::Literal literal = hlo::IdentityLiteral(opcode, x->element_type());
    Value identity = Splat(b, b.Constant(std::move(literal)), x->dimensions());
    start = b.Select(receives, identity, x);
  }
  Value result = scatter(start, updates, opcode);
  if (reduce != "mean") return result;
  Value total = b.Select(receives, counts, one);
  return IsIntegral(x) ? FloorDivide(b, result, total) : b.Divide(result, total);
}

}  // namespace torch_xla
