// Shapes of operations that place elements without computing with them.
#include "hlo/shape_check.h"

namespace hlo {
namespace {

void RequireBroadcast(const ShapeCheck& check, const Shape& x, const Shape& result,
                      const Dimensions& map) {
  check.RequireLength(map.size(), x.rank(), "broadcast_dimensions");
  check.RequireDimensions(map, result.rank(), "broadcast_dimensions");
  for (int64_t i = 0; i < x.rank(); ++i) {
    check.Require(
        x.dimension(i) == 1 || SameDimension(x.dimension(i), result.dimension(map[i])), [&] {
          return "operand dimension " + std::to_string(i) + " of size " +
                 std::to_string(x.dimension(i)) + " must be 1 or equal to result dimension " +
                 std::to_string(map[i]) + " of size " + std::to_string(result.dimension(map[i]));
        });
  }
}

Shape InferBroadcastInDim(const ShapeCheck& check) {
  check.RequireOperands(1);
  const Shape& x = check.operand(0);
  Shape result = x.WithDimensions(check.RequireGiven().dimensions());
  RequireBroadcast(check, x, result, check.as<DimensionsAttributes>().dimensions);
  return result;
}

Shape InferReshape(const ShapeCheck& check) {
  check.RequireOperands(1);
  const Shape& x = check.operand(0);
  Shape result = x.WithDimensions(check.RequireGiven().dimensions());
  check.Require(x.is_dynamic() || result.is_dynamic() || x.num_elements() == result.num_elements(),
                "the result must have as many elements as the operand");
  return result;
}

Shape InferTranspose(const ShapeCheck& check) {
  check.RequireOperands(1);
  const Shape& x = check.operand(0);
  const Dimensions& permutation = check.as<DimensionsAttributes>().dimensions;
  check.RequireLength(permutation.size(), x.rank(), "permutation");
  check.RequireDimensions(permutation, x.rank(), "permutation");
  Dimensions dimensions;
  for (int64_t from : permutation) dimensions.push_back(x.dimension(from));
  return x.WithDimensions(std::move(dimensions));
}

Shape InferReverse(const ShapeCheck& check) {
  check.RequireOperands(1);
  check.RequireDimensions(check.as<DimensionsAttributes>().dimensions, check.operand(0).rank(),
                          "dimensions");
  return check.operand(0);
}

Shape InferSlice(const ShapeCheck& check) {
  check.RequireOperands(1);
  const Shape& x = check.operand(0);
  const auto& slice = check.as<SliceAttributes>();
  check.RequireLength(slice.start_indices.size(), x.rank(), "start_indices");
  check.RequireLength(slice.limit_indices.size(), x.rank(), "limit_indices");
  check.RequireLength(slice.strides.size(), x.rank(), "strides");
  Dimensions dimensions;
  for (int64_t i = 0; i < x.rank(); ++i) {
    int64_t start = slice.start_indices[i], limit = slice.limit_indices[i];
    int64_t stride = slice.strides[i];
    bool fits = start >= 0 && start <= limit && stride > 0 &&
                (x.dimension(i) == kDynamic || limit <= x.dimension(i));
    check.Require(fits, [&] {
      return "dimension " + std::to_string(i) + ": 0 <= start <= limit <= size and stride > 0 " +
             "must hold";
    });
    dimensions.push_back((limit - start) / stride + ((limit - start) % stride != 0));
  }
  return x.WithDimensions(std::move(dimensions));
}

Shape InferPad(const ShapeCheck& check) {
  check.RequireOperands(2);
  const Shape &x = check.operand(0), &value = check.operand(1);
  check.Require(value.is_scalar() && value.element_type() == x.element_type(),
                "the padding value must be a scalar of the operand's element type");
  const auto& pad = check.as<PadAttributes>();
  check.RequireLength(pad.edge_padding_low.size(), x.rank(), "edge_padding_low");
  check.RequireLength(pad.edge_padding_high.size(), x.rank(), "edge_padding_high");
  check.RequireLength(pad.interior_padding.size(), x.rank(), "interior_padding");
  Dimensions dimensions;
  for (int64_t i = 0; i < x.rank(); ++i) {
    check.Require(pad.interior_padding[i] >= 0, "interior_padding must not be negative");
    int64_t size = x.dimension(i);
    if (size != kDynamic) {
      size += std::max<int64_t>(size - 1, 0) * pad.interior_padding[i] + pad.edge_padding_low[i] +
              pad.edge_padding_high[i];
      check.Require(size >= 0, [&] {
        return "dimension " + std::to_string(i) + " of the result would have the negative size " +
               std::to_string(size);
      });
    }
    dimensions.push_back(size);
  }
  return x.WithDimensions(std::move(dimensions));
}

Shape InferConcatenate(const ShapeCheck& check) {
  check.RequireAtLeastOperands(1);
  int64_t dimension = check.as<DimensionAttributes>().dimension;
  Shape result = check.operand(0);
  check.RequireDimension(dimension, result.rank(), "dimension");
  Dimensions dimensions = result.dimensions();
  for (size_t i = 1; i < check.operands.size(); ++i) {
    const Shape& x = check.operand(i);
    check.Require(x.element_type() == result.element_type() && x.rank() == result.rank(),
                  "all operands must have the same element type and rank");
    for (int64_t d = 0; d < x.rank(); ++d) {
      if (d != dimension) {
        check.Require(SameDimension(x.dimension(d), result.dimension(d)),
                      "all dimensions but the concatenated one must agree");
        if (dimensions[d] == kDynamic) dimensions[d] = x.dimension(d);
      } else if (dimensions[d] == kDynamic || x.dimension(d) == kDynamic) {
        dimensions[d] = kDynamic;
      } else {
        dimensions[d] += x.dimension(d);
      }
    }
  }
  return result.WithDimensions(std::move(dimensions));
}

// Operands from `first` on are the starts, one scalar for each dimension.
void RequireStarts(const ShapeCheck& check, size_t first, int64_t rank) {
  check.Require(
      static_cast<int64_t>(check.operands.size()) == static_cast<int64_t>(first) + rank, [&] {
        return "one start index for each of the " + std::to_string(rank) + " dimensions is needed";
      });
  for (size_t i = first; i < check.operands.size(); ++i) {
    check.RequireIndexScalar(check.operand(i), "each start index");
    check.Require(check.operand(i).element_type() == check.operand(first).element_type(),
                  "all start indices must have the same element type");
  }
}

Shape InferDynamicSlice(const ShapeCheck& check) {
  check.RequireAtLeastOperands(1);
  const Shape& x = check.operand(0);
  RequireStarts(check, 1, x.rank());
  const Dimensions& sizes = check.as<DimensionsAttributes>().dimensions;
  check.RequireLength(sizes.size(), x.rank(), "slice_sizes");
  for (int64_t i = 0; i < x.rank(); ++i) {
    check.Require(sizes[i] >= 0 && (x.dimension(i) == kDynamic || sizes[i] <= x.dimension(i)),
                  "each slice size must be between 0 and the operand's dimension");
  }
  return x.WithDimensions(sizes);
}

Shape InferDynamicUpdateSlice(const ShapeCheck& check) {
  check.RequireAtLeastOperands(2);
  const Shape &x = check.operand(0), &update = check.operand(1);
  RequireStarts(check, 2, x.rank());
  check.Require(x.element_type() == update.element_type() && x.rank() == update.rank(),
                "the update must have the operand's element type and rank");
  for (int64_t i = 0; i < x.rank(); ++i) {
    check.Require(x.dimension(i) == kDynamic || update.dimension(i) <= x.dimension(i),
                  "the update must not be larger than the operand");
  }
  return x;
}

Shape InferIota(const ShapeCheck& check) {
  check.RequireOperands(0);
  const Shape& given = check.RequireGiven();
  ElementType type = given.element_type();
  check.Require(IsInteger(type) || IsFloat(type) || IsComplex(type),
                "the element type must be integer, floating-point or complex");
  check.RequireDimension(check.as<DimensionAttributes>().dimension, given.rank(), "iota_dimension");
  return given;
}

void RequireExtents(const ShapeCheck& check, const Shape& extents, int64_t length,
                    const char* name) {
  check.Require(IsInteger(extents.element_type()) && extents.rank() == 1 &&
                    (length == kDynamic || SameDimension(extents.dimension(0), length)),
                [&] {
                  return std::string(name) + " must be a vector of " + std::to_string(length) +
                         " integers";
                });
}

Shape InferDynamicPad(const ShapeCheck& check) {
  check.RequireOperands(5);
  const Shape &x = check.operand(0), &value = check.operand(1);
  const Shape& given = check.RequireGiven();
  check.Require(value.is_scalar() && value.element_type() == x.element_type(),
                "the padding value must be a scalar of the operand's element type");
  for (size_t i = 2; i < 5; ++i) RequireExtents(check, check.operand(i), x.rank(), "each padding");
  check.Require(given.rank() == x.rank(), "the result must have the operand's rank");
  return x.WithDimensions(given.dimensions());
}

Shape InferRealDynamicSlice(const ShapeCheck& check) {
  check.RequireOperands(4);
  const Shape& x = check.operand(0);
  const Shape& given = check.RequireGiven();
  for (size_t i = 1; i < 4; ++i) {
    RequireExtents(check, check.operand(i), x.rank(), "each of starts, limits and strides");
  }
  check.Require(given.rank() == x.rank(), "the result must have the operand's rank");
  return x.WithDimensions(given.dimensions());
}

Shape InferSetDimensionSize(const ShapeCheck& check) {
  check.RequireOperands(2);
  const Shape& x = check.operand(0);
  int64_t dimension = check.as<DimensionAttributes>().dimension;
  check.RequireDimension(dimension, x.rank(), "dimension");
  check.Require(check.operand(1) == Shape::Scalar(ElementType::kS32),
                "the size must be a scalar of type s32");
  Dimensions dimensions = x.dimensions();
  dimensions[dimension] = kDynamic;
  return x.WithDimensions(std::move(dimensions));
}

}  // namespace

Shape InferRearrangement(const ShapeCheck& check) {
  check.RequireArrays();
  switch (check.opcode) {
    case Opcode::kBroadcastInDim:
      return InferBroadcastInDim(check);
    case Opcode::kReshape:
      return InferReshape(check);
    case Opcode::kTranspose:
      return InferTranspose(check);
    case Opcode::kReverse:
      return InferReverse(check);
    case Opcode::kSlice:
      return InferSlice(check);
    case Opcode::kPad:
      return InferPad(check);
    case Opcode::kConcatenate:
      return InferConcatenate(check);
    case Opcode::kDynamicSlice:
      return InferDynamicSlice(check);
    case Opcode::kDynamicUpdateSlice:
      return InferDynamicUpdateSlice(check);
    default:
      return InferIota(check);
  }
}

Shape InferDynamic(const ShapeCheck& check) {
  check.RequireArrays();
  switch (check.opcode) {
    case Opcode::kDynamicBroadcastInDim: {
      check.RequireOperands(2);
      Shape result = check.operand(0).WithDimensions(check.RequireGiven().dimensions());
      RequireExtents(check, check.operand(1), result.rank(), "output_dimensions");
      RequireBroadcast(check, check.operand(0), result,
                       check.as<DynamicBroadcastAttributes>().broadcast_dimensions);
      return result;
    }
    case Opcode::kDynamicIota: {
      check.RequireOperands(1);
      const Shape& given = check.RequireGiven();
      RequireExtents(check, check.operand(0), given.rank(), "output_shape");
      check.RequireDimension(check.as<DimensionAttributes>().dimension, given.rank(),
                             "iota_dimension");
      return given;
    }
    case Opcode::kDynamicPad:
      return InferDynamicPad(check);
    case Opcode::kDynamicReshape: {
      check.RequireOperands(2);
      const Shape& x = check.operand(0);
      Shape result = x.WithDimensions(check.RequireGiven().dimensions());
      RequireExtents(check, check.operand(1), result.rank(), "output_shape");
      check.Require(
          x.is_dynamic() || result.is_dynamic() || x.num_elements() == result.num_elements(),
          "the result must have as many elements as the operand");
      return result;
    }
    case Opcode::kGetDimensionSize:
      check.RequireOperands(1);
      check.RequireDimension(check.as<DimensionAttributes>().dimension, check.operand(0).rank(),
                             "dimension");
      return Shape::Scalar(ElementType::kS32);
    case Opcode::kRealDynamicSlice:
      return InferRealDynamicSlice(check);
    default:
      return InferSetDimensionSize(check);
  }
}

}  // namespace hlo
