// Operations that take, move or write a part of a dimension: where it is and ends follows from the
// true sizes.
#include "passes/size_padder.h"

#include <algorithm>
#include <utility>

namespace passes {

using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Shape;
using hlo::Value;

namespace {

// With a sign.
bool HoldsSizes(ElementType type) { return type == ElementType::kS32 || type == ElementType::kS64; }

}  // namespace

Value SizePadder::Resized(Value value, int64_t d, int64_t size) {
  const int64_t now = value->shape().dimension(d);
  if (now >= size) return builder_.SliceInDim(value, d, 0, size);
  Dimensions none(static_cast<size_t>(value->shape().rank())), high = none;
  high[static_cast<size_t>(d)] = size - now;
  return builder_.Pad(value, builder_.Zeros(Shape::Scalar(value->element_type())), none, high,
                      none);
}

Value SizePadder::From(Value value, int64_t d, Value start, int64_t size) {
  const Value longer = Resized(value, d, value->shape().dimension(d) + size);
  std::vector<Value> starts(static_cast<size_t>(value->shape().rank()), Number(0));
  starts[static_cast<size_t>(d)] = start;
  Dimensions sizes = longer->dimensions();
  sizes[static_cast<size_t>(d)] = size;
  return builder_.DynamicSlice(longer, std::move(starts), std::move(sizes));
}

Value SizePadder::Limited(Value indices, int64_t vector_dim, const std::vector<Value>& limits) {
  std::vector<Value> entries;
  for (const Value limit : limits) {
    entries.push_back(builder_.Reshape(builder_.Convert(limit, indices->element_type()), {1}));
  }
  const Value all = entries.size() == 1 ? entries[0] : builder_.Concatenate(entries, 0);
  const bool is_implied = vector_dim == indices->shape().rank();
  const Value bound =
      is_implied ? builder_.BroadcastInDim(builder_.Reshape(all, {}), indices->dimensions(), {})
                 : builder_.BroadcastInDim(all, indices->dimensions(), {vector_dim});
  return builder_.Minimum(indices, bound);
}

Value SizePadder::PadGather(const Instruction& gather) {
  auto a = gather.as<hlo::GatherAttributes>();
  const Instruction *operand = gather.operand(0), *indices = gather.operand(1);
  bool is_limited = false;
  std::vector<Value> limits;
  for (const int64_t d : a.start_index_map) {
    const int64_t slice = a.slice_sizes[static_cast<size_t>(d)];
    const bool is_whole = slice == operand->shape().dimension(d);
    limits.push_back(Number(operand->shape().dimension(d) - slice));
    if (!Varies(operand, d) || is_whole) continue;
    if (IsJoined(operand, d)) Refuse(gather, "it indexes a dimension of joined ones");
    limits.back() = builder_.Subtract(Size(operand, d), Number(slice));
    is_limited = true;
  }
  if (is_limited && !HoldsSizes(indices->element_type())) {
    Refuse(gather, "its indices have no sign");
  }
  const Dimensions window =
      OtherDimensions(operand->shape().rank(), a.collapsed_slice_dims, a.operand_batching_dims);
  for (size_t i = 0; i < window.size(); ++i) {
    int64_t& slice = a.slice_sizes[static_cast<size_t>(window[i])];
    const bool is_whole = slice == operand->shape().dimension(window[i]);
    if (!is_whole && Varies(&gather, a.offset_dims[i])) {
      Refuse(gather, "it takes a part whose size varies");
    }
    if (is_whole) slice = PaddedSize(operand, window[i]);
  }
  for (const int64_t d : a.collapsed_slice_dims) {
    if (Varies(operand, d) && !std::ranges::count(a.start_index_map, d)) {
      Refuse(gather, "it takes the beginning of what varies");
    }
  }
  Value starts = Of(indices);
  if (is_limited) starts = Limited(starts, a.index_vector_dim, limits);
  a.indices_are_sorted = a.indices_are_sorted && !Varies(indices);
  return Same(gather, PaddedShape(&gather), {Of(operand), starts}, a);
}

Value SizePadder::PadScatter(const Instruction& scatter) {
  if (scatter.operand_count() != 3) Refuse(scatter, "it has several operands");
  const auto& a = scatter.as<hlo::ScatterAttributes>();
  const Instruction *operand = scatter.operand(0), *indices = scatter.operand(1),
                    *updates = scatter.operand(2);
  const Dimensions window =
      OtherDimensions(operand->shape().rank(), a.inserted_window_dims, a.input_batching_dims);
  for (size_t i = 0; i < window.size(); ++i) {
    const bool is_whole = operand->shape().dimension(window[i]) ==
                          updates->shape().dimension(a.update_window_dims[i]);
    if (!is_whole && (Varies(operand, window[i]) || Varies(updates, a.update_window_dims[i]))) {
      Refuse(scatter, "it writes a part of what varies");
    }
  }
  for (const int64_t d : a.scatter_dims_to_operand_dims) {
    if (IsJoined(operand, d)) Refuse(scatter, "it indexes a dimension of joined ones");
  }
  const Dimensions rows = OtherDimensions(indices->shape().rank(), {a.index_vector_dim});
  const bool masks = std::ranges::any_of(rows, [&](int64_t d) { return Varies(indices, d); });
  if (masks && (!HoldsSizes(indices->element_type()) || a.scatter_dims_to_operand_dims.empty())) {
    Refuse(scatter, "its indices have no sign");
  }
  Value starts = Of(indices);
  if (masks) {
    // An update outside of the operand is none.
    const Value nowhere = builder_.ConstantScalar(indices->element_type(), int64_t{-1});
    starts = Masked(starts, indices, rows, nowhere);
  }
  auto attributes = a;
  if (masks) attributes.indices_are_sorted = attributes.unique_indices = false;
  return Same(scatter, PaddedShape(&scatter), {Of(operand), starts, Of(updates)}, attributes);
}

Value SizePadder::PadSlice(const Instruction& slice) {
  const auto& a = slice.as<hlo::SliceAttributes>();
  const Instruction* operand = slice.operand(0);
  Value value = Of(operand);
  for (int64_t d = 0; d < slice.shape().rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    if (slice.shape().dimension(d) == operand->shape().dimension(d)) continue;
    const bool varies = Varies(operand, d) || Varies(&slice, d);
    if (!varies && !attributes_vary_.at(&slice)) {
      value = builder_.SliceInDim(value, d, a.start_indices[i], a.limit_indices[i], a.strides[i]);
      continue;
    }
    if (IsJoined(operand, d) || IsJoined(&slice, d)) {
      Refuse(slice, "it takes a part of joined dimensions");
    }
    const int64_t size = PaddedSize(&slice, d);
    if (a.start_indices[i] != 0 && a.strides[i] == 1 && attributes_vary_.at(&slice)) {
      value = From(value, d, IntegerArgument(a.start_indices[i]), size);
      continue;
    }
    const int64_t limit = value->shape().dimension(d);
    value = builder_.SliceInDim(value, d, std::min(a.start_indices[i], limit), limit, a.strides[i]);
    value = Resized(value, d, size);
  }
  return value;
}

Value SizePadder::PadDynamicSlice(const Instruction& slice) {
  const Instruction* operand = slice.operand(0);
  Value value = Of(operand);
  for (int64_t d = 0; d < slice.shape().rank(); ++d) {
    const int64_t size = slice.shape().dimension(d);
    if (size == operand->shape().dimension(d)) continue;
    if (IsJoined(operand, d) || IsJoined(&slice, d)) {
      Refuse(slice, "it takes a part of joined dimensions");
    }
    const Value given = Of(slice.operand(static_cast<size_t>(d) + 1));
    if (!HoldsSizes(given->element_type())) Refuse(slice, "its starts have no sign");
    const Value last = builder_.Convert(builder_.Subtract(Size(operand, d), Size(&slice, d)),
                                        given->element_type());
    const Value first = builder_.ConstantScalar(given->element_type(), int64_t{0});
    const Value start = builder_.Maximum(first, builder_.Minimum(given, last));
    value = From(value, d, builder_.Convert(start, kSizeType), PaddedSize(&slice, d));
  }
  return value;
}

Value SizePadder::PadDynamicUpdateSlice(const Instruction& instruction) {
  const Instruction *operand = instruction.operand(0), *update = instruction.operand(1);
  Value value = Of(operand), written = Of(update);
  Dimensions partial;
  std::vector<Value> starts;
  for (int64_t d = 0; d < operand->shape().rank(); ++d) {
    const bool is_whole = operand->shape().dimension(d) == update->shape().dimension(d);
    const Value given = Of(instruction.operand(static_cast<size_t>(d) + 2));
    if (is_whole) {
      starts.push_back(Number(0));
      continue;
    }
    if (IsJoined(operand, d) || IsJoined(update, d)) {
      Refuse(instruction, "it writes a part of joined dimensions");
    }
    if (!HoldsSizes(given->element_type())) Refuse(instruction, "its starts have no sign");
    const Value last = builder_.Convert(builder_.Subtract(Size(operand, d), Size(update, d)),
                                        given->element_type());
    const Value first = builder_.ConstantScalar(given->element_type(), int64_t{0});
    starts.push_back(
        builder_.Convert(builder_.Maximum(first, builder_.Minimum(given, last)), kSizeType));
    partial.push_back(d);
    value = Resized(value, d, PaddedSize(operand, d) + PaddedSize(update, d));
  }
  const Value before = builder_.DynamicSlice(value, starts, written->dimensions());
  for (const int64_t d : partial) {
    if (!Varies(update, d)) continue;
    const Value mask =
        builder_.BroadcastInDim(MaskOf(classes_.Of(update, d)), written->dimensions(), {d});
    written = builder_.Select(mask, written, before);
  }
  value = builder_.DynamicUpdateSlice(value, written, starts);
  for (const int64_t d : partial) value = Resized(value, d, PaddedSize(operand, d));
  return value;
}

Value SizePadder::PadPad(const Instruction& pad) {
  const auto& a = pad.as<hlo::PadAttributes>();
  const Instruction* operand = pad.operand(0);
  Dimensions moved;
  for (int64_t d = 0; d < pad.shape().rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    if (a.edge_padding_low[i] == 0 && a.edge_padding_high[i] == 0 && a.interior_padding[i] == 0) {
      continue;
    }
    moved.push_back(d);
  }
  const Value fill = Of(pad.operand(1));
  Value value = Masked(Of(operand), operand, moved, fill);
  Dimensions none(static_cast<size_t>(pad.shape().rank()));
  for (const int64_t d : moved) {
    const auto i = static_cast<size_t>(d);
    const bool varies = Varies(operand, d) || Varies(&pad, d);
    if (varies && (IsJoined(operand, d) || IsJoined(&pad, d))) {
      Refuse(pad, "it continues joined dimensions");
    }
    const int64_t now = value->shape().dimension(d), size = PaddedSize(&pad, d);
    int64_t low = a.edge_padding_low[i];
    const bool moves = attributes_vary_.at(&pad) && low > 0 && a.interior_padding[i] == 0;
    if (moves && low > size) Refuse(pad, "it moves what varies out of itself");
    Dimensions lows = none, highs = none, interiors = none;
    interiors[i] = a.interior_padding[i];
    if (!moves) {
      lows[i] = low;
      highs[i] = size - low - (now + std::max<int64_t>(now - 1, 0) * a.interior_padding[i]);
      value = builder_.Pad(value, fill, lows, highs, interiors);
      continue;
    }
    // In front of it there is as much to skip as it moves less than it could.
    lows[i] = size;
    highs[i] = size;
    value = builder_.Pad(value, fill, lows, highs, none);
    value = From(value, d, builder_.Subtract(Number(size), IntegerArgument(low)), size);
  }
  return value;
}

Value SizePadder::PadConcatenate(const Instruction& concatenate) {
  const int64_t d = concatenate.as<hlo::DimensionAttributes>().dimension;
  const bool varies =
      Varies(&concatenate, d) ||
      std::ranges::any_of(concatenate.operands(), [&](const auto* o) { return Varies(o, d); });
  if (!varies) return Same(concatenate, PaddedShape(&concatenate));
  const int64_t size = PaddedSize(&concatenate, d);
  int64_t longest = 0;
  for (const Instruction* operand : concatenate.operands()) {
    if (IsJoined(operand, d)) Refuse(concatenate, "it continues joined dimensions");
    longest = std::max(longest, PaddedSize(operand, d));
  }
  if (IsJoined(&concatenate, d)) Refuse(concatenate, "it continues joined dimensions");
  // Each is written over what the one before has behind its end.
  Value value = Resized(Of(concatenate.operand(0)), d, size + longest);
  Value start = Size(concatenate.operand(0), d);
  for (size_t i = 1; i < concatenate.operand_count(); ++i) {
    std::vector<Value> starts(static_cast<size_t>(concatenate.shape().rank()), Number(0));
    starts[static_cast<size_t>(d)] = start;
    value = builder_.DynamicUpdateSlice(value, Of(concatenate.operand(i)), std::move(starts));
    start = builder_.Add(start, Size(concatenate.operand(i), d));
  }
  return Resized(value, d, size);
}

Value SizePadder::PadReverse(const Instruction& reverse) {
  Value value = Same(reverse, PaddedShape(&reverse));
  for (const int64_t d : reverse.as<hlo::DimensionsAttributes>().dimensions) {
    if (!Varies(&reverse, d)) continue;
    if (IsJoined(&reverse, d)) Refuse(reverse, "its dimension is of joined ones");
    const int64_t size = PaddedSize(&reverse, d);
    value = From(value, d, builder_.Subtract(Number(size), Size(&reverse, d)), size);
  }
  return value;
}

}  // namespace passes
