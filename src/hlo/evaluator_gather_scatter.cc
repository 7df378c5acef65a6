// gather and scatter.
#include <algorithm>

#include "hlo/error.h"
#include "hlo/evaluation.h"

namespace hlo::evaluation {
namespace {

bool Has(const Dimensions& list, int64_t value) {
  return std::ranges::find(list, value) != list.end();
}

// Splits an index of a gather's result, or of a scatter's updates, and finds the origin of its
// window.
class WindowIndex {
 public:
  WindowIndex(const Literal& indices, const Dimensions& window_dims, const Dimensions& inserted,
              const Dimensions& big_batching, const Dimensions& index_batching,
              const Dimensions& index_map, int64_t index_vector_dim, int64_t big_rank)
      : numbers_(ReadIntegers(indices)),
        rank_(indices.shape().rank()),
        strides_(RowMajorStrides(indices.shape().dimensions())),
        window_dims_(window_dims),
        big_batching_(big_batching),
        index_batching_(index_batching),
        index_map_(index_map),
        index_vector_dim_(index_vector_dim),
        big_rank_(big_rank) {
    for (int64_t i = 0; i < big_rank; ++i) {
      if (!Has(inserted, i) && !Has(big_batching, i)) windowed_.push_back(i);
    }
  }

  // Where the window starts in the big tensor. Nothing is clamped.
  Dimensions Origin(const Dimensions& index) const {
    Dimensions grid;
    for (size_t i = 0; i < index.size(); ++i) {
      if (!Has(window_dims_, static_cast<int64_t>(i))) grid.push_back(index[i]);
    }
    // The position in the index tensor, whose vector dimension is filled in below.
    Dimensions position = grid;
    bool implied = index_vector_dim_ == rank_;
    if (!implied) position.insert(position.begin() + index_vector_dim_, 0);
    Dimensions origin(big_rank_, 0);
    for (size_t k = 0; k < index_map_.size(); ++k) {
      if (!implied) position[index_vector_dim_] = static_cast<int64_t>(k);
      origin[index_map_[k]] = numbers_[Dot(position, strides_)];
    }
    for (size_t k = 0; k < big_batching_.size(); ++k) {
      origin[big_batching_[k]] = position[index_batching_[k]];
    }
    return origin;
  }

  // The position inside the window, over the big tensor's dimensions.
  Dimensions Offset(const Dimensions& index) const {
    Dimensions offset(big_rank_, 0);
    for (size_t i = 0; i < window_dims_.size(); ++i) offset[windowed_[i]] = index[window_dims_[i]];
    return offset;
  }

  const Dimensions& windowed() const { return windowed_; }

 private:
  Dimensions numbers_;
  int64_t rank_;
  Dimensions strides_;
  const Dimensions &window_dims_, &big_batching_, &index_batching_, &index_map_;
  int64_t index_vector_dim_, big_rank_;
  Dimensions windowed_;  // the big tensor's dimensions that windows extend over
};

}  // namespace

Leaves EvaluateGather(const Instruction& instruction, const Leaves& operands) {
  const auto& gather = instruction.as<GatherAttributes>();
  const Literal& x = operands[0];
  Dimensions sizes = instruction.opcode() == Opcode::kDynamicGather ? ReadIntegers(operands[2])
                                                                    : gather.slice_sizes;
  WindowIndex window(operands[1], gather.offset_dims, gather.collapsed_slice_dims,
                     gather.operand_batching_dims, gather.start_indices_batching_dims,
                     gather.start_index_map, gather.index_vector_dim, x.shape().rank());
  for (size_t i = 0; i < gather.offset_dims.size(); ++i) {
    if (instruction.dimensions()[gather.offset_dims[i]] != sizes[window.windowed()[i]]) {
      throw Error(instruction.ToString() + ": the slice sizes " + ToString(sizes) +
                  " do not give the declared result");
    }
  }
  Dimensions strides = RowMajorStrides(x.shape().dimensions());
  Literal result(instruction.shape());
  std::byte* out = result.mutable_bytes();
  ForEachIndex(instruction.dimensions(), [&](const Dimensions& index, int64_t position) {
    Dimensions at = window.Origin(index), offset = window.Offset(index);
    for (size_t i = 0; i < at.size(); ++i) {
      int64_t last = x.shape().dimension(static_cast<int64_t>(i)) - sizes[i];
      at[i] = std::clamp<int64_t>(at[i], 0, last) + offset[i];
    }
    CopyElement(x, Dot(at, strides), out, position);
  });
  return {std::move(result)};
}

Leaves EvaluateScatter(const Instruction& instruction, const Leaves& operands) {
  const auto& scatter = instruction.as<ScatterAttributes>();
  size_t count = operands.size() / 2;
  const Shape& shape = operands[0].shape();
  const Dimensions& update_dimensions = operands[count + 1].shape().dimensions();
  WindowIndex window(operands[count], scatter.update_window_dims, scatter.inserted_window_dims,
                     scatter.input_batching_dims, scatter.scatter_indices_batching_dims,
                     scatter.scatter_dims_to_operand_dims, scatter.index_vector_dim, shape.rank());
  Dimensions window_sizes(shape.rank(), 1);
  for (size_t i = 0; i < scatter.update_window_dims.size(); ++i) {
    window_sizes[window.windowed()[i]] = update_dimensions[scatter.update_window_dims[i]];
  }
  std::vector<Shape> result_shapes;
  AppendLeafShapes(instruction.shape(), result_shapes);

  ScalarProgram body(*instruction.called_computations()[0]);
  Dimensions strides = RowMajorStrides(shape.dimensions());
  Leaves results, updates;  // in the body's types, to which operands may be promoted
  for (size_t i = 0; i < count; ++i) {
    ElementType type = result_shapes[i].element_type();
    results.push_back(ConvertElements(operands[i], type));
    updates.push_back(ConvertElements(operands[count + 1 + i], type));
  }
  std::vector<const std::byte*> parameters(2 * count);
  std::vector<std::byte*> out(count);
  ForEachIndex(update_dimensions, [&](const Dimensions& index, int64_t position) {
    Dimensions at = window.Origin(index), offset = window.Offset(index);
    for (size_t i = 0; i < at.size(); ++i) {
      // A window that does not fit is left out whole. The subtraction cannot overflow.
      if (at[i] < 0 || at[i] > shape.dimension(static_cast<int64_t>(i)) - window_sizes[i]) return;
      at[i] += offset[i];
    }
    int64_t target = Dot(at, strides);
    for (size_t i = 0; i < count; ++i) {
      size_t width = ByteWidth(result_shapes[i].element_type());
      out[i] = results[i].mutable_bytes() + target * width;
      parameters[i] = out[i];
      parameters[count + i] = updates[i].bytes() + position * width;
    }
    body.Run(parameters, out);
  });
  return results;
}

}  // namespace hlo::evaluation
