#include <ranges>

#include "cpu/emit/body_emitter.h"
#include "hlo/size_arithmetic.h"

// Operations whose elements come from computed places of their operands.

namespace cpu {

using hlo::Dimensions;
using hlo::Instruction;

Position BodyEmitter::BetweenGaps(const Position& position, const Extent& size, int64_t low,
                                  int64_t step, Mask* inside) {
  *inside = AndMask(*inside, InRange(position, (size - 1) * step + 1));
  // Positions below zero are out of range already; moving them up keeps the division's operands
  // positive.
  const int64_t shift = low > 0 ? hlo::CeilDivide(low, step) : 0;
  const Position shifted = Add(position, shift * step);
  *inside = AndMask(*inside, InRange(Remainder(shifted, step), 1));
  return Add(Divide(shifted, step), -shift);
}

// What lies so few elements beside an array is mapped nearly always; of parts side by side, whose
// rows lie within the array but for the first or the last ones, more.
constexpr int64_t kNear = 512, kNearOfParts = 8192;

BodyEmitter::Value BodyEmitter::EvaluatePad(const Instruction* instruction, const Index& given) {
  const auto& attributes = instruction->as<hlo::PadAttributes>();
  const Instruction* operand = instruction->operand(0);
  const Dimensions& from = instruction->dimensions();
  const Dimensions& to = operand->dimensions();
  Index index = given;
  const int64_t rank = static_cast<int64_t>(from.size());
  auto padded = [&](int64_t d) {
    return attributes.edge_padding_low[d] != 0 || attributes.edge_padding_high[d] != 0 ||
           attributes.interior_padding[d] != 0;
  };
  for (int64_t d = 0; d < rank; ++d) {
    if (padded(d)) index = SplitAt(SplitAt(index, from, d), from, d + 1);
  }
  Mask inside;
  bool is_far = false;
  for (IndexGroup& group : index) {
    const int64_t d = group.begin;
    if (group.end != d + 1 || !padded(d)) continue;
    for (int64_t edge : {attributes.edge_padding_low[d], attributes.edge_padding_high[d]}) {
      is_far = IsLess(kNear, Size(edge) * Product(to, d + 1, rank)) || is_far;
    }
    Position position = Add(group.position, Extent(0) - Size(attributes.edge_padding_low[d]));
    const int64_t step = attributes.interior_padding[d] + 1;
    if (step > 1) {
      position = BetweenGaps(position, Size(to[d]), attributes.edge_padding_low[d], step, &inside);
    } else {
      inside = AndMask(inside, InRange(position, Size(to[d])));
    }
    group.position = position;
  }
  if (!is_far) inside.shared = nullptr;
  const Value padding = Evaluate(instruction->operand(1), {});
  if (IsNever(inside)) return padding;
  Mask saved = mask_;
  mask_ = AndMask(mask_, inside);
  Value value = Evaluate(operand, index);
  mask_ = saved;
  return SelectValue(inside, value, padding, instruction->element_type());
}

BodyEmitter::Value BodyEmitter::EvaluateConcatenate(const Instruction* instruction,
                                                    const Index& given) {
  const int64_t d = instruction->as<hlo::DimensionAttributes>().dimension;
  const Dimensions& from = instruction->dimensions();
  Index index = SplitAt(SplitAt(given, from, d), from, d + 1);
  Mask saved = mask_;
  Value result;
  Extent start(0);
  const bool is_far =
      IsLess(kNearOfParts, Size(from[d]) * Product(from, d + 1, static_cast<int64_t>(from.size())));
  auto parts = instruction->operands() | std::views::filter([&](const Instruction* part) {
                 return !Size(part->dimensions()[d]).Is(0);
               });
  for (const Instruction* operand : parts) {
    const Extent size = Size(operand->dimensions()[d]);
    Index inner = index;
    Mask inside;
    for (IndexGroup& group : inner) {
      if (group.begin != d) continue;
      group.position = Add(group.position, Extent(0) - start);
      inside = InRange(group.position, size);
    }
    if (!is_far) inside.shared = nullptr;
    start = start + size;
    // Where no place counts, whoever asks wants a value all the same: the last part's.
    const bool is_first = result.element.real == nullptr;
    if (IsNever(inside) && !(is_first && operand == parts.back())) continue;
    mask_ = AndMask(saved, inside);
    Value value = Evaluate(operand, inner);
    mask_ = saved;
    result = is_first ? value : SelectValue(inside, value, result, instruction->element_type());
  }
  return result;
}

BodyEmitter::Value BodyEmitter::EvaluateDynamicSlice(const Instruction* instruction,
                                                     const Index& given) {
  const Instruction* operand = instruction->operand(0);
  const Dimensions& from = instruction->dimensions();
  const Dimensions& to = operand->dimensions();
  Index index = given;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != to[d]) index = SplitAt(index, from, d);
  }
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == to[d]) continue;
    Value start = Evaluate(instruction->operand(d + 1), {});
    Position offset = FromElement(start.element, instruction->operand(d + 1)->element_type(),
                                  start.level, Size(to[d]) - Size(from[d]));
    for (IndexGroup& group : index) {
      if (group.begin != static_cast<int64_t>(d)) continue;
      group.position = Add(group.position, Multiply(offset, Product(to, d + 1, group.end)));
    }
  }
  return Evaluate(operand, index);
}

BodyEmitter::Value BodyEmitter::EvaluateDynamicUpdateSlice(const Instruction* instruction,
                                                           const Index& given) {
  const Instruction* operand = instruction->operand(0);
  const Instruction* update = instruction->operand(1);
  const Dimensions& from = instruction->dimensions();
  const Dimensions& to = update->dimensions();
  Index index = given;
  Mask inside;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == to[d]) continue;
    Value start = Evaluate(instruction->operand(d + 2), {});
    Position offset = FromElement(start.element, instruction->operand(d + 2)->element_type(),
                                  start.level, Size(from[d]) - Size(to[d]));
    index = SplitAt(SplitAt(index, from, d), from, d + 1);
    for (IndexGroup& group : index) {
      if (group.begin != static_cast<int64_t>(d)) continue;
      group.position = Add(group.position, Multiply(offset, -1));
      inside = AndMask(inside, InRange(group.position, Size(to[d])));
    }
  }
  Mask saved = mask_;
  mask_ = AndMask(mask_, inside);
  Value value = Evaluate(update, index);
  mask_ = saved;
  if (!inside.value) return value;
  return SelectValue(inside, value, Evaluate(operand, given), instruction->element_type());
}

// An index of a gather, clamped so that the slice lies within the dimension.
Position BodyEmitter::StartAt(const Instruction* starts, const Index& index, int64_t size,
                              int64_t slice_size) {
  const std::optional<Position> plain = PlainNumber(starts, index);
  const bool is_inside = plain && !Size(size).varies && !Size(slice_size).varies &&
                         plain->bounds->low >= 0 && plain->bounds->high <= size - slice_size;
  if (is_inside) return *plain;
  const Value start = Evaluate(starts, index);
  return FromElement(start.element, starts->element_type(), start.level,
                     Size(size) - Size(slice_size));
}

BodyEmitter::Value BodyEmitter::EvaluateGather(const Instruction* instruction, const Index& index) {
  const auto& attributes = instruction->as<hlo::GatherAttributes>();
  const Instruction* operand = instruction->operand(0);
  const Instruction* starts = instruction->operand(1);
  const Dimensions& from = instruction->dimensions();
  const Dimensions& to = operand->dimensions();
  auto contains = [](const Dimensions& list, int64_t d) {
    return std::find(list.begin(), list.end(), d) != list.end();
  };
  // The output's batch dimensions are those of the start indices without the index vector's.
  std::vector<int64_t> batch;
  for (size_t d = 0; d < from.size(); ++d) {
    if (!contains(attributes.offset_dims, d)) batch.push_back(d);
  }
  const Dimensions& start_dimensions = starts->dimensions();
  std::vector<int64_t> source;
  size_t next = 0;
  for (size_t d = 0; d < start_dimensions.size(); ++d) {
    source.push_back(static_cast<int64_t>(d) == attributes.index_vector_dim ? -1 : batch[next++]);
  }
  Index start_index = Select(index, from, start_dimensions, source);
  Index result(to.size());
  size_t offset = 0;
  for (size_t d = 0; d < to.size(); ++d) {
    const bool batching = contains(attributes.operand_batching_dims, d);
    const bool collapsed = contains(attributes.collapsed_slice_dims, d);
    Position position = ConstantPosition(0);
    if (batching) {
      size_t which = std::find(attributes.operand_batching_dims.begin(),
                               attributes.operand_batching_dims.end(), static_cast<int64_t>(d)) -
                     attributes.operand_batching_dims.begin();
      int64_t start_dimension = attributes.start_indices_batching_dims[which];
      position = Coordinate(index, from, source[start_dimension]);
    } else if (!collapsed) {
      position = Coordinate(index, from, attributes.offset_dims[offset++]);
    }
    for (size_t k = 0; k < attributes.start_index_map.size(); ++k) {
      if (attributes.start_index_map[k] != static_cast<int64_t>(d)) continue;
      Index at = start_index;
      for (IndexGroup& group : at) {
        if (group.begin == attributes.index_vector_dim) group.position = ConstantPosition(k);
      }
      position = Add(position, StartAt(starts, at, to[d], attributes.slice_sizes[d]));
    }
    result[d] = {static_cast<int64_t>(d), static_cast<int64_t>(d) + 1, position};
  }
  return Evaluate(operand, result);
}

}  // namespace cpu
