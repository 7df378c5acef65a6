// What is not zero: its positions, and masked_scatter, which writes to it.
#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "aten/broadcast.h"
#include "aten/dimension.h"
#include "aten/host_kernel.h"
#include "aten/indexing.h"
#include "aten/mask_bytes.h"
#include "aten/masked_scatter.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "aten/value_check.h"
#include "lazy/cut_reason.h"

namespace torch_xla {
namespace {

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

// --- In the host's memory, without a program

// The flat positions of true elements. Each position is written before it is known whether it
// counts, which is quicker than a branch: behind the last one there is room for one more.
at::Tensor TruePositionsOnHost(const at::Tensor& mask) {
  const auto* bytes = static_cast<const uint8_t*>(mask.const_data_ptr());
  const int64_t size = mask.numel(), count = CountTrueBytes(bytes, size);
  at::Tensor positions(at::detail::empty_cpu({count + 1}, at::kLong));
  int64_t* next = positions.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < size; ++i) {
    *next = i;
    next += bytes[i] != 0 ? 1 : 0;
  }
  positions.unsafeGetTensorImpl()->set_sizes_contiguous({count});
  return positions;
}

// The coordinates of flat positions that grow: [count, rank], a column after the other, as torch's
// kernel lays them. Only where a line begins is divided.
at::Tensor CoordinatesOnHost(const at::Tensor& positions, at::IntArrayRef sizes) {
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t count = positions.numel(), length = sizes.back();
  at::Tensor coordinates = at::empty_strided({count, rank}, {1, count}, at::kLong);
  const int64_t* position = positions.const_data_ptr<int64_t>();
  int64_t* column = coordinates.mutable_data_ptr<int64_t>();
  std::vector<int64_t> line(rank - 1);
  int64_t begin = -length;
  for (int64_t i = 0; i < count; ++i, ++column) {
    if (position[i] >= begin + length) {
      int64_t rest = position[i] / length;
      begin = rest * length;
      for (int64_t d = rank - 2; d >= 0; rest /= sizes[d--]) line[d] = rest % sizes[d];
    }
    for (int64_t d = 0; d < rank - 1; ++d) column[d * count] = line[d];
    column[(rank - 1) * count] = position[i] - begin;
  }
  return coordinates;
}

at::Tensor NonzeroOnHost(const at::Tensor& x) {
  const bool is_mask = x.scalar_type() == at::kBool;
  // What torch's kernel refuses is refused in its words.
  if (!is_mask) at::nonzero(at::zeros({1}, x.options()));
  const at::Tensor mask = (is_mask ? x : x.ne(0)).contiguous();
  const at::Tensor positions = TruePositionsOnHost(mask);
  const int64_t count = positions.numel();
  if (mask.dim() == 1) return positions.as_strided({count, 1}, {1, count});
  if (mask.dim() == 0) return at::empty_strided({count, 0}, {1, count}, at::kLong);
  return CoordinatesOnHost(positions, mask.sizes());
}

at::Tensor NonzeroTensor(const at::Tensor& self) {
  if (self.numel() == 0) return at::empty({0, self.dim()}, self.options().dtype(at::kLong));
  const lazy::CutScope scope(lazy::CutReason::Kind::kRead, "aten::nonzero");
  if (LiesOnHost(self)) {
    return ByHostKernel(self, &NonzeroOnHost);
  }
  int64_t count = Record<&CountTrue>(self).item<int64_t>();
  return Record<&Nonzero>(self, count);
}

}  // namespace

Value MaskedScatter(Builder& b, Value x, Value mask, Value source) {
  auto [full, full_mask] = Broadcast(b, x, mask);
  int64_t size = full->shape().num_elements(), available = source->shape().num_elements();
  if (size == 0) return full;
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

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&CountTrue>(+[](const at::Tensor& x) { return at::count_nonzero(x); });
  RunBy<&Nonzero>(+[](const at::Tensor& x, int64_t) { return at::nonzero(x); });
  m.impl("nonzero", &NonzeroTensor);
  Register<&NonzeroStatic>(m, "nonzero_static");
  Register<&MaskedScatter>(m, "masked_scatter");
}

}  // namespace torch_xla
