#include "cpu/library/contraction_shape.h"

#include <algorithm>
#include <optional>

#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

struct Side {
  hlo::Dimensions sizes, strides;  // of the operand
  std::vector<int64_t> batch, free, contracted;
};

Side MakeSide(const hlo::Shape& shape, const hlo::Dimensions& batch,
              const hlo::Dimensions& contracted) {
  Side side{shape.dimensions(), hlo::RowMajorStrides(shape.dimensions()), batch, {}, contracted};
  for (int64_t i = 0; i < shape.rank(); ++i) {
    bool used = std::count(batch.begin(), batch.end(), i) +
                    std::count(contracted.begin(), contracted.end(), i) >
                0;
    if (!used) side.free.push_back(i);
  }
  return side;
}

// The stride of the group seen as one dimension in the given order; nullopt if it has none.
std::optional<int64_t> MergedStride(const Side& side, const std::vector<int64_t>& group) {
  std::optional<int64_t> inner;  // the stride of the group so far, from the minor end
  int64_t extent = 1;
  for (size_t i = group.size(); i-- > 0;) {
    int64_t d = group[i];
    if (side.sizes[d] == 1) continue;
    if (!inner) {
      inner = side.strides[d];
    } else if (side.strides[d] != *inner * extent) {
      return std::nullopt;
    }
    extent *= side.sizes[d];
  }
  return inner.value_or(1);
}

// Lays the side out as dense [batch, free, contracted] or [batch, contracted, free], whichever
// keeps its minor-most dimension minor, so that the copy moves runs.
ContractionOperand PackedOperand(const Side& side) {
  ContractionOperand operand;
  operand.packed = true;
  int64_t minor = -1;
  for (int64_t i = static_cast<int64_t>(side.sizes.size()) - 1; i >= 0 && minor < 0; --i) {
    if (side.sizes[i] > 1) minor = i;
  }
  bool free_minor = std::count(side.free.begin(), side.free.end(), minor) > 0;
  auto append = [&](const std::vector<int64_t>& group) {
    for (int64_t d : group) {
      operand.packing_dimensions.push_back(side.sizes[d]);
      operand.packing_strides.push_back(side.strides[d]);
    }
  };
  append(side.batch);
  append(free_minor ? side.contracted : side.free);
  append(free_minor ? side.free : side.contracted);
  operand.free_stride = free_minor ? 1 : hlo::ProductOf(side.sizes, side.contracted);
  operand.contracted_stride = free_minor ? hlo::ProductOf(side.sizes, side.free) : 1;
  int64_t stride =
      hlo::ProductOf(side.sizes, side.free) * hlo::ProductOf(side.sizes, side.contracted);
  for (size_t i = side.batch.size(); i-- > 0;) {
    operand.batch_strides.insert(operand.batch_strides.begin(), stride);
    stride *= side.sizes[side.batch[i]];
  }
  return operand;
}

ContractionOperand MakeOperand(const Side& side, bool pack) {
  auto free = MergedStride(side, side.free), contracted = MergedStride(side, side.contracted);
  bool one_free = hlo::ProductOf(side.sizes, side.free) == 1,
       one_contracted = hlo::ProductOf(side.sizes, side.contracted) == 1;
  if (pack || !free || !contracted ||
      !(*free == 1 || *contracted == 1 || one_free || one_contracted)) {
    return PackedOperand(side);
  }
  ContractionOperand operand;
  operand.free_stride = *free;
  operand.contracted_stride = *contracted;
  // A dimension of size 1 or of no use leaves its stride open: one of the two must be 1.
  if (one_free && *contracted != 1) operand.free_stride = 1;
  if (one_contracted && *free != 1) operand.contracted_stride = 1;
  for (int64_t d : side.batch) operand.batch_strides.push_back(side.strides[d]);
  return operand;
}

// The contracted dimensions may be walked in any order: the lhs's order in memory, minor last,
// gives both sides the best chance to be one dimension.
void OrderContracted(Side& lhs, Side& rhs) {
  std::vector<size_t> order(lhs.contracted.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return lhs.contracted[a] < lhs.contracted[b]; });
  Side old_lhs = lhs, old_rhs = rhs;
  for (size_t i = 0; i < order.size(); ++i) {
    lhs.contracted[i] = old_lhs.contracted[order[i]];
    rhs.contracted[i] = old_rhs.contracted[order[i]];
  }
}

// Merges neighbouring batch dimensions, which shortens Offset.
void MergeBatch(ContractionShape& shape) {
  for (size_t i = shape.batch.size(); i-- > 1;) {
    auto follows = [&](const ContractionOperand& x) {
      return x.batch_strides[i - 1] == x.batch_strides[i] * shape.batch[i];
    };
    if (!follows(shape.lhs) || !follows(shape.rhs)) continue;
    shape.batch[i - 1] *= shape.batch[i];
    shape.batch.erase(shape.batch.begin() + i);
    for (ContractionOperand* x : {&shape.lhs, &shape.rhs}) {
      x->batch_strides.erase(x->batch_strides.begin() + i - 1);
    }
  }
}

}  // namespace

int64_t ContractionShape::batch_count() const { return hlo::Product(batch); }

int64_t ContractionShape::Offset(const ContractionOperand& operand, int64_t index) const {
  int64_t offset = 0;
  for (size_t i = batch.size(); i-- > 0;) {
    offset += index % batch[i] * operand.batch_strides[i];
    index /= batch[i];
  }
  return offset;
}

ContractionShape AnalyzeDot(const hlo::Instruction& dot, bool pack_lhs, bool pack_rhs) {
  const auto& attributes = dot.as<hlo::DotAttributes>();
  Side lhs = MakeSide(dot.operand(0)->shape(), attributes.lhs_batching_dimensions,
                      attributes.lhs_contracting_dimensions);
  Side rhs = MakeSide(dot.operand(1)->shape(), attributes.rhs_batching_dimensions,
                      attributes.rhs_contracting_dimensions);
  OrderContracted(lhs, rhs);
  ContractionShape shape;
  for (int64_t d : lhs.batch) shape.batch.push_back(lhs.sizes[d]);
  shape.m = hlo::ProductOf(lhs.sizes, lhs.free);
  shape.n = hlo::ProductOf(rhs.sizes, rhs.free);
  shape.k = hlo::ProductOf(lhs.sizes, lhs.contracted);
  shape.lhs = MakeOperand(lhs, pack_lhs);
  shape.rhs = MakeOperand(rhs, pack_rhs);
  MergeBatch(shape);
  return shape;
}

}  // namespace cpu
