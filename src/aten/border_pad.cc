// Padding by what lies within: reflected at the border, the border itself, or what lies at the
// other end.
#include <ATen/ops/_pad_circular_native.h>

#include <algorithm>
#include <string>

#include "aten/layout.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "aten/twin.h"
#include "hlo/size_arithmetic.h"

namespace torch_xla {
namespace {

enum class Border { kReflect, kReplicate };

void CheckReflection(Value x, int64_t dimension, int64_t low, int64_t high) {
  int64_t size = x->shape().dimension(dimension);
  if (low < size && high < size) return;
  throw hlo::Error(
      "Padding size should be less than the corresponding input dimension, but got: padding (" +
      std::to_string(low) + ", " + std::to_string(high) + ") at dimension " +
      std::to_string(dimension) + " of input " + x->shape().ToString());
}

// Only the batch may be empty, and something has to be left.
void CheckBorderPad(Value x, const Dimensions& padding) {
  const int64_t rank = x->shape().rank(), count = static_cast<int64_t>(padding.size()) / 2;
  if (padding.empty() || padding.size() % 2 != 0 || rank < count + 1 || rank > count + 2) {
    throw hlo::Error(
        "expected two paddings for each spatial dimension, and a channel and maybe a " +
        std::string("batch dimension before those, but got ") + hlo::ToString(padding) + " and " +
        x->shape().ToString());
  }
  for (int64_t d = rank - 1 - count; d < rank; ++d) {
    if (x->shape().dimension(d) == 0) {
      throw hlo::Error(
          "Expected a tensor with possibly 0 batch size and other non-zero dimensions "
          "for input, but got: " +
          x->shape().ToString());
    }
  }
  Dimensions sizes;
  for (int64_t i = 0; i < count; ++i) {
    sizes.push_back(x->shape().dimension(rank - 1 - i) + padding[2 * i] + padding[2 * i + 1]);
  }
  if (std::ranges::min(sizes) < 0 || std::ranges::max(sizes) < 1) {
    throw hlo::Error("input " + x->shape().ToString() +
                     " is too small: its padded sizes would be " + hlo::ToString(sizes) +
                     ", from the last dimension on");
  }
}

// How one dimension is padded. A negative padding takes away, from what a positive one has made.
struct Edges {
  int64_t dimension, size, low, high;

  int64_t added_low() const { return std::max<int64_t>(low, 0); }
  int64_t added_high() const { return std::max<int64_t>(high, 0); }
  int64_t taken_low() const { return std::max<int64_t>(-low, 0); }
  int64_t taken_high() const { return std::max<int64_t>(-high, 0); }
};

std::vector<Edges> EdgesOf(const Shape& shape, const Dimensions& padding) {
  std::vector<Edges> edges;
  for (size_t i = 0; i + 1 < padding.size(); i += 2) {
    const int64_t d = shape.rank() - 1 - static_cast<int64_t>(i) / 2;
    edges.push_back({d, shape.dimension(d), padding[i], padding[i + 1]});
  }
  return edges;
}

// The elements beside the border's own, from the inside out, or from the outside in where reversed:
// those that a reflection shows.
struct Mirrored {
  int64_t start, limit;
};
Mirrored LowMirrored(const Edges& e) { return {1, 1 + e.added_low()}; }
Mirrored HighMirrored(const Edges& e) { return {e.size - 1 - e.added_high(), e.size - 1}; }

Value Reflected(Builder& b, Value x, const Edges& e, Mirrored part) {
  return b.Reverse(b.SliceInDim(x, e.dimension, part.start, part.limit), {e.dimension});
}

Value Repeated(Builder& b, Value x, const Edges& e, int64_t place, int64_t count) {
  Value border = b.SliceInDim(x, e.dimension, place, place + 1);
  Dimensions sizes = x->dimensions();
  sizes[e.dimension] = count;
  return b.BroadcastTo(border, sizes);
}

Value PadOne(Builder& b, Value x, const Edges& e, Border border) {
  const bool reflects = border == Border::kReflect;
  Values parts;
  if (e.low > 0) {
    parts.push_back(reflects ? Reflected(b, x, e, LowMirrored(e)) : Repeated(b, x, e, 0, e.low));
  }
  parts.push_back(x);
  if (e.high > 0) {
    parts.push_back(reflects ? Reflected(b, x, e, HighMirrored(e))
                             : Repeated(b, x, e, e.size - 1, e.high));
  }
  Value padded = parts.size() == 1 ? x : b.Concatenate(parts, e.dimension);
  return b.SliceInDim(padded, e.dimension, e.taken_low(),
                      padded->shape().dimension(e.dimension) - e.taken_high());
}

// Which element of a dimension stands at each place of the padded one.
Value Sources(Builder& b, const Edges& e, Border border) {
  Value place = Iota(b, {e.size + e.low + e.high}, 0);
  Value from = b.Subtract(place, Like(b, place, e.low)), last = Like(b, place, e.size - 1);
  if (border == Border::kReplicate) {
    return b.Minimum(b.Maximum(from, Like(b, place, 0)), last);
  }
  return b.Subtract(last, b.Abs(b.Subtract(last, b.Abs(from))));
}

// Pads the dimensions before the last: rows are copied whole, each from where its place says.
Value PadRows(Builder& b, Value x, const std::vector<Edges>& edges, Border border) {
  const int64_t rank = x->shape().rank();
  int64_t first = rank;
  for (const Edges& e : edges) first = std::min(first, e.dimension);
  Dimensions padded = x->dimensions();
  for (const Edges& e : edges) padded[e.dimension] = e.size + e.low + e.high;
  if (x->shape().num_elements() == 0) return b.Zeros(Shape(x->element_type(), padded));
  const Dimensions rows(padded.begin() + first, padded.end() - 1);
  Value row = nullptr;  // of x's, for each of the result's
  for (int64_t d = first; d + 1 < rank; ++d) {
    const auto found = std::ranges::find(edges, d, &Edges::dimension);
    Value along =
        found == edges.end() ? Iota(b, {x->shape().dimension(d)}, 0) : Sources(b, *found, border);
    along = b.BroadcastInDim(along, rows, {d - first});
    row = row == nullptr ? along
                         : b.Add(b.Multiply(row, Like(b, row, x->shape().dimension(d))), along);
  }
  const int64_t count = hlo::Product(rows, 0, rows.size());
  row = b.OptimizationBarrier({b.Reshape(row, {count, 1})});
  Dimensions flat(x->dimensions().begin(), x->dimensions().begin() + first);
  flat.push_back(hlo::Product(x->dimensions(), first, rank - 1));
  flat.push_back(x->dimensions().back());
  hlo::GatherAttributes attributes;
  for (int64_t d = 0; d < first; ++d) attributes.offset_dims.push_back(d);
  attributes.offset_dims.push_back(first + 1);
  attributes.collapsed_slice_dims = attributes.start_index_map = {first};
  attributes.index_vector_dim = 1;
  attributes.slice_sizes = flat;
  attributes.slice_sizes[first] = 1;
  return b.Reshape(b.Gather(b.Reshape(x, flat), row, attributes), padded);
}

// Whether rows are copied quicker one by one than in parts side by side, for one dimension after
// the other, each of which copies all there is: where there are several dimensions of them, and a
// row has more than a vector or two.
bool CopiesRows(Value x, const std::vector<Edges>& of_rows) {
  constexpr int64_t kShortestRow = 24;
  return of_rows.size() > 1 && x->dimensions().back() >= kShortestRow;
}

template <Border border>
Value BorderPad(Builder& b, Value x, Dimensions padding) {
  CheckBorderPad(x, padding);
  std::vector<Edges> of_rows;
  for (const Edges& e : EdgesOf(x->shape(), padding)) {
    if (border == Border::kReflect) CheckReflection(x, e.dimension, e.low, e.high);
    if (e.dimension + 1 == x->shape().rank()) {
      x = PadOne(b, x, e, border);
    } else if (e.low != 0 || e.high != 0) {
      of_rows.push_back(e);
    }
  }
  if (CopiesRows(x, of_rows)) return PadRows(b, x, of_rows, border);
  for (const Edges& e : of_rows) x = PadOne(b, x, e, border);
  return x;
}

// x among zeros, along one dimension; negative numbers of them take away.
Value AmongZeros(Builder& b, Value x, int64_t dimension, int64_t low, int64_t high) {
  if (low == 0 && high == 0) return x;
  Dimensions before(x->shape().rank(), 0), after = before, between = before;
  before[dimension] = low, after[dimension] = high;
  return b.Pad(x, b.ConstantScalar(x->element_type(), int64_t{0}), before, after, between);
}

// A part of the padded gradient goes to where its elements came from.
Value ReturnOne(Builder& b, Value gradient, const Edges& e, Border border) {
  const int64_t d = e.dimension, low = e.added_low(), high = e.added_high();
  gradient = AmongZeros(b, gradient, d, e.taken_low(), e.taken_high());
  Value result = b.SliceInDim(gradient, d, low, low + e.size);
  auto add = [&](int64_t start, int64_t count, Mirrored place) {
    if (count == 0) return;
    Value part = b.SliceInDim(gradient, d, start, start + count);
    if (border == Border::kReflect) {
      part = b.Reverse(part, {d});
    } else {
      part = Sum(b, part, {d}, true);
    }
    Value there = b.SliceInDim(result, d, place.start, place.limit);
    Values starts(result->shape().rank(), b.ConstantScalar(ElementType::kS64, int64_t{0}));
    starts[d] = b.ConstantScalar(ElementType::kS64, place.start);
    result = b.DynamicUpdateSlice(result, b.Add(there, part), starts);
  };
  const bool reflects = border == Border::kReflect;
  add(0, low, reflects ? LowMirrored(e) : Mirrored{0, 1});
  add(low + e.size, high, reflects ? HighMirrored(e) : Mirrored{e.size - 1, e.size});
  return result;
}

template <Border border>
Value BorderPadBackward(Builder& b, Value gradient, Value x, Dimensions padding) {
  const ElementType type = gradient->element_type();
  gradient = ToAccumulation(b, gradient);
  for (const Edges& e : EdgesOf(x->shape(), padding)) gradient = ReturnOne(b, gradient, e, border);
  return b.Convert(gradient, type);
}

// Of so many padded dimensions.
template <int64_t rank, Border border>
void RegisterBorderPad(torch::Library& m, const std::string& name) {
  Register<&Twin<rank, &BorderPad<border>>::Lower>(m, name.c_str());
  Register<&Twin<rank, &BorderPadBackward<border>>::Lower>(m, (name + "_backward").c_str());
}

// --- Around the ends, composed of what torch differentiates

// One row-major tensor that is padded somewhere, and nowhere by more than it has.
bool IsPlainCircularPad(const at::Tensor& x, at::IntArrayRef padding) {
  const int64_t count = static_cast<int64_t>(padding.size()) / 2;
  if (padding.size() % 2 != 0 || x.dim() < count + 1 || x.dim() > count + 2 || x.numel() == 0 ||
      LiesOtherwise(x) || std::ranges::max(padding) == 0) {
    return false;
  }
  for (size_t i = 0; i < padding.size(); ++i) {
    const int64_t size = x.size(x.dim() - 1 - static_cast<int64_t>(i) / 2);
    if (padding[i] < 0 || padding[i] > size) return false;
  }
  return true;
}

// torch writes the parts into a tensor, one after the other, and reads some of them from it again.
at::Tensor PadCircular(const at::Tensor& x, c10::SymIntArrayRef sizes) {
  const at::OptionalIntArrayRef known = c10::asIntArrayRefSlowOpt(sizes);
  if (!known || known->empty() || !IsPlainTensor(x) || !IsPlainCircularPad(x, *known)) {
    return at::native::_pad_circular_symint(x, sizes);
  }
  const at::IntArrayRef padding = *known;
  at::Tensor padded = x;
  for (size_t i = 0; i + 1 < padding.size(); i += 2) {
    const int64_t dimension = x.dim() - 1 - static_cast<int64_t>(i) / 2, low = padding[i],
                  high = padding[i + 1];
    std::vector<at::Tensor> parts = {padded};
    if (low > 0) {
      parts.insert(parts.begin(), padded.narrow(dimension, x.size(dimension) - low, low));
    }
    if (high > 0) parts.push_back(padded.narrow(dimension, 0, high));
    if (parts.size() > 1) padded = at::cat(parts, dimension);
  }
  return padded;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RegisterBorderPad<1, Border::kReflect>(m, "reflection_pad1d");
  RegisterBorderPad<2, Border::kReflect>(m, "reflection_pad2d");
  RegisterBorderPad<3, Border::kReflect>(m, "reflection_pad3d");
  RegisterBorderPad<1, Border::kReplicate>(m, "replication_pad1d");
  RegisterBorderPad<2, Border::kReplicate>(m, "replication_pad2d");
  RegisterBorderPad<3, Border::kReplicate>(m, "replication_pad3d");
  m.impl("_pad_circular", &PadCircular);
}

TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) { m.impl("_pad_circular", &PadCircular); }

}  // namespace torch_xla
