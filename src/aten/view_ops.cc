// Operators that return another view of the same storage.
#include <ATen/ExpandUtils.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/ops/detach_native.h>
#include <torch/library.h>

#include <array>
#include <numeric>
#include <span>

#include "aten/refuse.h"
#include "aten/tensor.h"
#include "hlo/size_arithmetic.h"
#include "lazy/metrics.h"

namespace torch_xla {
namespace {

using at::IntArrayRef;
using hlo::ElementType;
using lazy::ViewChain;
using lazy::ViewStep;
using Kind = ViewStep::Kind;
using Sizes = c10::SmallVector<int64_t, 8>;

// Of a chain, which is copied for each view of a view and read step by step. What takes more, such
// as a slice of the transposed, and so on, is found by its strides.
constexpr size_t kMostSteps = 32;

// The place of these strides in the storage, seen as elements of the type.
ViewChain StridedPart(const lazy::Storage& storage, at::ScalarType type, IntArrayRef sizes,
                      IntArrayRef strides, int64_t offset) {
  ViewChain chain = WholeMemory(storage, ToElementType(type));
  ViewStep step{Kind::kAsStrided};
  step.sizes = sizes.vec();
  step.strides = strides.vec();
  step.start = offset;
  chain.push_back(std::move(step));
  return chain;
}

// A tensor that sees `self`'s storage through more steps (none: the same), which are moved from.
at::Tensor ExtendBy(const at::Tensor& self, std::span<ViewStep> steps, IntArrayRef sizes,
                    IntArrayRef strides, int64_t offset, at::ScalarType type) {
  static auto* counter = lazy::Counter("xla::view");
  lazy::Count(counter);
  XlaTensor impl = CheckedImpl(self);
  lazy::Reference<lazy::View> view = impl->view();
  if (!steps.empty()) {
    ViewChain chain;
    chain.reserve((view ? view->chain().size() : 0) + steps.size());
    if (view) chain.assign(view->chain().begin(), view->chain().end());
    for (ViewStep& step : steps) lazy::AppendStep(chain, std::move(step));
    if (chain.size() > kMostSteps) {
      chain = StridedPart(*impl->xla_storage(), type, sizes, strides, offset);
    }
    view = lazy::Reference<lazy::View>(new lazy::View(impl->xla_storage(), std::move(chain)));
  }
  at::Tensor result = MakeView(self, std::move(view), type, sizes, strides, offset);
  if (self.is_conj()) result._set_conj(true);
  if (self.is_neg()) result._set_neg(true);
  return result;
}

at::Tensor Extend(const at::Tensor& self, ViewStep step, IntArrayRef sizes, IntArrayRef strides,
                  int64_t offset, std::optional<at::ScalarType> type = std::nullopt) {
  return ExtendBy(self, {&step, 1}, sizes, strides, offset, type.value_or(self.scalar_type()));
}

ViewStep Reshaped(IntArrayRef sizes) {
  ViewStep step{.kind = Kind::kReshape};
  step.sizes = sizes.vec();
  return step;
}

at::Tensor Alias(const at::Tensor& self) {
  return ExtendBy(self, {}, self.sizes(), self.strides(), self.storage_offset(),
                  self.scalar_type());
}

// What torch traces with is detached below the tracing.
at::Tensor Detach(const at::Tensor& self) {
  return IsTracedOnly(self) ? at::native::detach(self) : Alias(self);
}

at::Tensor ViewAs(const at::Tensor& self, IntArrayRef size) {
  at::DimVector inferred = at::infer_size_dv(size, self.numel());
  auto strides = at::detail::computeStride(self.sizes(), self.strides(), inferred);
  TORCH_CHECK(strides.has_value(),
              "view size is not compatible with input tensor's size and stride (at least one "
              "dimension spans across two contiguous subspaces). Use .reshape(...) instead.");
  if (inferred == self.sizes()) return Alias(self);
  return Extend(self, Reshaped(inferred), inferred, *strides, self.storage_offset());
}

at::Tensor UnsafeView(const at::Tensor& self, IntArrayRef size) { return ViewAs(self, size); }

at::Tensor ReshapeAlias(const at::Tensor& self, IntArrayRef size, IntArrayRef strides) {
  return Extend(self, Reshaped(size), size, strides, self.storage_offset());
}

at::Tensor Permute(const at::Tensor& self, IntArrayRef dims) {
  int64_t rank = self.dim();
  TORCH_CHECK(static_cast<int64_t>(dims.size()) == rank,
              "permute(sparse_coo): number of dimensions in the tensor input does not match the "
              "length of the desired ordering of dimensions i.e. input.dim() = ",
              rank, " is not equal to len(dims) = ", dims.size());
  ViewStep step{Kind::kPermute};
  step.sizes.reserve(rank);
  Sizes sizes, strides;
  c10::SmallVector<bool, 8> seen(rank);
  for (int64_t dim : dims) {
    dim = c10::maybe_wrap_dim(dim, rank);
    TORCH_CHECK(!seen[dim], "permute(): duplicate dims are not allowed.");
    seen[dim] = true;
    step.sizes.push_back(dim);
    sizes.push_back(self.size(dim));
    strides.push_back(self.stride(dim));
  }
  return Extend(self, std::move(step), sizes, strides, self.storage_offset());
}

at::Tensor TransposeDims(const at::Tensor& self, int64_t dim0, int64_t dim1) {
  int64_t rank = self.dim();
  dim0 = c10::maybe_wrap_dim(dim0, rank);
  dim1 = c10::maybe_wrap_dim(dim1, rank);
  if (dim0 == dim1) return Alias(self);
  Sizes order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[dim0], order[dim1]);
  return Permute(self, order);
}

at::Tensor TransposeMatrix(const at::Tensor& self) {
  TORCH_CHECK(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ",
              self.dim(), "D");
  return self.dim() < 2 ? Alias(self) : TransposeDims(self, 0, 1);
}

void CheckExpandedRank(const at::Tensor& self, IntArrayRef size) {
  if (static_cast<int64_t>(size.size()) >= self.dim()) return;
  Refuse(c10::str("expand(", self.toString(), "{", self.sizes(), "}, size=", size,
                  "): the number of sizes provided (", size.size(),
                  ") must be greater or equal to the number of dimensions in the tensor (",
                  self.dim(), ")"),
         "expand(): expected the `input` tensor ", Described(self), " (rank: ", self.dim(),
         ") to have a rank smaller or equal to the given `sizes` ", size, " (rank: ", size.size(),
         ").");
}

// Which size and stride each dimension has after torch's rules. `size` has self's rank or more.
at::InferExpandGeometryResult<at::DimVector> ExpandedGeometry(const at::Tensor& self,
                                                              IntArrayRef size) {
  const size_t added = size.size() - self.sizes().size();
  for (int64_t i = 0; i < self.dim(); ++i) {
    const int64_t wanted = size[added + i], found = self.size(i);
    if (wanted == found || found == 1 || wanted < 0) continue;
    try {
      at::inferExpandGeometry_dimvector(self.sizes(), self.strides(), size);
    } catch (const c10::Error& error) {
      Refuse(error.what_without_backtrace(), "expand(): expected dimension ", added + i,
             " of the given `sizes` ", size, " (", wanted,
             ") to be -1, or equal to the size of the `input` tensor ", Described(self),
             " at dimension ", i, " (", found, ").");
    }
  }
  return at::inferExpandGeometry_dimvector(self.sizes(), self.strides(), size);
}

at::Tensor ExpandView(const at::Tensor& self, IntArrayRef size, bool) {
  CheckExpandedRank(self, size);
  auto [sizes, strides] = ExpandedGeometry(self, size);
  if (IntArrayRef(sizes) == self.sizes()) return Alias(self);
  ViewStep step{Kind::kExpand};
  step.sizes.assign(sizes.begin(), sizes.end());
  return Extend(self, std::move(step), sizes, strides, self.storage_offset());
}

at::Tensor SqueezeMask(const at::Tensor& self, c10::ArrayRef<bool> drop) {
  Sizes sizes, strides;
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (drop[i] && self.size(i) == 1) continue;
    sizes.push_back(self.size(i));
    strides.push_back(self.stride(i));
  }
  if (static_cast<int64_t>(sizes.size()) == self.dim()) return Alias(self);
  return Extend(self, Reshaped(sizes), sizes, strides, self.storage_offset());
}

at::Tensor SqueezeAll(const at::Tensor& self) {
  return SqueezeMask(self, c10::SmallVector<bool, 8>(self.dim(), true));
}

at::Tensor SqueezeDim(const at::Tensor& self, int64_t dim) {
  dim = c10::maybe_wrap_dim(dim, self.dim());
  c10::SmallVector<bool, 8> drop(self.dim(), false);
  if (self.dim() > 0) drop[dim] = true;
  return SqueezeMask(self, drop);
}

at::Tensor SqueezeDims(const at::Tensor& self, IntArrayRef dims) {
  c10::SmallVector<bool, 8> drop(self.dim(), false);
  auto mask = at::dim_list_to_bitset(dims, self.dim());
  for (int64_t i = 0; i < self.dim(); ++i) drop[i] = mask[i];
  return SqueezeMask(self, drop);
}

at::Tensor Unsqueeze(const at::Tensor& self, int64_t dim) {
  dim = c10::maybe_wrap_dim(dim, self.dim() + 1);
  Sizes sizes(self.sizes().begin(), self.sizes().end());
  Sizes strides(self.strides().begin(), self.strides().end());
  int64_t stride = dim < self.dim() ? sizes[dim] * strides[dim] : 1;
  sizes.insert(sizes.begin() + dim, 1);
  strides.insert(strides.begin() + dim, stride);
  return Extend(self, Reshaped(sizes), sizes, strides, self.storage_offset());
}

// Of `dimension`: `size` elements from `start` on, `step` apart.
ViewStep Sliced(int64_t dimension, int64_t start, int64_t size, int64_t step) {
  ViewStep slice{Kind::kSlice};
  slice.dimension = dimension;
  slice.start = size == 0 ? 0 : start;  // where nothing lies is no difference
  slice.size = size;
  slice.stride = step;
  return slice;
}

// Elements start, start + step, … before limit, all within the dimension.
at::Tensor SliceWithin(const at::Tensor& self, int64_t dim, int64_t start, int64_t limit,
                       int64_t step_size) {
  if (start == 0 && limit == self.size(dim) && step_size == 1) return Alias(self);
  Sizes sizes(self.sizes().begin(), self.sizes().end());
  Sizes strides(self.strides().begin(), self.strides().end());
  sizes[dim] = hlo::CeilDivide(limit - start, step_size);
  strides[dim] *= step_size;
  return Extend(self, Sliced(dim, start, sizes[dim], step_size), sizes, strides,
                self.storage_offset() + start * self.stride(dim));
}

at::Tensor Slice(const at::Tensor& self, int64_t dim, std::optional<int64_t> start,
                 std::optional<int64_t> end, int64_t step) {
  TORCH_CHECK_INDEX(self.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  dim = c10::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(step > 0, "slice step must be positive");
  int64_t size = self.size(dim);
  auto clamp = [&](int64_t index) {
    if (index < 0) index += size;
    return std::clamp<int64_t>(index, 0, size);
  };
  int64_t first = clamp(start.value_or(0));
  int64_t last = std::max(first, clamp(end.value_or(INT64_MAX)));
  return SliceWithin(self, dim, first, last, step);
}

at::Tensor Select(const at::Tensor& self, int64_t dim, int64_t index) {
  TORCH_CHECK_INDEX(self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  dim = c10::maybe_wrap_dim(dim, self.dim());
  int64_t size = self.size(dim);
  TORCH_CHECK_INDEX(-size <= index && index < size, "select(): index ", index,
                    " out of range for tensor of size ", self.sizes(), " at dimension ", dim);
  if (index < 0) index += size;
  Sizes sizes(self.sizes().begin(), self.sizes().end());
  Sizes strides(self.strides().begin(), self.strides().end());
  sizes.erase(sizes.begin() + dim);
  strides.erase(strides.begin() + dim);
  std::array<ViewStep, 2> steps = {Sliced(dim, index, 1, 1), Reshaped(sizes)};
  const std::span<ViewStep> needed = std::span(steps).subspan(size == 1 ? 1 : 0);
  return ExtendBy(self, needed, sizes, strides, self.storage_offset() + index * self.stride(dim),
                  self.scalar_type());
}

at::Tensor AsStrided(const at::Tensor& self, IntArrayRef size, IntArrayRef stride,
                     std::optional<int64_t> offset) {
  TORCH_CHECK(size.size() == stride.size(), "mismatch in length of strides and shape");
  int64_t start = offset.value_or(self.storage_offset());
  TORCH_CHECK(start >= 0, "Tensor: invalid storage offset ", start);
  XlaTensor impl = CheckedImpl(self);
  // Strides count the storage's elements of this tensor's type: what comes before a change of type
  // stays.
  ViewChain chain = impl->view() ? impl->view()->chain() : ViewChain();
  size_t keep = chain.size();
  while (keep > 0 && chain[keep - 1].kind != Kind::kBitcast) --keep;
  chain.resize(keep);
  const bool is_row_major = impl->xla_storage()->memory_order().empty();
  const bool is_whole =
      is_row_major && std::all_of(chain.begin(), chain.end(), [](const ViewStep& step) {
        return step.kind == Kind::kBitcast || step.kind == Kind::kReshape;
      });
  if (!is_whole) {
    chain = WholeMemory(*impl->xla_storage(), ToElementType(self.scalar_type()));
  }
  const auto bytes = static_cast<int64_t>(impl->xla_storage()->value().shape().byte_size());
  const int64_t available = bytes / static_cast<int64_t>(self.element_size());
  int64_t last = start;
  bool is_empty = false;
  for (size_t i = 0; i < size.size(); ++i) {
    TORCH_CHECK(size[i] >= 0, "Trying to create tensor with negative dimension ", size[i], ": ",
                size);
    TORCH_CHECK(stride[i] >= 0,
                "as_strided: Negative strides are not supported at the moment, got "
                "strides: ",
                stride);
    is_empty = is_empty || size[i] == 0;
    last += (size[i] - 1) * stride[i];
  }
  TORCH_CHECK(is_empty || last < available, "setStorage: sizes ", size, ", strides ", stride,
              ", storage offset ", start, " are out of bounds for storage of ", available,
              " elements");
  if (size == self.sizes() && stride == self.strides() && start == self.storage_offset()) {
    return Alias(self);
  }
  ViewStep step{Kind::kAsStrided};
  step.sizes = size.vec();
  step.strides = stride.vec();
  step.start = start;
  chain.push_back(std::move(step));
  lazy::Reference<lazy::View> view(new lazy::View(impl->xla_storage(), std::move(chain)));
  at::Tensor result = MakeView(self, std::move(view), self.scalar_type(), size, stride, start);
  result._set_conj(self.is_conj());
  result._set_neg(self.is_neg());
  return result;
}

// A copy of all that self's memory holds, and self's place in it.
at::Tensor CloneWithStorage(const at::Tensor& self) {
  XlaTensor impl = CheckedImpl(self);
  for (const ViewStep& step : impl->view() ? impl->view()->chain() : ViewChain()) {
    if (step.kind == Kind::kBitcast) return self.clone();
  }
  int64_t size = impl->xla_storage()->value().shape().num_elements();
  if (size == self.numel()) return self.clone();
  return AsStrided(self, {size}, {1}, 0)
      .clone()
      .as_strided(self.sizes(), self.strides(), self.storage_offset());
}

at::Tensor AsStridedScatter(const at::Tensor& self, const at::Tensor& source, IntArrayRef size,
                            IntArrayRef stride, std::optional<int64_t> offset) {
  at::Tensor result = CloneWithStorage(self);
  at::Tensor part = result.as_strided(size, stride, offset);
  TORCH_CHECK(part.sizes() == source.sizes(),
              "expected src to have a size equal to the slice of "
              "self. src size = ",
              source.sizes(), ", slice size = ", part.sizes());
  part.copy_(source);
  return result;
}

at::Tensor Diagonal(const at::Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t rank = self.dim();
  dim1 = c10::maybe_wrap_dim(dim1, rank);
  dim2 = c10::maybe_wrap_dim(dim2, rank);
  TORCH_CHECK(dim1 != dim2, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  int64_t rows = self.size(dim1), columns = self.size(dim2);
  int64_t count = offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns);
  count = std::max<int64_t>(count, 0);
  int64_t start = self.storage_offset();
  if (count > 0) start += offset >= 0 ? offset * self.stride(dim2) : -offset * self.stride(dim1);
  Sizes sizes, strides;
  for (int64_t i = 0; i < rank; ++i) {
    if (i == dim1 || i == dim2) continue;
    sizes.push_back(self.size(i));
    strides.push_back(self.stride(i));
  }
  sizes.push_back(count);
  strides.push_back(self.stride(dim1) + self.stride(dim2));
  return AsStrided(self, sizes, strides, start);
}

at::Tensor Unfold(const at::Tensor& self, int64_t dim, int64_t size, int64_t step) {
  dim = c10::maybe_wrap_dim(dim, self.dim(), true);
  int64_t extent = self.dim() == 0 ? 1 : self.size(dim);
  TORCH_CHECK(size >= 0, "size is ", size, " but must be >= 0");
  TORCH_CHECK(size <= extent, "maximum size for tensor at dimension ", dim, " is ", extent,
              " but size is ", size);
  TORCH_CHECK(step > 0, "step is ", step, " but must be > 0");
  Sizes sizes(self.sizes().begin(), self.sizes().end());
  Sizes strides(self.strides().begin(), self.strides().end());
  sizes.push_back(size);
  strides.push_back(self.dim() == 0 ? 1 : self.stride(dim));
  if (self.dim() > 0) {
    sizes[dim] = (extent - size) / step + 1;
    strides[dim] *= step;
  }
  return AsStrided(self, sizes, strides, self.storage_offset());
}

std::vector<at::Tensor> SplitWithSizes(const at::Tensor& self, IntArrayRef split_sizes,
                                       int64_t dim) {
  TORCH_CHECK(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  dim = c10::maybe_wrap_dim(dim, self.dim());
  std::vector<at::Tensor> parts;
  int64_t start = 0;
  for (int64_t size : split_sizes) {
    TORCH_CHECK(size >= 0,
                "split_with_sizes expects split_sizes have only non-negative entries, but "
                "got split_sizes=",
                split_sizes);
    TORCH_CHECK(start + size <= self.size(dim),
                "split_with_sizes expects split_sizes to sum exactly "
                "to ",
                self.size(dim), " (input tensor's size at dimension ", dim,
                "), but got "
                "split_sizes=",
                split_sizes);
    parts.push_back(SliceWithin(self, dim, start, start + size, 1));
    start += size;
  }
  TORCH_CHECK(start == self.size(dim), "split_with_sizes expects split_sizes to sum exactly to ",
              self.size(dim), " (input tensor's size at dimension ", dim,
              "), but got split_sizes=", split_sizes);
  return parts;
}

std::vector<at::Tensor> Split(const at::Tensor& self, int64_t split_size, int64_t dim) {
  TORCH_CHECK(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  TORCH_CHECK(split_size >= 0,
              "split expects split_size be non-negative, but got split_size=", split_size);
  dim = c10::maybe_wrap_dim(dim, self.dim());
  int64_t size = self.size(dim);
  TORCH_CHECK(split_size > 0 || size == 0,
              "split_size can only be 0 if dimension size is 0, but got dimension size of ", size);
  if (size == 0) return {Alias(self)};
  std::vector<at::Tensor> parts;
  for (int64_t start = 0; start < size; start += split_size) {
    parts.push_back(SliceWithin(self, dim, start, std::min(start + split_size, size), 1));
  }
  return parts;
}

std::vector<at::Tensor> Unbind(const at::Tensor& self, int64_t dim) {
  dim = c10::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(self.dim() > 0, "Dimension specified as 0 but tensor has no dimensions");
  std::vector<at::Tensor> parts;
  for (int64_t i = 0; i < self.size(dim); ++i) parts.push_back(Select(self, dim, i));
  return parts;
}

ViewStep Bitcasted(ElementType type, IntArrayRef sizes) {
  ViewStep step{Kind::kBitcast};
  step.type = type;
  step.sizes = sizes.vec();
  return step;
}

at::Tensor ViewAsReal(const at::Tensor& self) {
  TORCH_CHECK(self.is_complex(), "view_as_real is only supported for complex tensors");
  TORCH_CHECK(!self.is_conj(),
              "view_as_real doesn't work on unresolved conjugated tensors.  To "
              "resolve the conjugate tensor so you can view it as real, use "
              "self.resolve_conj(); however, be warned that the resulting tensor "
              "will NOT alias the original.");
  at::ScalarType type = c10::toRealValueType(self.scalar_type());
  Sizes sizes(self.sizes().begin(), self.sizes().end()), strides;
  for (int64_t stride : self.strides()) strides.push_back(2 * stride);
  sizes.push_back(2);
  strides.push_back(1);
  return Extend(self, Bitcasted(ToElementType(type), sizes), sizes, strides,
                2 * self.storage_offset(), type);
}

at::Tensor ViewAsComplex(const at::Tensor& self) {
  TORCH_CHECK(self.scalar_type() == at::kFloat || self.scalar_type() == at::kDouble,
              "view_as_complex is only supported for half, float and double tensors, but got a "
              "tensor of scalar type: ",
              self.scalar_type());
  TORCH_CHECK(self.dim() != 0, "Input tensor must have one or more dimensions");
  TORCH_CHECK(self.size(-1) == 2, "Tensor must have a last dimension of size 2");
  TORCH_CHECK(self.stride(-1) == 1, "Tensor must have a last dimension with stride 1");
  at::ScalarType type = c10::toComplexType(self.scalar_type());
  Sizes sizes(self.sizes().begin(), self.sizes().end() - 1), strides;
  for (size_t i = 0; i < sizes.size(); ++i) {
    TORCH_CHECK(self.stride(i) % 2 == 0,
                "Tensor must have a stride divisible by 2 for all but last "
                "dimension");
    strides.push_back(self.stride(i) / 2);
  }
  TORCH_CHECK(self.storage_offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
  return Extend(self, Bitcasted(ToElementType(type), sizes), sizes, strides,
                self.storage_offset() / 2, type);
}

// That every row of self starts where an element of `type` does, which is as long as `count` of
// its own.
void CheckWholeElements(const at::Tensor& self, at::ScalarType type, int64_t count) {
  TORCH_CHECK(self.storage_offset() % count == 0, "self.storage_offset() must be divisible by ",
              count, " to view ", self.scalar_type(), " as ", type,
              " (different element sizes), but got ", self.storage_offset());
  for (int64_t i = 0; i < self.dim() - 1; ++i) {
    TORCH_CHECK(self.stride(i) % count == 0, "self.stride(", i, ") must be divisible by ", count,
                " to view ", self.scalar_type(), " as ", type,
                " (different element sizes), but got ", self.stride(i));
  }
}

at::Tensor ViewDtype(const at::Tensor& self, at::ScalarType type) {
  if (type == self.scalar_type()) return Alias(self);
  int64_t old_width = static_cast<int64_t>(self.element_size());
  int64_t new_width = static_cast<int64_t>(c10::elementSize(type));
  Sizes sizes(self.sizes().begin(), self.sizes().end());
  Sizes strides(self.strides().begin(), self.strides().end());
  int64_t offset = self.storage_offset();
  if (old_width != new_width) {
    TORCH_CHECK(self.dim() > 0, "self.dim() cannot be 0 to view ", self.scalar_type(), " as ", type,
                " (different element sizes)");
    TORCH_CHECK(self.stride(-1) == 1, "self.stride(-1) must be 1 to view ", self.scalar_type(),
                " as ", type, " (different element sizes), but got ", self.stride(-1));
    int64_t last = self.dim() - 1;
    TORCH_CHECK((sizes[last] * old_width) % new_width == 0, "self.size(-1) must be divisible by ",
                new_width / old_width, " to view ", self.scalar_type(), " as ", type,
                " (different element sizes), but got ", sizes[last]);
    if (new_width > old_width) CheckWholeElements(self, type, new_width / old_width);
    sizes[last] = sizes[last] * old_width / new_width;
    for (int64_t i = 0; i < last; ++i) strides[i] = strides[i] * old_width / new_width;
    offset = offset * old_width / new_width;
  }
  return Extend(self, Bitcasted(ToElementType(type), sizes), sizes, strides, offset, type);
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("alias", &Alias);
  m.impl("detach", &Detach);
  m.impl("view", &ViewAs);
  m.impl("_unsafe_view", &UnsafeView);
  m.impl("_reshape_alias", &ReshapeAlias);
  m.impl("permute", &Permute);
  m.impl("transpose.int", &TransposeDims);
  m.impl("t", &TransposeMatrix);
  m.impl("expand", &ExpandView);
  m.impl("squeeze", &SqueezeAll);
  m.impl("squeeze.dim", &SqueezeDim);
  m.impl("squeeze.dims", &SqueezeDims);
  m.impl("unsqueeze", &Unsqueeze);
  m.impl("slice.Tensor", &Slice);
  m.impl("select.int", &Select);
  m.impl("as_strided", &AsStrided);
  m.impl("as_strided_scatter", &AsStridedScatter);
  m.impl("diagonal", &Diagonal);
  m.impl("unfold", &Unfold);
  m.impl("split.Tensor", &Split);
  m.impl("split_with_sizes", &SplitWithSizes);
  m.impl("unbind.int", &Unbind);
  m.impl("view_as_real", &ViewAsReal);
  m.impl("view_as_complex", &ViewAsComplex);
  m.impl("view.dtype", &ViewDtype);
}

}  // namespace
}  // namespace torch_xla
