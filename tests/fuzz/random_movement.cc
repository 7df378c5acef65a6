// Operations that move elements: shapes, slices, gathers and scatters.
#include <algorithm>
#include <numeric>

#include "hlo/error.h"
#include "random_generator.h"

namespace fuzz {
namespace {

constexpr ElementType kIndexTypes[] = {ElementType::kS32, ElementType::kS64, ElementType::kU32,
                                       ElementType::kS8,  ElementType::kU64, ElementType::kS16};

}  // namespace

void Generator::Broadcast() {
  Value x = Any();
  Dimensions wide, map;
  int64_t count = std::max<int64_t>(x->shape().num_elements(), 1);
  for (size_t i = 0; i <= x->dimensions().size(); ++i) {
    if (bytes_.Chance(90) && wide.size() < 5) {
      const int64_t size = kSizes[bytes_.Below(std::size(kSizes))];
      if (count * size <= kMostElements) {
        wide.push_back(size);
        count *= std::max<int64_t>(size, 1);
      }
    }
    if (i == x->dimensions().size()) break;
    map.push_back(static_cast<int64_t>(wide.size()));
    wide.push_back(x->dimensions()[i]);
    if (wide.back() == 1 && bytes_.Chance(128) && count * 4 <= kMostElements) {
      wide.back() = 4;
      count *= 4;
    }
  }
  Push(b_.BroadcastInDim(x, wide, map));
}

void Generator::Reshape() {
  Value x = Any();
  int64_t left = x->shape().num_elements();
  if (left == 0) return Push(b_.Reshape(x, {0, 1 + bytes_.Below(4)}));
  Dimensions dimensions;
  while (left > 1 && dimensions.size() < 5) {
    if (bytes_.Chance(50)) dimensions.push_back(1);
    int64_t divisor = 1 + bytes_.Below(16);
    while (left % divisor != 0) --divisor;
    if (divisor == 1) divisor = left;
    dimensions.push_back(divisor);
    left /= divisor;
  }
  if (left > 1) dimensions.push_back(left);
  Push(b_.Reshape(x, dimensions));
}

Dimensions Generator::Permutation(int64_t rank) {
  Dimensions permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  for (int64_t i = rank; i > 1; --i) std::swap(permutation[i - 1], permutation[bytes_.Below(i)]);
  return permutation;
}

Dimensions Generator::SomeDimensions(int64_t rank) {
  Dimensions some;
  for (int64_t i = 0; i < rank; ++i) {
    if (bytes_.Chance(110)) some.push_back(i);
  }
  return some;
}

void Generator::Transpose() {
  Value x = Any();
  Push(b_.Transpose(x, Permutation(x->shape().rank())));
}

void Generator::Reverse() {
  Value x = Any();
  Push(b_.Reverse(x, SomeDimensions(x->shape().rank())));
}

void Generator::Slice() {
  Value x = Any();
  Dimensions start, limit, strides;
  for (int64_t size : x->dimensions()) {
    const int64_t first = bytes_.Chance(100) ? bytes_.Below(size + 1) : 0;
    start.push_back(first);
    limit.push_back(first + (bytes_.Chance(100) ? bytes_.Below(size - first + 1) : size - first));
    strides.push_back(bytes_.Chance(50) ? 1 + bytes_.Below(3) : 1);
  }
  Push(b_.Slice(x, start, limit, strides));
}

void Generator::Pad() {
  Value x = Any();
  Dimensions low, high, interior;
  for (size_t i = 0; i < x->dimensions().size(); ++i) {
    low.push_back(bytes_.Chance(128) ? bytes_.Below(5) - 2 : 0);
    high.push_back(bytes_.Chance(128) ? bytes_.Below(5) - 2 : 0);
    interior.push_back(bytes_.Chance(50) ? bytes_.Below(3) : 0);
  }
  Push(b_.Pad(x, Like(Shape::Scalar(x->element_type())), low, high, interior));
}

void Generator::Concatenate() {
  Value x = Any();
  if (x->shape().rank() == 0) x = b_.Reshape(x, {1});
  const int64_t dimension = bytes_.Below(x->shape().rank());
  Values parts = {x};
  for (int64_t i = 0, more = 1 + bytes_.Below(3); i < more; ++i) {
    Dimensions dimensions = x->dimensions();
    if (bytes_.Chance(100)) dimensions[dimension] = bytes_.Below(4);
    parts.push_back(Like(x->shape().WithDimensions(dimensions)));
  }
  if (bytes_.Chance(128)) std::swap(parts.front(), parts.back());
  Push(b_.Concatenate(parts, dimension));
}

Values Generator::Starts(int64_t rank) {
  const ElementType type = kIndexTypes[bytes_.Below(std::size(kIndexTypes))];
  Values starts;
  for (int64_t i = 0; i < rank; ++i) starts.push_back(Like(Shape::Scalar(type)));
  return starts;
}

Dimensions Generator::Sizes(const Dimensions& dimensions) {
  Dimensions sizes;
  for (int64_t size : dimensions) {
    sizes.push_back(bytes_.Chance(128) ? size : bytes_.Below(size + 1));
  }
  return sizes;
}

void Generator::DynamicSlice() {
  Value x = Any();
  Push(b_.DynamicSlice(x, Starts(x->shape().rank()), Sizes(x->dimensions())));
}

void Generator::DynamicUpdateSlice() {
  Value x = Any();
  Value update = Like(x->shape().WithDimensions(Sizes(x->dimensions())));
  Push(b_.DynamicUpdateSlice(x, update, Starts(x->shape().rank())));
}

Value Generator::Indices(int64_t count, int64_t width) {
  const ElementType type = kIndexTypes[bytes_.Below(std::size(kIndexTypes))];
  return Like(Shape(type, {count, width}));
}

void Generator::Gather() {
  Value x = Any();
  const int64_t rank = x->shape().rank();
  if (rank == 0) return;
  const int64_t count = bytes_.Below(6);
  hlo::GatherAttributes attributes;
  attributes.index_vector_dim = 1;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t size = x->dimensions()[i];
    if (size > 0 && bytes_.Chance(120)) attributes.start_index_map.push_back(i);
    const bool collapsed = size > 0 && bytes_.Chance(110);
    if (collapsed) {
      attributes.collapsed_slice_dims.push_back(i);
      attributes.slice_sizes.push_back(1);
    } else {
      attributes.offset_dims.push_back(1 + static_cast<int64_t>(attributes.offset_dims.size()));
      attributes.slice_sizes.push_back(bytes_.Chance(150) ? size : bytes_.Below(size + 1));
    }
  }
  const auto width = static_cast<int64_t>(attributes.start_index_map.size());
  Push(b_.Gather(x, Indices(count, width), attributes));
}

Opcode Generator::Combiner(ElementType type) {
  constexpr Opcode kArithmetic[] = {Opcode::kAdd, Opcode::kMaximum, Opcode::kMinimum,
                                    Opcode::kMultiply};
  constexpr Opcode kBits[] = {Opcode::kAnd, Opcode::kOr};
  if (type == ElementType::kPred) return kBits[bytes_.Below(2)];
  if (hlo::IsComplex(type)) return bytes_.Chance(200) ? Opcode::kAdd : Opcode::kMultiply;
  if (hlo::IsInteger(type) && bytes_.Chance(50)) return kBits[bytes_.Below(2)];
  return kArithmetic[bytes_.Below(std::size(kArithmetic))];
}

void Generator::Scatter() {
  Value x = Any();
  const int64_t rank = x->shape().rank();
  if (rank == 0) return;
  const int64_t count = bytes_.Below(6);
  hlo::ScatterAttributes attributes;
  attributes.index_vector_dim = 1;
  Dimensions updates = {count};
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t size = x->dimensions()[i];
    if (size > 0 && bytes_.Chance(120)) attributes.scatter_dims_to_operand_dims.push_back(i);
    if (size > 0 && bytes_.Chance(110)) {
      attributes.inserted_window_dims.push_back(i);
    } else {
      attributes.update_window_dims.push_back(static_cast<int64_t>(updates.size()));
      updates.push_back(bytes_.Chance(150) ? size : bytes_.Below(size + 1));
    }
  }
  const auto width = static_cast<int64_t>(attributes.scatter_dims_to_operand_dims.size());
  Value indices = Indices(count, width);
  Value update = Like(x->shape().WithDimensions(updates));
  Push(b_.Scatter(x, indices, update,
                  b_.ScalarCombiner(Combiner(x->element_type()), x->element_type()), attributes));
}

}  // namespace fuzz
