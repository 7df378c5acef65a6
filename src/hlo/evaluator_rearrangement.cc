// Operations that place elements without computing with them, and their forms with shapes as
// operands.
#include <algorithm>

#include "hlo/error.h"
#include "hlo/evaluation.h"
#include "hlo/size_arithmetic.h"

namespace hlo::evaluation {
namespace {

// Fills a literal of the instruction's shape with the elements of `x` at source(index).
template <typename Source>
Literal CopyFrom(const Shape& shape, const Literal& x, Source&& source) {
  Literal result(shape);
  std::byte* out = result.mutable_bytes();
  ForEachIndex(shape.dimensions(), [&](const Dimensions& index, int64_t position) {
    CopyElement(x, source(index), out, position);
  });
  return result;
}

Literal Broadcast(const Shape& shape, const Literal& x, const Dimensions& map) {
  Dimensions strides = RowMajorStrides(x.shape().dimensions());
  return CopyFrom(shape, x, [&](const Dimensions& index) {
    int64_t source = 0;
    for (size_t i = 0; i < map.size(); ++i) {
      if (x.shape().dimension(static_cast<int64_t>(i)) != 1) source += index[map[i]] * strides[i];
    }
    return source;
  });
}

Literal Transpose(const Shape& shape, const Literal& x, const Dimensions& permutation) {
  Dimensions strides = RowMajorStrides(x.shape().dimensions());
  Dimensions permuted;
  for (int64_t from : permutation) permuted.push_back(strides[from]);
  return CopyFrom(shape, x, [&](const Dimensions& index) { return Dot(index, permuted); });
}

Literal Reverse(const Shape& shape, const Literal& x, const Dimensions& reversed) {
  Dimensions strides = RowMajorStrides(x.shape().dimensions());
  return CopyFrom(shape, x, [&](Dimensions index) {
    for (int64_t i : reversed) index[i] = shape.dimension(i) - 1 - index[i];
    return Dot(index, strides);
  });
}

Literal Slice(const Shape& shape, const Literal& x, const Dimensions& starts,
              const Dimensions& steps) {
  Dimensions strides = RowMajorStrides(x.shape().dimensions());
  return CopyFrom(shape, x, [&](Dimensions index) {
    for (size_t i = 0; i < index.size(); ++i) index[i] = starts[i] + index[i] * steps[i];
    return Dot(index, strides);
  });
}

Literal Pad(const Shape& shape, const Literal& x, const Literal& value, const PadAttributes& pad) {
  Literal result = Literal::Splat(shape, value);
  std::byte* out = result.mutable_bytes();
  Dimensions strides = RowMajorStrides(shape.dimensions());
  ForEachIndex(x.shape().dimensions(), [&](const Dimensions& index, int64_t position) {
    int64_t target = 0;
    for (size_t i = 0; i < index.size(); ++i) {
      int64_t at = pad.edge_padding_low[i] + index[i] * (pad.interior_padding[i] + 1);
      if (at < 0 || at >= shape.dimension(static_cast<int64_t>(i))) return;
      target += at * strides[i];
    }
    CopyElement(x, position, out, target);
  });
  return result;
}

Literal Concatenate(const Shape& shape, const Leaves& xs, int64_t dimension) {
  Literal result(shape);
  std::byte* out = result.mutable_bytes();
  Dimensions strides = RowMajorStrides(shape.dimensions());
  int64_t offset = 0;
  for (const Literal& x : xs) {
    ForEachIndex(x.shape().dimensions(), [&](const Dimensions& index, int64_t position) {
      CopyElement(x, position, out, Dot(index, strides) + offset * strides[dimension]);
    });
    offset += x.shape().dimension(dimension);
  }
  return result;
}

// Start indices, from scalars, clamped so that a window of `sizes` fits into `x`.
Dimensions ClampedStarts(const Shape& x, const Leaves& operands, size_t first,
                         const Dimensions& sizes) {
  Dimensions starts;
  for (int64_t i = 0; i < x.rank(); ++i) {
    const Literal& start = operands[first + i];
    int64_t last = x.dimension(i) - sizes[i];
    // An unsigned start beyond 2^63 is far out too.
    bool huge = start.shape().element_type() == ElementType::kU64 &&
                start.data<uint64_t>()[0] > static_cast<uint64_t>(INT64_MAX);
    starts.push_back(huge ? last : std::clamp<int64_t>(start.AsInt(), 0, last));
  }
  return starts;
}

Literal UpdateSlice(const Literal& x, const Literal& update, const Dimensions& starts) {
  Literal result = x;
  if (update.byte_size() == 0) return result;
  std::byte* out = result.mutable_bytes();
  Dimensions strides = RowMajorStrides(x.shape().dimensions());
  int64_t origin = Dot(starts, strides);
  ForEachIndex(update.shape().dimensions(), [&](const Dimensions& index, int64_t position) {
    CopyElement(update, position, out, origin + Dot(index, strides));
  });
  return result;
}

Literal Iota(const Shape& shape, int64_t dimension) {
  return DispatchNative(shape.element_type(), [&]<typename T>() {
    Literal result(shape);
    auto out = result.mutable_data<T>();
    ForEachIndex(shape.dimensions(), [&](const Dimensions& index, int64_t position) {
      out[position] = ConvertNumber<T>(index[dimension]);
    });
    return result;
  });
}

// The sizes that a program computed must be those that it declared.
void RequireDeclared(const Instruction& instruction, const Dimensions& computed) {
  if (computed == instruction.dimensions()) return;
  throw Error(instruction.ToString() + ": the result's dimensions are computed as " +
              ToString(computed) + ", but declared otherwise");
}

Literal RealDynamicSlice(const Instruction& instruction, const Leaves& operands) {
  Dimensions starts = ReadIntegers(operands[1]), limits = ReadIntegers(operands[2]);
  Dimensions steps = ReadIntegers(operands[3]);
  Dimensions sizes;
  for (size_t i = 0; i < starts.size(); ++i) {
    bool fits = starts[i] >= 0 && starts[i] <= limits[i] && steps[i] > 0 &&
                limits[i] <= operands[0].shape().dimension(static_cast<int64_t>(i));
    if (!fits) throw Error(instruction.ToString() + ": the slice exceeds the operand");
    sizes.push_back(CeilDivide(limits[i] - starts[i], steps[i]));
  }
  RequireDeclared(instruction, sizes);
  return Slice(instruction.shape(), operands[0], starts, steps);
}

Literal DynamicPad(const Instruction& instruction, const Leaves& operands) {
  PadAttributes pad{ReadIntegers(operands[2]), ReadIntegers(operands[3]),
                    ReadIntegers(operands[4])};
  Dimensions sizes;
  for (size_t i = 0; i < pad.edge_padding_low.size(); ++i) {
    int64_t size = operands[0].shape().dimension(static_cast<int64_t>(i));
    if (pad.interior_padding[i] < 0) {
      throw Error(instruction.ToString() + ": interior padding must not be negative");
    }
    sizes.push_back(size + std::max<int64_t>(size - 1, 0) * pad.interior_padding[i] +
                    pad.edge_padding_low[i] + pad.edge_padding_high[i]);
  }
  RequireDeclared(instruction, sizes);
  return Pad(instruction.shape(), operands[0], operands[1], pad);
}

Literal SetDimensionSize(const Instruction& instruction, const Leaves& operands) {
  int64_t dimension = instruction.as<DimensionAttributes>().dimension;
  Dimensions sizes = operands[0].shape().dimensions();
  sizes[dimension] = operands[1].AsInt();
  RequireDeclared(instruction, sizes);
  if (sizes == operands[0].shape().dimensions()) return operands[0];
  Dimensions zeros(sizes.size(), 0), ones(sizes.size(), 1);
  return Slice(instruction.shape(), operands[0], zeros, ones);
}

Literal EvaluateOne(const Instruction& instruction, const Leaves& operands) {
  const Shape& shape = instruction.shape();
  switch (instruction.opcode()) {
    case Opcode::kBroadcastInDim:
      return Broadcast(shape, operands[0], instruction.as<DimensionsAttributes>().dimensions);
    case Opcode::kDynamicBroadcastInDim:
      RequireDeclared(instruction, ReadIntegers(operands[1]));
      return Broadcast(shape, operands[0],
                       instruction.as<DynamicBroadcastAttributes>().broadcast_dimensions);
    case Opcode::kDynamicReshape:
      RequireDeclared(instruction, ReadIntegers(operands[1]));
      return Literal(shape, operands[0].bytes());
    case Opcode::kBitcastConvert:  // rows are dense and words little-endian, so no byte moves
    case Opcode::kReshape:
      return Literal(shape, operands[0].bytes());
    case Opcode::kTranspose:
      return Transpose(shape, operands[0], instruction.as<DimensionsAttributes>().dimensions);
    case Opcode::kReverse:
      return Reverse(shape, operands[0], instruction.as<DimensionsAttributes>().dimensions);
    case Opcode::kSlice: {
      const auto& slice = instruction.as<SliceAttributes>();
      return Slice(shape, operands[0], slice.start_indices, slice.strides);
    }
    case Opcode::kPad:
      return Pad(shape, operands[0], operands[1], instruction.as<PadAttributes>());
    case Opcode::kConcatenate:
      return Concatenate(shape, operands, instruction.as<DimensionAttributes>().dimension);
    case Opcode::kDynamicSlice: {
      Dimensions starts = ClampedStarts(operands[0].shape(), operands, 1, shape.dimensions());
      return Slice(shape, operands[0], starts, Dimensions(starts.size(), 1));
    }
    case Opcode::kDynamicUpdateSlice:
      return UpdateSlice(
          operands[0], operands[1],
          ClampedStarts(operands[0].shape(), operands, 2, operands[1].shape().dimensions()));
    case Opcode::kDynamicIota:
      RequireDeclared(instruction, ReadIntegers(operands[0]));
      return Iota(shape, instruction.as<DimensionAttributes>().dimension);
    case Opcode::kIota:
      return Iota(shape, instruction.as<DimensionAttributes>().dimension);
    case Opcode::kDynamicPad:
      return DynamicPad(instruction, operands);
    case Opcode::kRealDynamicSlice:
      return RealDynamicSlice(instruction, operands);
    case Opcode::kGetDimensionSize:
      return Literal::FromInt(
          ElementType::kS32,
          operands[0].shape().dimension(instruction.as<DimensionAttributes>().dimension));
    default:
      return SetDimensionSize(instruction, operands);
  }
}

}  // namespace

Leaves EvaluateRearrangement(const Instruction& instruction, const Leaves& operands) {
  return {EvaluateOne(instruction, operands)};
}

}  // namespace hlo::evaluation
