#include "passes/simplify_rearrangement.h"

#include <algorithm>
#include <optional>

namespace passes {
namespace {

using hlo::Builder;
using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Value;

const Dimensions& DimensionsOf(const Instruction& instruction) {
  return instruction.as<hlo::DimensionsAttributes>().dimensions;
}

bool IsAscending(const Dimensions& dimensions) {
  return std::ranges::adjacent_find(dimensions, std::ranges::greater_equal()) == dimensions.end();
}

// A scalar in every place: whatever moves the elements, it stays one.
bool IsFill(Value value) {
  return value->opcode() == Opcode::kBroadcastInDim && value->operand(0)->shape().is_scalar();
}

Value Refill(Builder& builder, Value fill, const Instruction& instruction) {
  return builder.BroadcastInDim(fill->operand(0), instruction.dimensions(), {});
}

// The dimensions, each of size 1, that a reshape leaves out; none if it does anything else.
std::optional<Dimensions> LeftOutOnes(const Instruction& reshape) {
  const Dimensions& from = reshape.operand(0)->dimensions();
  const Dimensions& to = reshape.dimensions();
  Dimensions left_out;
  size_t next = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    if (next < to.size() && from[i] == to[next]) {
      ++next;
    } else if (from[i] == 1) {
      left_out.push_back(static_cast<int64_t>(i));
    } else {
      return std::nullopt;
    }
  }
  if (next != to.size()) return std::nullopt;
  return left_out;
}

// Dimensions of size 1 that come before a transpose and go after it hide it from what would take
// it, a product for instance: as einsum has them.
Value TransposeWithoutOnes(Builder& builder, const Instruction& reshape) {
  Value transpose = reshape.operand(0);
  if (transpose->opcode() != Opcode::kTranspose || transpose->users().size() != 1) return nullptr;
  Value x = transpose->operand(0);
  if (x->opcode() != Opcode::kReshape || x->shape().is_dynamic()) return nullptr;
  const std::optional<Dimensions> left_out = LeftOutOnes(reshape);
  if (!left_out) return nullptr;
  Dimensions permutation = DimensionsOf(*transpose), sizes = x->dimensions();
  for (auto it = left_out->rbegin(); it != left_out->rend(); ++it) {
    const int64_t gone = permutation[static_cast<size_t>(*it)];
    permutation.erase(permutation.begin() + *it);
    sizes.erase(sizes.begin() + gone);
    for (int64_t& d : permutation) d -= d > gone ? 1 : 0;
  }
  return builder.Transpose(builder.Reshape(x, std::move(sizes)), std::move(permutation));
}

Value SimplifyReshape(Builder& builder, Instruction& reshape) {
  Value x = reshape.operand(0);
  if (x->shape() == reshape.shape()) return x;
  if (IsFill(x)) return Refill(builder, x, reshape);
  if (x->opcode() != Opcode::kReshape) return TransposeWithoutOnes(builder, reshape);
  return builder.Reshape(x->operand(0), reshape.dimensions());
}

// True if the dimensions that are not of size 1 keep their order: the transpose moves nothing.
bool KeepsOrder(const Dimensions& permutation, const Dimensions& sizes) {
  int64_t last = -1;
  for (int64_t d : permutation) {
    if (sizes[d] == 1) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

Value SimplifyTranspose(Builder& builder, Instruction& transpose) {
  Value x = transpose.operand(0);
  const Dimensions& permutation = DimensionsOf(transpose);
  if (IsAscending(permutation)) return x;
  if (IsFill(x)) return Refill(builder, x, transpose);
  if (x->opcode() == Opcode::kTranspose) {
    Dimensions composed;
    for (int64_t d : permutation) composed.push_back(DimensionsOf(*x)[d]);
    return builder.Transpose(x->operand(0), std::move(composed));
  }
  if (!x->shape().is_dynamic() && KeepsOrder(permutation, x->dimensions())) {
    return builder.Reshape(x, transpose.dimensions());
  }
  return nullptr;
}

// Where each dimension of a reshape's operand went, if the reshape only added dimensions of size 1.
std::optional<Dimensions> InsertedOnes(const Instruction& reshape) {
  const Dimensions& from = reshape.operand(0)->dimensions();
  const Dimensions& to = reshape.dimensions();
  Dimensions places;
  size_t next = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    bool match = next < from.size() && from[next] == to[i];
    // Among several places for a size-1 dimension the first will do.
    if (match) {
      places.push_back(static_cast<int64_t>(i));
      ++next;
    } else if (to[i] != 1) {
      return std::nullopt;
    }
  }
  if (next != from.size()) return std::nullopt;
  return places;
}

Value SimplifyBroadcast(Builder& builder, Instruction& broadcast) {
  Value x = broadcast.operand(0);
  const Dimensions& places = DimensionsOf(broadcast);
  bool ascending = IsAscending(places);
  if (x->shape() == broadcast.shape() && ascending) return x;
  if (x->shape().is_dynamic()) return nullptr;
  auto through = [&](const Dimensions& inner) {
    Dimensions composed;
    for (int64_t d : inner) composed.push_back(places[d]);
    return builder.BroadcastInDim(x->operand(0), broadcast.dimensions(), std::move(composed));
  };
  if (x->opcode() == Opcode::kBroadcastInDim) return through(DimensionsOf(*x));
  if (x->opcode() == Opcode::kReshape) {
    if (std::optional<Dimensions> inserted = InsertedOnes(*x)) return through(*inserted);
  }
  bool same_size = x->shape().num_elements() == broadcast.shape().num_elements();
  if (same_size && ascending) return builder.Reshape(x, broadcast.dimensions());
  return nullptr;
}

// A slice of a concatenation that lies in one of the pieces is a slice of that piece.
Value SliceOfConcatenation(Builder& builder, const Instruction& slice) {
  const auto& a = slice.as<hlo::SliceAttributes>();
  Value whole = slice.operand(0);
  int64_t dimension = whole->as<hlo::DimensionAttributes>().dimension;
  int64_t start = 0;
  for (Value piece : whole->operands()) {
    int64_t end = start + piece->shape().dimension(dimension);
    if (a.start_indices[dimension] >= start && a.limit_indices[dimension] <= end) {
      Dimensions starts = a.start_indices, limits = a.limit_indices;
      starts[dimension] -= start;
      limits[dimension] -= start;
      return builder.Slice(piece, std::move(starts), std::move(limits), a.strides);
    }
    start = end;
  }
  return nullptr;
}

Value SimplifySlice(Builder& builder, Instruction& slice) {
  Value x = slice.operand(0);
  if (x->shape() == slice.shape()) return x;
  if (IsFill(x)) return Refill(builder, x, slice);
  if (x->opcode() == Opcode::kConcatenate) return SliceOfConcatenation(builder, slice);
  if (x->opcode() != Opcode::kSlice) return nullptr;
  const auto& inner = x->as<hlo::SliceAttributes>();
  auto composed = slice.as<hlo::SliceAttributes>();
  for (size_t i = 0; i < composed.strides.size(); ++i) {
    int64_t size = slice.shape().dimension(static_cast<int64_t>(i));
    int64_t stride = inner.strides[i] * composed.strides[i];
    int64_t start = inner.start_indices[i] + inner.strides[i] * composed.start_indices[i];
    composed.strides[i] = stride;
    // An empty slice may start beyond the elements that the inner one has.
    composed.start_indices[i] = size == 0 ? 0 : start;
    composed.limit_indices[i] = size == 0 ? 0 : start + (size - 1) * stride + 1;
  }
  return builder.Slice(x->operand(0), composed.start_indices, composed.limit_indices,
                       composed.strides);
}

Value SimplifyReverse(Builder& builder, Instruction& reverse) {
  Value x = reverse.operand(0);
  const Dimensions& dimensions = DimensionsOf(reverse);
  bool nothing =
      std::ranges::all_of(dimensions, [&](int64_t d) { return x->shape().dimension(d) == 1; });
  if (nothing || IsFill(x)) return x;
  bool twice = x->opcode() == Opcode::kReverse && DimensionsOf(*x) == dimensions;
  return twice ? x->operand(0) : nullptr;
}

// A pad that only crops is a slice.
Value SimplifyPad(Builder& builder, Instruction& pad) {
  Value x = pad.operand(0);
  const auto& a = pad.as<hlo::PadAttributes>();
  auto all = [](const Dimensions& list, auto&& test) { return std::ranges::all_of(list, test); };
  auto is_zero = [](int64_t n) { return n == 0; };
  auto crops = [](int64_t n) { return n <= 0; };
  if (!all(a.interior_padding, is_zero)) return nullptr;
  if (all(a.edge_padding_low, is_zero) && all(a.edge_padding_high, is_zero)) return x;
  if (!all(a.edge_padding_low, crops) || !all(a.edge_padding_high, crops)) return nullptr;
  Dimensions starts, limits;
  for (int64_t i = 0; i < x->shape().rank(); ++i) {
    starts.push_back(-a.edge_padding_low[i]);
    limits.push_back(x->shape().dimension(i) + a.edge_padding_high[i]);
    if (starts[i] > limits[i]) return nullptr;
  }
  return builder.Slice(x, starts, limits, Dimensions(starts.size(), 1));
}

Value SimplifyConcatenate(Builder& builder, Instruction& concatenate) {
  if (concatenate.operand_count() == 1) return concatenate.operand(0);
  int64_t dimension = concatenate.as<hlo::DimensionAttributes>().dimension;
  std::vector<Value> pieces;
  for (Value piece : concatenate.operands()) {
    if (piece->shape().dimension(dimension) != 0) pieces.push_back(piece);
  }
  if (pieces.size() == concatenate.operand_count() || pieces.empty()) return nullptr;
  return pieces.size() == 1 ? pieces[0] : builder.Concatenate(std::move(pieces), dimension);
}

// The start indices from operand `first` on, clamped so that `sizes` fit; none unless all are
// constant.
std::optional<Dimensions> ConstantStarts(const Instruction& instruction, size_t first,
                                         const Dimensions& sizes) {
  const hlo::Shape& whole = instruction.operand(0)->shape();
  Dimensions starts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Instruction* index = instruction.operand(first + i);
    if (!index->IsConstant()) return std::nullopt;
    int64_t limit = whole.dimension(static_cast<int64_t>(i)) - sizes[i];
    int64_t start = index->literal().AsInt();
    // An unsigned index beyond int64's range reads as negative and is as far out as can be.
    bool huge = start < 0 && hlo::IsUnsignedInteger(index->element_type());
    starts.push_back(huge ? limit : std::clamp<int64_t>(start, 0, limit));
  }
  return starts;
}

Value SimplifyDynamicSlice(Builder& builder, Instruction& slice) {
  Value x = slice.operand(0);
  if (x->shape() == slice.shape()) return x;
  if (IsFill(x)) return Refill(builder, x, slice);
  const Dimensions& sizes = DimensionsOf(slice);
  std::optional<Dimensions> starts = ConstantStarts(slice, 1, sizes);
  if (!starts) return nullptr;
  Dimensions limits;
  for (size_t i = 0; i < sizes.size(); ++i) limits.push_back((*starts)[i] + sizes[i]);
  return builder.Slice(x, *starts, std::move(limits), Dimensions(sizes.size(), 1));
}

Value SimplifyDynamicUpdateSlice(Builder&, Instruction& update) {
  return update.operand(1)->shape() == update.shape() ? update.operand(1) : nullptr;
}

}  // namespace

Value SimplifyRearrangement(Builder& builder, Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kReshape:
      return SimplifyReshape(builder, instruction);
    case Opcode::kTranspose:
      return SimplifyTranspose(builder, instruction);
    case Opcode::kBroadcastInDim:
      return SimplifyBroadcast(builder, instruction);
    case Opcode::kSlice:
      return SimplifySlice(builder, instruction);
    case Opcode::kReverse:
      return SimplifyReverse(builder, instruction);
    case Opcode::kPad:
      return SimplifyPad(builder, instruction);
    case Opcode::kConcatenate:
      return SimplifyConcatenate(builder, instruction);
    case Opcode::kDynamicSlice:
      return SimplifyDynamicSlice(builder, instruction);
    case Opcode::kDynamicUpdateSlice:
      return SimplifyDynamicUpdateSlice(builder, instruction);
    default:
      return nullptr;
  }
}

}  // namespace passes
