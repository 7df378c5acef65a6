// Gather and scatter in all of torch's spellings.
#include "aten/indexing.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/ops/one_hot_native.h>

#include <algorithm>
#include <limits>

#include "aten/broadcast.h"
#include "aten/dimension.h"
#include "aten/elementwise.h"
#include "aten/host_kernel.h"
#include "aten/op.h"
#include "aten/out_rule.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "aten/refuse.h"
#include "aten/sort.h"
#include "aten/value_check.h"
#include "lazy/cut_reason.h"

namespace torch_xla {
namespace {

using OptionalValues = std::vector<std::optional<Value>>;

constexpr auto kIndexError = hlo::ErrorCode::kOutOfRange;
constexpr auto kRuntimeError = hlo::ErrorCode::kInvalidArgument;

// Of a kernel that names neither the index nor the dimension.
const Words& OutOfRange() {
  static const Words words{kIndexError, "index out of range in self"};
  return words;
}

// --- x[i, :, j]

// How the index tensors of x[…] lie: which dimensions they index, their common shape, and where in
// the result that shape stands.
struct AdvancedIndex {
  Dimensions indexed;      // dimensions of x with an index
  Dimensions index_shape;  // the indices' common shape
  int64_t position = 0;    // of the index shape in the result
  Dimensions result;       // the result's dimensions
  Dimensions window_dims;  // result dimensions that are x's unindexed ones
  Value starts = nullptr;  // [index shape…, number of indexed dimensions]
};

bool IsContiguous(const Dimensions& dimensions) {
  return dimensions.back() - dimensions.front() + 1 == static_cast<int64_t>(dimensions.size());
}

Value JoinIndices(Builder& b, const Values& indices, const Dimensions& shape) {
  Dimensions with_vector = shape;
  with_vector.push_back(1);
  Values columns;
  for (Value index : indices) columns.push_back(b.Reshape(index, with_vector));
  return b.Concatenate(columns, static_cast<int64_t>(shape.size()));
}

// `of_masks`: all indices are positions in masks, within bounds and not negative.
AdvancedIndex MakeIndex(Builder& b, Value x, const OptionalValues& indices, bool of_masks) {
  AdvancedIndex a;
  if (indices.size() > x->dimensions().size()) {
    throw hlo::Error(hlo::ErrorCode::kOutOfRange, "too many indices for tensor of dimension " +
                                                      std::to_string(x->shape().rank()));
  }
  Values present;
  // Where one selects nothing, all of them together do, and no other is out of bounds.
  const bool selects_nothing = std::any_of(indices.begin(), indices.end(), [](const auto& index) {
    return index && (*index)->shape().num_elements() == 0;
  });
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    const int64_t size = x->shape().dimension(static_cast<int64_t>(d));
    // Eager counts the dimensions that have an index.
    const auto number = static_cast<int64_t>(a.indexed.size());
    a.indexed.push_back(static_cast<int64_t>(d));
    Value wrapped = *indices[d];
    if (!selects_nothing && !of_masks) {
      CheckBounds(b, wrapped, WrappedPositions(size), OutOfBounds(kIndexError, number, size));
      wrapped = WrapIndex(b, wrapped, size);
    }
    present.push_back(b.Convert(wrapped, ElementType::kS64));
  }
  BroadcastAll(b, present);
  a.index_shape = present[0]->dimensions();
  a.starts = JoinIndices(b, present, a.index_shape);
  a.position = IsContiguous(a.indexed) ? a.indexed.front() : 0;
  for (int64_t d : OtherDimensions(a.indexed, x->shape().rank()))
    a.result.push_back(x->shape().dimension(d));
  a.result.insert(a.result.begin() + a.position, a.index_shape.begin(), a.index_shape.end());
  int64_t end = a.position + static_cast<int64_t>(a.index_shape.size());
  for (int64_t d = 0; d < static_cast<int64_t>(a.result.size()); ++d) {
    if (d < a.position || d >= end) a.window_dims.push_back(d);
  }
  return a;
}

bool HasIndex(const OptionalValues& indices) {
  return std::any_of(indices.begin(), indices.end(), [](const auto& i) { return i.has_value(); });
}

Value Index(Builder& b, Value x, OptionalValues indices, bool of_masks) {
  if (!HasIndex(indices)) return x;
  AdvancedIndex a = MakeIndex(b, x, indices, of_masks);
  Shape result(x->element_type(), a.result);
  // Nothing of nothing: a gather's slices would have to be in the operand all the same.
  if (result.num_elements() == 0) return b.Zeros(result);
  hlo::GatherAttributes attributes;
  attributes.offset_dims = a.window_dims;
  attributes.collapsed_slice_dims = a.indexed;
  attributes.start_index_map = a.indexed;
  attributes.index_vector_dim = static_cast<int64_t>(a.index_shape.size());
  attributes.slice_sizes = KeepDimensions(x->dimensions(), a.indexed);
  return b.Gather(x, a.starts, attributes);
}

// A scatter that reduces, taken in the accumulation type.
template <typename Scatter>
Value Reduced(Builder& b, Value x, Value updates, Opcode reduction, const Scatter& scatter) {
  Value wide = ToAccumulation(b, x);
  auto* combiner = b.ScalarCombiner(reduction, wide->element_type());
  return b.Convert(scatter(wide, ToAccumulation(b, updates), combiner), x->element_type());
}

Value IndexPut(Builder& b, Value x, OptionalValues indices, Value values, bool accumulate,
               bool of_masks) {
  if (values->element_type() != x->element_type()) {
    throw hlo::Error("Index put requires the source and destination dtypes match, got " +
                     x->shape().ToString() + " and " + values->shape().ToString());
  }
  if (!HasIndex(indices)) {
    Value full = b.BroadcastTo(values, x->dimensions());
    return accumulate ? b.Add(x, full) : full;
  }
  AdvancedIndex a = MakeIndex(b, x, indices, of_masks);
  // Leading dimensions of size 1 may be too many.
  Dimensions trimmed = values->dimensions();
  while (trimmed.size() > a.result.size() && trimmed.front() == 1) trimmed.erase(trimmed.begin());
  values = b.BroadcastTo(b.Reshape(values, trimmed), a.result);
  hlo::ScatterAttributes attributes;
  attributes.update_window_dims = a.window_dims;
  attributes.inserted_window_dims = a.indexed;
  attributes.scatter_dims_to_operand_dims = a.indexed;
  attributes.index_vector_dim = static_cast<int64_t>(a.index_shape.size());
  if (!accumulate) {
    return b.Scatter(x, a.starts, values, Overwrite(b, x->element_type()), attributes);
  }
  return Reduced(b, x, values, Opcode::kAdd, [&](Value into, Value updates, auto* combiner) {
    return b.Scatter(into, a.starts, updates, combiner, attributes);
  });
}

void CheckIndexType(at::ScalarType type) {
  TORCH_CHECK_INDEX(type == at::kLong || type == at::kInt || type == at::kByte || type == at::kBool,
                    "tensors used as indices must be long, int, byte or bool tensors");
  if (type == at::kByte) {
    TORCH_WARN(
        "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
        "instead.");
  }
}

using IndexList = c10::List<std::optional<at::Tensor>>;

struct PositionLists {
  IndexList indices;
  bool of_masks = true;  // all of them
};

// Bool and byte masks become the positions of what they select, one index for each of their
// dimensions; how many there are has to be known here, which computes what is pending.
PositionLists WithoutMasks(const at::Tensor& self, const IndexList& indices) {
  PositionLists result;
  IndexList& list = result.indices;
  for (const auto& entry : indices) {
    const std::optional<at::Tensor> index = entry;
    bool present = index && index->defined();
    if (present) CheckIndexType(index->scalar_type());
    if (present && (index->scalar_type() == at::kBool || index->scalar_type() == at::kByte)) {
      for (int64_t d = 0; d < index->dim(); ++d) {
        TORCH_CHECK_INDEX(self.size(list.size() + d) == index->size(d), "The shape of the mask ",
                          index->sizes(), " at index ", d,
                          " does not match the shape of the indexed tensor ", self.sizes(),
                          " at index ", list.size() + d);
      }
      at::Tensor positions = at::nonzero(*index).to(self.device());
      for (int64_t d = 0; d < index->dim(); ++d) list.push_back(positions.select(1, d));
    } else if (present) {
      list.push_back(index->device() == self.device() ? *index : index->to(self.device()));
      result.of_masks = false;
    } else {
      list.push_back(std::nullopt);
    }
  }
  return result;
}

at::Tensor IndexTensor(const at::Tensor& self, const IndexList& indices) {
  const PositionLists positions = WithoutMasks(self, indices);
  return Record<&Index>(self, positions.indices, positions.of_masks);
}

// A mask that is the only index.
struct SingleMask {
  at::Tensor mask;  // as it broadcasts over self
  int64_t rank;     // the dimensions that it selects from
};
std::optional<SingleMask> SingleMaskOf(const at::Tensor& self, const IndexList& indices) {
  std::optional<at::Tensor> mask;
  int64_t dimension = 0, before = 0;
  for (const auto& entry : indices) {
    const std::optional<at::Tensor> index = entry;
    bool present = index && index->defined();
    if (present) {
      if (mask || index->scalar_type() != at::kBool) return std::nullopt;
      mask = *index;
      before = dimension;
      dimension += index->dim();
    } else {
      ++dimension;
    }
  }
  if (!mask || mask->dim() == 0) return std::nullopt;
  for (int64_t d = 0; d < mask->dim(); ++d) {
    if (before + d >= self.dim() || mask->size(d) != self.size(before + d)) return std::nullopt;
  }
  std::vector<int64_t> sizes(mask->sizes().begin(), mask->sizes().end());
  sizes.resize(self.dim() - before, 1);
  return SingleMask{mask->reshape(sizes).to(self.device()), mask->dim()};
}

at::Tensor IndexPutFunctional(const at::Tensor& self, const IndexList& indices,
                              const at::Tensor& values, bool accumulate) {
  TORCH_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(), " (got ",
                    indices.size(), ")");
  // Where one value goes everywhere, the mask's positions need not be known.
  if (values.numel() == 1 && !accumulate) {
    if (const auto single = SingleMaskOf(self, indices)) {
      at::Tensor value = values.dim() == 0 ? values : values.reshape({});
      return at::masked_fill(self, single->mask, value);
    }
  }
  const PositionLists positions = WithoutMasks(self, indices);
  return Record<&IndexPut>(self, positions.indices, values, accumulate, positions.of_masks);
}
at::Tensor& IndexPutInPlace(at::Tensor& self, const IndexList& indices, const at::Tensor& values,
                            bool accumulate) {
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    TORCH_WARN(
        "Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before "
        "performing this operation. This also applies to advanced indexing e.g. tensor[indices] = "
        "tensor");
  }
  CheckApart(self, values, self.numel());
  for (const auto& entry : indices) {
    const std::optional<at::Tensor> index = entry;
    if (index && index->defined()) CheckApart(self, *index, self.numel());
  }
  WriteInto(self, IndexPutFunctional(self, indices, values, accumulate));
  return self;
}

// Autograd adds as many values where a mask selects as the mask did select, so nobody counts them.
std::optional<at::Tensor> WithSelectedAdded(const at::Tensor& self, const IndexList& indices,
                                            const at::Tensor& values) {
  if (values.scalar_type() != self.scalar_type()) return std::nullopt;
  const std::optional<SingleMask> single = SingleMaskOf(self, indices);
  if (!single || values.dim() != self.dim() - single->rank + 1) return std::nullopt;
  return self + at::zeros_like(self).masked_scatter(single->mask, values);
}

at::Tensor& IndexPutImplementation(at::Tensor& self, const IndexList& indices,
                                   const at::Tensor& values, bool accumulate, bool unsafe) {
  if (unsafe && accumulate) {
    if (const auto sum = WithSelectedAdded(self, indices, values)) {
      WriteInto(self, *sum);
      return self;
    }
  }
  return IndexPutInPlace(self, indices, values, accumulate);
}

// --- Positions of what is not zero

Value CountTrue(Builder& b, Value x) {
  return Sum(b, b.Convert(ToPred(b, x), ElementType::kS64), AllDimensions(x->shape().rank()));
}

// The flat positions of all elements, those of the true ones in front.
Value PositionsTrueFirst(Builder& b, Value x) {
  int64_t size = x->shape().num_elements();
  Shape flat(ElementType::kS64, {size});
  Value is_false = b.Convert(b.Not(b.Reshape(ToPred(b, x), {size})), ElementType::kS32);
  Shape key = Shape::Scalar(ElementType::kS32), value = Shape::Scalar(ElementType::kS64);
  auto* comparator =
      b.Region("false_last", {key, key, value, value},
               [](Builder& r, const Values& p) -> Values { return {r.Lt(p[0], p[1])}; });
  Value sorted = b.Sort({is_false, b.Iota(flat, 0)}, 0, true, comparator);
  return b.GetTupleElement(sorted, 1);
}

// The coordinates of flat positions: [count, rank].
Value Coordinates(Builder& b, Value position, const Dimensions& dimensions) {
  int64_t count = position->shape().dimension(0), stride = 1;
  for (int64_t extent : dimensions) stride *= extent;
  Values columns;
  for (int64_t extent : dimensions) {
    stride /= std::max<int64_t>(extent, 1);
    Value quotient = b.Divide(position, b.Full(position->shape(), std::max<int64_t>(stride, 1)));
    Value coordinate =
        b.Remainder(quotient, b.Full(position->shape(), std::max<int64_t>(extent, 1)));
    columns.push_back(b.Reshape(coordinate, {count, 1}));
  }
  if (columns.empty()) return b.Zeros(Shape(ElementType::kS64, {count, 0}));
  return b.Concatenate(columns, 1);
}

Value Nonzero(Builder& b, Value x, int64_t count) {
  Value positions = b.SliceInDim(PositionsTrueFirst(b, x), 0, 0, count);
  return Coordinates(b, positions, x->dimensions());
}

// The first `size` coordinates; what is missing is `fill`.
Value NonzeroStatic(Builder& b, Value x, int64_t size, int64_t fill) {
  if (size < 0) {
    throw hlo::Error("nonzero_static: 'size' must be an non-negative integer");
  }
  int64_t rank = x->shape().rank();
  Dimensions shape = {size, rank};
  int64_t available = std::min(size, x->shape().num_elements());
  Value found = Nonzero(b, x, available);
  found = b.Pad(found, b.ConstantScalar(ElementType::kS64, fill), {0, 0}, {size - available, 0},
                {0, 0});
  if (rank == 0) return found;
  Value is_found = b.Lt(Iota(b, shape, 0), Splat(b, CountTrue(b, x), shape));
  return b.Select(is_found, found, b.Full(found->shape(), fill));
}

at::Tensor NonzeroTensor(const at::Tensor& self) {
  if (self.numel() == 0) return at::empty({0, self.dim()}, self.options().dtype(at::kLong));
  const lazy::CutScope scope(lazy::CutReason::Kind::kRead, "aten::nonzero");
  if (LiesOnHost(self)) {
    return ByHostKernel(self, [](const at::Tensor& x) { return at::nonzero(x); });
  }
  int64_t count = Record<&CountTrue>(self).item<int64_t>();
  return Record<&Nonzero>(self, count);
}

at::Tensor MaskedSelect(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  std::vector<at::Tensor> pair = at::broadcast_tensors({self, mask});
  IndexList single;
  single.push_back(pair[1].reshape({-1}));
  return IndexTensor(pair[0].reshape({-1}), single);
}

// --- repeat_interleave

Value Total(Builder& b, Value x) { return Sum(b, b.Convert(x, ElementType::kS64), {0}); }

// Which element each of `size` results repeats: as many elements end at or before it.
Value RepeatedPositions(Builder& b, Value repeats, int64_t size) {
  ElementType type = repeats->element_type();
  if (ChecksValues(b)) {
    CheckBounds(b, Total(b, repeats), {size, size + 1},
                {kRuntimeError, "allocated size does not match required size"});
  }
  CheckBounds(b, repeats, {0, std::numeric_limits<int64_t>::max()},
              {kRuntimeError, "repeats can not be negative"});
  Value ends = CumulativeSum(b, b.Convert(repeats, ElementType::kS64), 0);
  return b.Convert(CountBelow(b, ends, Iota(b, {size}, 0), true), type);
}

// How long the result is has to be known here, which computes what is pending.
at::Tensor RepeatInterleave(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK(repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt,
              "repeats has to be Long or Int tensor");
  if (repeats.numel() == 0) return at::empty_like(repeats);
  if (!output_size) {
    const lazy::CutScope scope(lazy::CutReason::Kind::kRead, "aten::repeat_interleave");
    if (LiesOnHost(repeats)) {
      return ByHostKernel(repeats, [](const at::Tensor& x) { return at::repeat_interleave(x); });
    }
    TORCH_CHECK(repeats.min().item<int64_t>() >= 0, "repeats can not be negative");
    output_size = Record<&Total>(repeats).item<int64_t>();
  }
  return Record<&RepeatedPositions>(repeats, *output_size);
}

// --- gather, scatter

Value AtLeast1d(Builder& b, Value x) { return x->dimensions().empty() ? b.Reshape(x, {1}) : x; }

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

void CheckIndexShape(Value x, Value index, int64_t dimension, const char* name) {
  if (index->shape().num_elements() == 0) return;  // whatever its type, as in eager
  bool is_index =
      index->element_type() == ElementType::kS64 || index->element_type() == ElementType::kS32;
  if (!is_index) {
    throw hlo::Error(std::string(name) + "(): Expected dtype int64 for index");
  }
  if (std::string_view(name) == "gather") CheckGathered(x, index, dimension);
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

bool SameBesides(Value x, Value index, int64_t dimension) {
  return KeepDimensions(x->dimensions(), {dimension}) ==
         KeepDimensions(index->dimensions(), {dimension});
}

int64_t SizeOf(Value x, int64_t dimension) {
  return x->dimensions().empty() ? 1 : x->shape().dimension(dimension);
}

// Of x's positions along the dimension, for the operators that take one of each element.
void CheckPositions(Builder& b, Value x, Value index, int64_t dimension) {
  const int64_t size = SizeOf(x, dimension);
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
Value ScatterValue(Builder& b, Value x, Dimension dimension, Value index, Scalar value) {
  CheckPositions(b, x, index, dimension);
  Value updates = Splat(b, b.Convert(value, x->element_type()), AtLeast1d(b, index)->dimensions());
  return ScatterWith(b, x, dimension, index, updates, Overwrite(b, x->element_type()));
}

Value ScatterAdd(Builder& b, Value x, Dimension dimension, Value index, Value src) {
  CheckPositions(b, x, index, dimension);
  Value updates = MatchIndex(b, AtLeast1d(b, src), AtLeast1d(b, index));
  return ScatterWith(b, x, dimension, index, updates, Opcode::kAdd);
}

Opcode ReductionCombiner(const std::string& reduce) {
  if (reduce == "sum" || reduce == "add" || reduce == "mean") return Opcode::kAdd;
  if (reduce == "prod" || reduce == "multiply") return Opcode::kMultiply;
  if (reduce == "amax") return Opcode::kMaximum;
  if (reduce == "amin") return Opcode::kMinimum;
  throw hlo::Error("reduce argument must be either sum, prod, mean, amax or amin, got " + reduce);
}

Value ScatterReduceSource(Builder& b, Value x, Dimension dimension, Value index, Value src,
                          std::string reduce) {
  CheckPositions(b, x, index, dimension);
  Value updates = MatchIndex(b, AtLeast1d(b, src), AtLeast1d(b, index));
  return ScatterWith(b, x, dimension, index, updates, ReductionCombiner(reduce));
}
Value ScatterReduceValue(Builder& b, Value x, Dimension dimension, Value index, Scalar value,
                         std::string reduce) {
  CheckPositions(b, x, index, dimension);
  Value updates = Splat(b, b.Convert(value, x->element_type()), AtLeast1d(b, index)->dimensions());
  return ScatterWith(b, x, dimension, index, updates, ReductionCombiner(reduce));
}

// x with `updates` reduced into it by `scatter`; elements that receive any start from the
// reduction's identity unless include_self, and are divided by their number for a mean.
template <typename Scatter>
Value ReduceInto(Builder& b, Value x, Value ones, const std::string& reduce, bool include_self,
                 const Scatter& scatter) {
  Opcode opcode = ReductionCombiner(reduce);
  if (hlo::IsComplex(x->element_type()) && (reduce == "amax" || reduce == "amin")) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented, "complex numbers have no order");
  }
  Value zero = b.Zeros(x->shape()), one = b.Full(x->shape(), int64_t{1});
  Value counts = nullptr, receives = nullptr;
  if (!include_self || reduce == "mean") {
    counts = scatter(include_self ? one : zero, ones, Opcode::kAdd);
    receives = b.Ne(counts, zero);  // complex numbers have no order
  }
  Value start = x;
  if (!include_self) {
    hlo::Literal literal = hlo::IdentityLiteral(opcode, x->element_type());
    Value identity = Splat(b, b.Constant(std::move(literal)), x->dimensions());
    start = b.Select(receives, identity, x);
  }
  Value result = scatter(start, nullptr, opcode);
  if (reduce != "mean") return result;
  Value total = b.Select(receives, counts, one);
  return IsIntegral(x) ? FloorDivide(b, result, total) : b.Divide(result, total);
}

Value ScatterReduceTwo(Builder& b, Value x, Dimension dimension, Value index, Value src,
                       std::string reduce, bool include_self) {
  CheckPositions(b, x, index, dimension);
  Value updates = MatchIndex(b, AtLeast1d(b, src), AtLeast1d(b, index));
  Value ones = b.Full(updates->shape(), int64_t{1});
  return ReduceInto(b, x, ones, reduce, include_self, [&](Value into, Value values, Opcode opcode) {
    return ScatterWith(b, into, dimension, index, values ? values : updates, opcode);
  });
}

// --- index_select and its counterparts

// Eager's kernels are for some types of indices; `narrow`: for int32, too.
void RequireIndexType(Value index, bool narrow, const char* name) {
  const ElementType type = index->element_type();
  if (type == ElementType::kS64 || (narrow && type == ElementType::kS32)) return;
  throw hlo::Error(std::string(name) + "(): expected an index of type " +
                   (narrow ? "int32 or int64" : "int64") + ", but got " +
                   index->shape().ToString());
}

// Eager has a kernel of its own for dimension 1.
void CheckSelected(Builder& b, Value x, Value index, int64_t dimension) {
  const int64_t size = SizeOf(x, dimension);
  const std::string second =
      "INDICES element is out of DATA bounds, id={} axis_dim=" + std::to_string(size);
  CheckBounds(b, index, Positions(size),
              dimension == 1 ? Words{kRuntimeError, second} : OutOfRange());
}

// Eager adds by scattering, where slices are not within others.
void CheckAdded(Builder& b, Value x, Value index, int64_t dimension) {
  const int64_t size = SizeOf(x, dimension), rank = x->shape().rank();
  const bool scatters = rank > 1 && (dimension == 0 || dimension == rank - 1);
  CheckBounds(b, index, Positions(size),
              scatters ? OutOfBounds(kRuntimeError, dimension, size) : OutOfRange());
}

Value IndexSelect(Builder& b, Value x, Dimension dimension, Value index) {
  if (index->shape().rank() > 1) {
    throw hlo::Error(hlo::ErrorCode::kOutOfRange,
                     "index_select(): Index is supposed to be a vector");
  }
  RequireIndexType(index, true, "index_select");
  CheckSelected(b, x, index, dimension);
  if (x->dimensions().empty()) return x;
  return TakeAlong(b, x, AtLeast1d(b, index), dimension);
}

template <typename Combiner>
Value SlicesInto(Builder& b, Value x, int64_t dimension, Value index, Value source,
                 Combiner combiner) {
  Dimensions shape = x->dimensions();
  index = AtLeast1d(b, index);
  Value result =
      ScatterSlices(b, AtLeast1d(b, x), index, AtLeast1d(b, source), dimension, combiner);
  return b.Reshape(result, shape);
}

Value IndexAdd(Builder& b, Value x, Dimension dimension, Value index, Value source, Scalar alpha) {
  RequireIndexType(index, true, "index_add");
  CheckAdded(b, x, index, dimension);
  Value factor = Splat(b, b.Convert(alpha, source->element_type()), source->dimensions());
  return SlicesInto(b, x, dimension, index, b.Multiply(source, factor), Opcode::kAdd);
}
Value IndexCopy(Builder& b, Value x, Dimension dimension, Value index, Value source) {
  RequireIndexType(index, false, "index_copy");
  Words words = OutOfBounds(kIndexError, dimension, SizeOf(x, dimension));
  words.text = "index_copy_(): " + words.text;
  CheckBounds(b, index, Positions(SizeOf(x, dimension)), words);
  return SlicesInto(b, x, dimension, index, source, Overwrite(b, x->element_type()));
}
Value IndexFill(Builder& b, Value x, Dimension dimension, Value index, Value value) {
  RequireIndexType(index, false, "index_fill");
  const int64_t size = SizeOf(x, dimension);
  CheckBounds(b, index, WrappedPositions(size), OutOfBounds(kIndexError, dimension, size));
  Dimensions slices = AtLeast1d(b, x)->dimensions();
  slices[dimension] = AtLeast1d(b, index)->shape().dimension(0);
  Value updates = b.BroadcastTo(b.Convert(value, x->element_type()), slices);
  index = WrapIndex(b, index, size);
  return SlicesInto(b, x, dimension, index, updates, Overwrite(b, x->element_type()));
}
Value IndexFillScalar(Builder& b, Value x, Dimension dimension, Value index, Scalar value) {
  return IndexFill(b, x, dimension, index, value);
}
Value IndexReduce(Builder& b, Value x, Dimension dimension, Value index, Value source,
                  std::string reduce, bool include_self) {
  RequireIndexType(index, true, "index_reduce");
  CheckBounds(b, index, Positions(SizeOf(x, dimension)), OutOfRange());
  Value ones = b.Full(source->shape(), int64_t{1});
  return ReduceInto(b, x, ones, reduce, include_self, [&](Value into, Value values, Opcode opcode) {
    return SlicesInto(b, into, dimension, index, values ? values : source, opcode);
  });
}

// Of the flattened tensor.
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

// The n-th true element of the mask takes the source's n-th.
Value MaskedScatter(Builder& b, Value x, Value mask, Value source) {
  auto [full, full_mask] = Broadcast(b, x, mask);
  int64_t size = full->shape().num_elements(), available = source->shape().num_elements();
  Value flags = b.Convert(b.Reshape(full_mask, {size}), ElementType::kS64);
  if (ChecksValues(b) && available < size) {
    CheckBounds(b, Sum(b, flags, {0}), {0, available + 1},
                {kRuntimeError, "Number of elements of source < number of ones in mask"});
  }
  if (available == 0) return full;
  hlo::Window window = hlo::Window::Trivial(1);
  window.dimensions = {size};
  window.padding_low = {size - 1};
  Value counts = b.ReduceWindow(flags, b.Zeros(Shape::Scalar(ElementType::kS64)), window,
                                b.ScalarCombiner(Opcode::kAdd, ElementType::kS64));
  Value order = b.Subtract(counts, b.Full(counts->shape(), int64_t{1}));
  Value taken = TakeRows(b, b.Reshape(source, {available}), order);
  return b.Select(full_mask, b.Reshape(taken, full->dimensions()), full);
}

// --- Classes

Value OneHot(Builder& b, Value x, int64_t classes) {
  constexpr auto kLimits = std::numeric_limits<int64_t>();
  CheckBounds(b, x, {0, kLimits.max()}, {kRuntimeError, "Class values must be non-negative."});
  CheckBounds(b, x, {kLimits.min(), classes},
              {kRuntimeError, "Class values must be smaller than num_classes."});
  Dimensions dimensions = x->dimensions();
  dimensions.push_back(classes);
  const int64_t last = x->shape().rank();
  Value own = b.BroadcastInDim(x, dimensions, AllDimensions(last));
  return b.Convert(b.Eq(own, Iota(b, dimensions, last)), ElementType::kS64);
}

// torch's composition has the words for what is no tensor of classes. How many there are has to be
// known here, which computes what is pending.
at::Tensor OneHotTensor(const at::Tensor& self, int64_t classes) {
  if (classes == 0 || classes < -1 || self.numel() == 0 || self.scalar_type() != at::kLong) {
    return at::native::one_hot(self, classes);
  }
  if (classes == -1) {
    const lazy::CutScope scope(lazy::CutReason::Kind::kRead, "aten::one_hot");
    const auto [least, largest] = at::aminmax(self);
    TORCH_CHECK(least.item<int64_t>() >= 0, "Class values must be non-negative.");
    classes = largest.item<int64_t>() + 1;
  }
  return Record<&OneHot>(self, classes);
}

// --- Embeddings

Value Embedding(Builder& b, Value weight, Value index, int64_t padding_index,
                bool scale_by_frequency, bool sparse) {
  if (weight->shape().rank() != 2) throw hlo::Error("'weight' must be 2-D");
  RequireIndexType(index, true, "embedding");
  CheckBounds(b, index, Positions(weight->shape().dimension(0)), OutOfRange());
  return TakeRows(b, weight, index);
}

// Rows that several indices name receive the sum of their gradients; the padding row none.
Value EmbeddingDenseBackward(Builder& b, Value gradient, Value index, int64_t rows,
                             int64_t padding_index, bool scale_by_frequency) {
  ElementType type = gradient->element_type(), wide = AccumulationType(type);
  int64_t width = gradient->shape().dimension(gradient->shape().rank() - 1);
  int64_t count = index->shape().num_elements();
  Value flat = b.Convert(b.Reshape(gradient, {count, width}), wide);
  index = b.Reshape(index, {count});
  if (scale_by_frequency) {
    Value ones = b.Full(Shape(wide, {count}), 1.0), none = b.Zeros(Shape(wide, {rows}));
    Value frequency = ScatterSlices(b, none, index, ones, 0, Opcode::kAdd);
    flat = b.Divide(flat, AlongDimension(b, TakeRows(b, frequency, index), {count, width}, 0));
  }
  if (padding_index >= 0) {
    Value kept = b.Ne(index, b.Full(index->shape(), padding_index));
    flat = ZeroUnless(b, AlongDimension(b, kept, {count, width}, 0), flat);
  }
  Value zeros = b.Zeros(Shape(wide, {rows, width}));
  return b.Convert(ScatterSlices(b, zeros, index, flat, 0, Opcode::kAdd), type);
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

}  // namespace

Value WrapIndex(Builder& b, Value index, int64_t size) {
  if (size == 0 && index->shape().num_elements() > 0) {
    throw hlo::Error(hlo::ErrorCode::kOutOfRange,
                     "index is out of bounds for dimension with size 0");
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
  CheckIndexShape(x, index, dimension, "gather");
  if (index->shape().num_elements() == 0) {
    return b.Zeros(Shape(x->element_type(), index->dimensions()));
  }
  int64_t rank = x->shape().rank();
  Dimensions others = OtherDimensions({dimension}, rank);
  hlo::GatherAttributes attributes;
  attributes.index_vector_dim = rank;
  attributes.slice_sizes = Dimensions(rank, 1);
  if (SameBesides(x, index, dimension)) {
    attributes.collapsed_slice_dims = attributes.start_index_map = {dimension};
    attributes.operand_batching_dims = attributes.start_indices_batching_dims = others;
    return b.Gather(x, WithIndexVector(b, index), attributes);
  }
  attributes.collapsed_slice_dims = attributes.start_index_map = AllDimensions(rank);
  return b.Gather(x, FullCoordinates(b, index, dimension), attributes);
}

Value ScatterAlong(Builder& b, Value x, Value index, Value updates, int64_t dimension,
                   hlo::Computation* combiner) {
  CheckIndexShape(x, index, dimension, "scatter");
  if (index->shape().num_elements() == 0) return x;
  int64_t rank = x->shape().rank();
  hlo::ScatterAttributes attributes;
  attributes.index_vector_dim = rank;
  if (SameBesides(x, index, dimension)) {
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

Value ScatterAlong(Builder& b, Value x, Value index, Value updates, int64_t dimension,
                   Opcode reduction) {
  return Reduced(b, x, updates, reduction, [&](Value into, Value from, auto* combiner) {
    return ScatterAlong(b, into, index, from, dimension, combiner);
  });
}

Value ScatterSlices(Builder& b, Value x, Value index, Value slices, int64_t dimension,
                    Opcode reduction) {
  return Reduced(b, x, slices, reduction, [&](Value into, Value from, auto* combiner) {
    return ScatterSlices(b, into, index, from, dimension, combiner);
  });
}

hlo::Computation* Overwrite(Builder& b, ElementType type) {
  Shape scalar = Shape::Scalar(type);
  return b.Region("overwrite", {scalar, scalar},
                  [](Builder&, const Values& p) -> Values { return {p[1]}; });
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&Index>(
      +[](const at::Tensor& x, const IndexList& indices, bool) { return at::index(x, indices); });
  RunBy<&IndexPut>(+[](const at::Tensor& x, const IndexList& indices, const at::Tensor& values,
                       bool accumulate,
                       bool) { return at::index_put(x, indices, values, accumulate); });
  RunBy<&CountTrue>(+[](const at::Tensor& x) { return at::count_nonzero(x); });
  RunBy<&Nonzero>(+[](const at::Tensor& x, int64_t) { return at::nonzero(x); });
  RunBy<&Total>(+[](const at::Tensor& x) { return at::sum(x, at::kLong); });
  RunBy<&RepeatedPositions>(+[](const at::Tensor& repeats, int64_t size) {
    // torch's kernel has written beyond its result when it meets a negative number.
    TORCH_CHECK(repeats.min().item<int64_t>() >= 0, "repeats can not be negative");
    return at::repeat_interleave(repeats, std::optional<int64_t>(size));
  });
  m.impl("index.Tensor", &IndexTensor);
  m.impl("_unsafe_index.Tensor", &IndexTensor);
  m.impl("index_put", &IndexPutFunctional);
  m.impl("index_put_", &IndexPutInPlace);
  m.impl("_index_put_impl_", &IndexPutImplementation);
  m.impl("_unsafe_index_put", &IndexPutFunctional);
  m.impl("nonzero", &NonzeroTensor);
  Register<&NonzeroStatic>(m, "nonzero_static");
  m.impl("masked_select", &MaskedSelect);
  m.impl("repeat_interleave.Tensor", &RepeatInterleave);
  Register<&GatherOperator>(m, "gather");
  Register<&ScatterSource>(m, "scatter.src");
  Register<&ScatterValue>(m, "scatter.value");
  Register<&ScatterAdd>(m, "scatter_add");
  Register<&ScatterReduceSource>(m, "scatter.reduce");
  Register<&ScatterReduceValue>(m, "scatter.value_reduce");
  Register<&ScatterReduceTwo>(m, "scatter_reduce.two");
  Register<&IndexSelect>(m, "index_select");
  Register<&IndexAdd>(m, "index_add");
  Register<&IndexCopy>(m, "index_copy");
  Register<&IndexFill>(m, "index_fill.int_Tensor");
  Register<&IndexFillScalar>(m, "index_fill.int_Scalar");
  Register<&IndexReduce>(m, "index_reduce");
  Register<&Take>(m, "take");
  Register<&Put>(m, "put");
  Register<&MaskedScatter>(m, "masked_scatter");
  m.impl("one_hot", &OneHotTensor);
  Register<&Embedding>(m, "embedding");
  RunBy<&EmbeddingDenseBackward>(+[](const at::Tensor& gradient, const at::Tensor& index,
                                     int64_t rows, int64_t padding_index, bool scale_by_frequency) {
    // torch's kernel checks no index: out of range it writes beyond its result.
    if (index.numel() > 0) {
      const auto [least, largest] = at::aminmax(index);
      TORCH_CHECK_INDEX(least.item<int64_t>() >= 0 && largest.item<int64_t>() < rows,
                        "index out of range");
    }
    // torch's kernel rounds each sum of a 16-bit type.
    const at::ScalarType type = gradient.scalar_type();
    const bool is_narrow = type == at::kHalf || type == at::kBFloat16;
    return at::embedding_dense_backward(is_narrow ? gradient.to(at::kFloat) : gradient, index, rows,
                                        padding_index, scale_by_frequency)
        .to(type);
  });
  Register<&EmbeddingDenseBackward>(m, "embedding_dense_backward");
}

}  // namespace torch_xla
