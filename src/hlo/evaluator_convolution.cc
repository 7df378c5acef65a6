// convolution as its definition: for each result element, the sum over the window and the group's
// features.
#include "hlo/evaluation.h"

namespace hlo::evaluation {
namespace {

struct Geometry {
  const ConvolutionAttributes& attributes;
  const Window& window;
  const Shape &lhs, &rhs;
  Dimensions lhs_strides, rhs_strides;
  Dimensions kernel_sizes;  // spatial

  int64_t LhsFeaturesOfGroup() const {
    return rhs.dimension(attributes.dimensions.kernel_input_feature_dimension);
  }
  int64_t OutputFeatures() const {
    return rhs.dimension(attributes.dimensions.kernel_output_feature_dimension);
  }
  int64_t OutputBatch() const {
    return lhs.dimension(attributes.dimensions.input_batch_dimension) /
           attributes.batch_group_count;
  }

  // Offset of the lhs element that kernel position `k` meets for the result's spatial index; false
  // if that is padding or a hole.
  bool LhsOffset(const Dimensions& output_index, const Dimensions& k, int64_t& offset) const {
    const ConvolutionDimensions& d = attributes.dimensions;
    offset = 0;
    for (size_t i = 0; i < k.size(); ++i) {
      int64_t at = output_index[d.output_spatial_dimensions[i]] * window.strides[i] +
                   k[i] * window.window_dilations[i] - window.padding_low[i];
      if (at < 0 || at % window.base_dilations[i] != 0) return false;
      at /= window.base_dilations[i];
      if (at >= lhs.dimension(d.input_spatial_dimensions[i])) return false;
      offset += at * lhs_strides[d.input_spatial_dimensions[i]];
    }
    return true;
  }

  int64_t RhsOffset(const Dimensions& k) const {
    int64_t offset = 0;
    for (size_t i = 0; i < k.size(); ++i) {
      int64_t at = window.reversal[i] ? kernel_sizes[i] - 1 - k[i] : k[i];
      offset += at * rhs_strides[attributes.dimensions.kernel_spatial_dimensions[i]];
    }
    return offset;
  }
};

template <typename Accumulator>
Accumulator OneElement(const Geometry& g, const Dimensions& index,
                       const std::vector<Accumulator>& lhs, const std::vector<Accumulator>& rhs) {
  const ConvolutionDimensions& d = g.attributes.dimensions;
  int64_t output_feature = index[d.output_feature_dimension];
  int64_t features = g.OutputFeatures();
  int64_t feature_group = output_feature / (features / g.attributes.feature_group_count);
  int64_t batch_group = output_feature / (features / g.attributes.batch_group_count);
  int64_t batch = index[d.output_batch_dimension] + batch_group * g.OutputBatch();
  int64_t lhs_origin =
      batch * g.lhs_strides[d.input_batch_dimension] +
      feature_group * g.LhsFeaturesOfGroup() * g.lhs_strides[d.input_feature_dimension];
  int64_t rhs_origin = output_feature * g.rhs_strides[d.kernel_output_feature_dimension];
  Accumulator sum(0);
  ForEachIndex(g.kernel_sizes, [&](const Dimensions& k, int64_t) {
    int64_t lhs_offset;
    if (!g.LhsOffset(index, k, lhs_offset)) return;
    int64_t rhs_offset = g.RhsOffset(k);
    for (int64_t f = 0; f < g.LhsFeaturesOfGroup(); ++f) {
      sum += lhs[lhs_origin + lhs_offset + f * g.lhs_strides[d.input_feature_dimension]] *
             rhs[rhs_origin + rhs_offset + f * g.rhs_strides[d.kernel_input_feature_dimension]];
    }
  });
  return sum;
}

Literal Convolve(const Shape& shape, const ConvolutionAttributes& attributes, const Window& window,
                 const Literal& lhs, const Literal& rhs) {
  Geometry g{attributes,
             window,
             lhs.shape(),
             rhs.shape(),
             RowMajorStrides(lhs.shape().dimensions()),
             RowMajorStrides(rhs.shape().dimensions()),
             {}};
  for (int64_t i : attributes.dimensions.kernel_spatial_dimensions) {
    g.kernel_sizes.push_back(rhs.shape().dimension(i));
  }
  return DispatchAccumulator(shape.element_type(), [&]<typename Accumulator>() {
    auto x = ReadAs<Accumulator>(lhs), y = ReadAs<Accumulator>(rhs);
    std::vector<Accumulator> result(shape.num_elements());
    ForEachIndex(shape.dimensions(), [&](const Dimensions& index, int64_t position) {
      result[position] = OneElement(g, index, x, y);
    });
    return WriteAs(shape, result);
  });
}

}  // namespace

Leaves EvaluateConvolution(const Instruction& instruction, const Leaves& operands) {
  const auto& attributes = instruction.as<ConvolutionAttributes>();
  Window window = attributes.window;
  if (instruction.opcode() == Opcode::kDynamicConv) {
    Dimensions padding = ReadIntegers(operands[2]);
    window.padding_low.clear();
    window.padding_high.clear();
    for (size_t i = 0; i + 1 < padding.size(); i += 2) {
      window.padding_low.push_back(padding[i]);
      window.padding_high.push_back(padding[i + 1]);
    }
    auto spatial = attributes.dimensions.input_spatial_dimensions.size();
    if (window.strides.empty()) window.strides.assign(spatial, 1);
    if (window.base_dilations.empty()) window.base_dilations.assign(spatial, 1);
    if (window.window_dilations.empty()) window.window_dilations.assign(spatial, 1);
    if (window.reversal.empty()) window.reversal.assign(spatial, false);
  }
  return {Convolve(instruction.shape(), attributes, window, operands[0], operands[1])};
}

}  // namespace hlo::evaluation
