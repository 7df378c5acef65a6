// x[i, :, j] with tensors or masks as indices, and writes to it; masked_select is one of these.
#include <ATen/MemoryOverlap.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aten/broadcast.h"
#include "aten/dimension.h"
#include "aten/indexing.h"
#include "aten/masked_scatter.h"
#include "aten/narrow_sums.h"
#include "aten/op.h"
#include "aten/out_rule.h"
#include "aten/small_rows.h"
#include "aten/value_check.h"

namespace torch_xla {
namespace {

using OptionalValues = std::vector<std::optional<Value>>;
using IndexList = c10::List<std::optional<at::Tensor>>;

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

// `of_masks`: all indices are positions in masks, within bounds and not negative.
AdvancedIndex MakeIndex(Builder& b, Value x, const OptionalValues& indices, bool of_masks) {
  AdvancedIndex a;
  if (indices.size() > x->dimensions().size()) {
    throw hlo::Error(kIndexError, "too many indices for tensor of dimension " +
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
  return ReduceWidely(b, x, values, Opcode::kAdd, [&](Value into, Value updates, auto* combiner) {
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

// A mask that is the only index.
struct SingleMask {
  at::Tensor mask;
  int64_t before;  // dimensions of self before those that it selects from

  // As it broadcasts over self, on its device.
  at::Tensor Over(const at::Tensor& self) const {
    std::vector<int64_t> sizes(mask.sizes().begin(), mask.sizes().end());
    sizes.resize(self.dim() - before, 1);
    return mask.reshape(sizes).to(self.device());
  }
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
  if (!mask) return std::nullopt;
  for (int64_t d = 0; d < mask->dim(); ++d) {
    if (before + d >= self.dim() || mask->size(d) != self.size(before + d)) return std::nullopt;
  }
  return SingleMask{*mask, before};
}

// What is indexed, and by what.
struct Indexed {
  at::Tensor self;
  IndexList indices;
};

// The dimensions that a single mask selects from are one, so that there is one position to each
// element that it selects, and no coordinates.
Indexed WithFlatMask(const at::Tensor& self, const IndexList& indices) {
  const std::optional<SingleMask> single = SingleMaskOf(self, indices);
  if (!single || single->mask.dim() < 2) return {self, indices};
  std::vector<int64_t> sizes = self.sizes().vec();
  const auto first = sizes.begin() + single->before;
  *first = single->mask.numel();
  sizes.erase(first + 1, first + single->mask.dim());
  Indexed flat{self.reshape(sizes), IndexList()};
  for (int64_t d = 0; d < single->before; ++d) flat.indices.push_back(std::nullopt);
  flat.indices.push_back(single->mask.reshape({single->mask.numel()}));
  return flat;
}

// Indices go to where `self` is: nothing would be left that says what is wrong.
void CheckIndexed(const at::Tensor& self, const char* op) {
  if (!self.device().is_xla()) ThrowNotXla(self, op, 1);
}

at::Tensor IndexTensor(const at::Tensor& self, const IndexList& indices) {
  CheckIndexed(self, "aten::index");
  const Indexed flat = WithFlatMask(self, indices);
  const PositionLists positions = WithoutMasks(flat.self, flat.indices);
  return Record<&Index>(flat.self, positions.indices, positions.of_masks);
}

at::Tensor MaskedSelect(const at::Tensor& self, const at::Tensor& mask) {
  CheckIndexed(self, "aten::masked_select");
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  std::vector<at::Tensor> pair = at::broadcast_tensors({self, mask});
  IndexList single;
  single.push_back(pair[1].reshape({-1}));
  return IndexTensor(pair[0].reshape({-1}), single);
}

at::Tensor IndexPutFunctional(const at::Tensor& self, const IndexList& indices,
                              const at::Tensor& values, bool accumulate) {
  CheckIndexed(self, "aten::index_put");
  TORCH_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(), " (got ",
                    indices.size(), ")");
  // Where one value goes everywhere, the mask's positions need not be known.
  if (values.numel() == 1 && !accumulate) {
    if (const auto single = SingleMaskOf(self, indices)) {
      at::Tensor value = values.dim() == 0 ? values : values.reshape({});
      return at::masked_fill(self, single->Over(self), value);
    }
  }
  const Indexed flat = WithFlatMask(self, indices);
  const PositionLists positions = WithoutMasks(flat.self, flat.indices);
  at::Tensor result =
      Record<&IndexPut>(flat.self, positions.indices, values, accumulate, positions.of_masks);
  return flat.self.dim() == self.dim() ? result : result.reshape(self.sizes());
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

// x with values added where the mask is true, in order.
Value IndexPutOfMask(Builder& b, Value x, Value mask, Value values) {
  return b.Add(x, MaskedScatter(b, b.Zeros(x->shape()), mask, values));
}

// Autograd adds as many values where a mask selects as the mask did select, so nobody counts them.
std::optional<at::Tensor> WithSelectedAdded(const at::Tensor& self, const IndexList& indices,
                                            const at::Tensor& values) {
  if (values.scalar_type() != self.scalar_type() || self.scalar_type() == at::kBool)
    return std::nullopt;
  const std::optional<SingleMask> single = SingleMaskOf(self, indices);
  if (!single || single->mask.dim() == 0 || values.dim() != self.dim() - single->mask.dim() + 1)
    return std::nullopt;
  return Record<&IndexPutOfMask>(self, single->Over(self), values);
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

// How many there are at most, of indices that are stretched to one shape.
int64_t MostPositions(const IndexList& indices) {
  int64_t count = 1;
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::optional<at::Tensor> index = indices.get(i);
    if (index && index->defined()) count *= index->numel();
  }
  return count;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&Index>(+[](const at::Tensor& x, const IndexList& indices, bool) {
    at::Tensor rows;
    if (indices.size() == 1 && indices.get(0)) rows = TakeRowsOnHost(x, *indices.get(0));
    return rows.defined() ? rows : at::index(x, indices);
  });
  RunBy<&IndexPut>(+[](const at::Tensor& x, const IndexList& indices, const at::Tensor& values,
                       bool accumulate, bool) {
    at::Tensor sum;  // as where a gradient goes to the rows that were read
    if (accumulate && indices.size() == 1 && indices.get(0)) {
      sum = AddRowsOnHost(x, *indices.get(0), values);
    }
    if (sum.defined()) return sum;
    if (!accumulate || !StopsInOperandType(x, values, MostPositions(indices))) {
      return at::index_put(x, indices, values, accumulate);
    }
    const at::Tensor sums = x.to(at::kFloat);
    return sums.index_put_(indices, values.to(at::kFloat), true).to(x.scalar_type());
  });
  recording::NameKind(lazy::Op<&IndexPutOfMask>::kind(), "index_put_of_mask");
  RunBy<&IndexPutOfMask>(
      +[](const at::Tensor& x, const at::Tensor& mask, const at::Tensor& values) {
        at::Tensor sum = AddSelectedOnHost(x, mask, values);
        return sum.defined() ? sum : x + at::zeros_like(x).masked_scatter(mask, values);
      });
  m.impl("index.Tensor", &IndexTensor);
  m.impl("_unsafe_index.Tensor", &IndexTensor);
  m.impl("index_put", &IndexPutFunctional);
  m.impl("index_put_", &IndexPutInPlace);
  m.impl("_index_put_impl_", &IndexPutImplementation);
  m.impl("_unsafe_index_put", &IndexPutFunctional);
  m.impl("masked_select", &MaskedSelect);
}

}  // namespace torch_xla
