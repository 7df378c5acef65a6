#include "cpu/emit/body_emitter.h"

#include "cpu/emit/iteration_space.h"
#include "hlo/size_arithmetic.h"

// Operations whose elements come from computed places of their operands.

namespace cpu {

using hlo::Dimensions;
using hlo::Instruction;

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
  for (IndexGroup& group : index) {
    const int64_t d = group.begin;
    if (group.end != d + 1 || !padded(d)) continue;
    Position position = Add(group.position, Extent(0) - Size(attributes.edge_padding_low[d]));
    const int64_t step = attributes.interior_padding[d] + 1;
    if (step > 1) {
      inside = AndMask(inside, InRange(position, (Size(to[d]) - 1) * step + 1));
      // Positions below zero are out of range already; moving them up keeps the division's operands
      // positive.
      Position shifted = Add(position, (attributes.edge_padding_low[d] > 0
                                            ? hlo::RoundUp(attributes.edge_padding_low[d], step)
                                            : 0));
      inside = AndMask(inside, InRange(Remainder(shifted, step), 1));
      position =
          Add(Divide(shifted, step), attributes.edge_padding_low[d] > 0
                                         ? -hlo::CeilDivide(attributes.edge_padding_low[d], step)
                                         : 0);
    } else {
      inside = AndMask(inside, InRange(position, Size(to[d])));
    }
    group.position = position;
  }
  Mask saved = mask_;
  mask_ = AndMask(mask_, inside);
  Value value = Evaluate(operand, index);
  mask_ = saved;
  return SelectValue(inside, value, Evaluate(instruction->operand(1), {}),
                     instruction->element_type());
}

BodyEmitter::Value BodyEmitter::EvaluateReduceWindow(const Instruction* instruction, int64_t result,
                                                     const Index& given) {
  const auto& window = instruction->as<hlo::Window>();
  const size_t count = instruction->operand_count() / 2;
  const Dimensions& to = instruction->operand(0)->dimensions();
  const Dimensions& from = instruction->shape().is_tuple()
                               ? instruction->shape().tuple_shapes()[0].dimensions()
                               : instruction->dimensions();
  const int64_t rank = static_cast<int64_t>(to.size());
  auto at = [](const Dimensions& list, int64_t d, int64_t otherwise) {
    return list.empty() ? otherwise : list[d];
  };
  Index index = given;
  std::vector<int64_t> windowed;
  for (int64_t d = 0; d < rank; ++d) {
    const bool trivial = window.dimensions[d] == 1 && at(window.strides, d, 1) == 1 &&
                         at(window.padding_low, d, 0) == 0 && at(window.padding_high, d, 0) == 0 &&
                         at(window.base_dilations, d, 1) == 1;
    if (trivial) continue;
    windowed.push_back(d);
    index = SplitAt(SplitAt(index, from, d), from, d + 1);
  }
  std::vector<Element> accumulators;
  for (size_t i = 0; i < count; ++i)
    accumulators.push_back(Evaluate(instruction->operand(count + i), {}).element);
  AtInnermost();
  Widen(accumulators, lanes_ > 1);
  // Combines the elements at one window position, given by its coordinates.
  auto combine = [&](const std::vector<Position>& offsets, std::vector<Element> sums) {
    Index inner = index;
    Mask inside;
    for (size_t w = 0; w < windowed.size(); ++w) {
      const int64_t d = windowed[w];
      for (IndexGroup& group : inner) {
        if (group.begin != d) continue;
        const int64_t low = at(window.padding_low, d, 0);
        const int64_t dilation = at(window.base_dilations, d, 1);
        Position position = Add(Multiply(group.position, at(window.strides, d, 1)),
                                Multiply(offsets[w], at(window.window_dilations, d, 1)));
        position = Add(position, -low);
        if (dilation == 1) {
          if (low != 0 || at(window.padding_high, d, 0) > 0)
            inside = AndMask(inside, InRange(position, Size(to[d])));
        } else {
          inside = AndMask(inside, InRange(position, (Size(to[d]) - 1) * dilation + 1));
          const int64_t shift = low > 0 ? hlo::CeilDivide(low, dilation) : 0;
          Position shifted = Add(position, shift * dilation);
          inside = AndMask(inside, InRange(Remainder(shifted, dilation), 1));
          position = Add(Divide(shifted, dilation), -shift);
        }
        group.position = position;
      }
    }
    Mask saved = mask_;
    mask_ = AndMask(saved, inside);
    std::vector<Element> arguments = sums;
    for (size_t i = 0; i < count; ++i)
      arguments.push_back(Evaluate(instruction->operand(i), inner).element);
    mask_ = saved;
    AtInnermost();
    Widen(arguments);
    std::vector<Element> next = Apply(*instruction->called_computations()[0], arguments);
    for (size_t i = 0; i < count && inside.value; ++i) {
      std::vector<Element> choice = {next[i], sums[i], {inside.value, nullptr}};
      Widen(choice);
      next[i].real = b_.CreateSelect(choice[2].real, choice[0].real, choice[1].real);
      if (choice[0].imaginary) {
        next[i].imaginary =
            b_.CreateSelect(choice[2].real, choice[0].imaginary, choice[1].imaginary);
      }
    }
    if (lanes_ > 1) {
      for (Element& element : next) element = Splat(element);
    }
    return next;
  };
  int64_t positions = 1;
  for (int64_t d : windowed) positions *= window.dimensions[d];
  if (positions <= 36) {
    for (int64_t p = 0; p < positions; ++p) {
      std::vector<Position> offsets(windowed.size());
      int64_t rest = p;
      for (size_t w = windowed.size(); w-- > 0;) {
        offsets[w] = ConstantPosition(rest % window.dimensions[windowed[w]]);
        rest /= window.dimensions[windowed[w]];
      }
      accumulators = combine(offsets, accumulators);
    }
  } else {
    Accumulators initial;
    for (const Element& element : accumulators) {
      initial.push_back(element.real);
      if (element.imaginary) initial.push_back(element.imaginary);
    }
    auto unpack = [&](const Accumulators& values) {
      std::vector<Element> elements = accumulators;
      size_t next = 0;
      for (Element& element : elements) {
        element.real = values[next++];
        if (element.imaginary) element.imaginary = values[next++];
      }
      return elements;
    };
    Accumulators sums = Loop(b_.getInt64(0), b_.getInt64(positions), 1, initial,
                             [&](llvm::Value* variable, const Accumulators& current) {
                               std::vector<Position> offsets(windowed.size());
                               Position rest = ScalarPosition(variable, level());
                               for (size_t w = windowed.size(); w-- > 0;) {
                                 const int64_t size = window.dimensions[windowed[w]];
                                 offsets[w] = w == 0 ? rest : Remainder(rest, size);
                                 if (w > 0) rest = Divide(rest, size);
                               }
                               Accumulators next;
                               for (const Element& element : combine(offsets, unpack(current))) {
                                 next.push_back(element.real);
                                 if (element.imaginary) next.push_back(element.imaginary);
                               }
                               return next;
                             });
    accumulators = unpack(sums);
  }
  return {accumulators[result], level()};
}

BodyEmitter::Value BodyEmitter::EvaluateConcatenate(const Instruction* instruction,
                                                    const Index& given) {
  const int64_t d = instruction->as<hlo::DimensionAttributes>().dimension;
  const Dimensions& from = instruction->dimensions();
  Index index = SplitAt(SplitAt(given, from, d), from, d + 1);
  Mask saved = mask_;
  Value result;
  Extent start(0);
  for (const Instruction* operand : instruction->operands()) {
    const Extent size = Size(operand->dimensions()[d]);
    if (size.Is(0)) continue;
    Index inner = index;
    Mask inside;
    for (IndexGroup& group : inner) {
      if (group.begin != d) continue;
      group.position = Add(group.position, Extent(0) - start);
      inside = InRange(group.position, size);
    }
    mask_ = AndMask(saved, inside);
    Value value = Evaluate(operand, inner);
    mask_ = saved;
    result = start.Is(0) ? value : SelectValue(inside, value, result, instruction->element_type());
    start = start + size;
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
      Value start = Evaluate(starts, at);
      position = Add(position, FromElement(start.element, starts->element_type(), start.level,
                                           Size(to[d]) - Size(attributes.slice_sizes[d])));
    }
    result[d] = {static_cast<int64_t>(d), static_cast<int64_t>(d) + 1, position};
  }
  return Evaluate(operand, result);
}

}  // namespace cpu
