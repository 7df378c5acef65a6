// Shapes of dot_general and convolution.
#include "hlo/shape_check.h"

namespace hlo {
namespace {

// The operands' element type, or the one that the program asks for if it is of the same kind.
ElementType ResultType(const ShapeCheck& check) {
  ElementType type = check.operand(0).element_type();
  check.Require(SameKind(type, check.operand(1).element_type()),
                "both operands must have element types of the same kind");
  if (!check.given) return type;
  ElementType wanted = check.given->element_type();
  bool both_integers = IsInteger(type) && IsInteger(wanted);
  check.Require(SameKind(type, wanted) || both_integers, [&] {
    return "the result's element type " + std::string(ShortName(wanted)) +
           " must be of the operands' kind";
  });
  return wanted;
}

void RequireDotSide(const ShapeCheck& check, const Shape& shape, const Dimensions& batching,
                    const Dimensions& contracting, const char* name) {
  Dimensions both = batching;
  both.insert(both.end(), contracting.begin(), contracting.end());
  check.RequireDimensions(both, shape.rank(), name);
}

void RequireEqualSizes(const ShapeCheck& check, const Dimensions& lhs, const Dimensions& rhs,
                       const char* name) {
  check.Require(lhs.size() == rhs.size(), [&] {
    return "both sides must have as many " + std::string(name) + " dimensions";
  });
  for (size_t i = 0; i < lhs.size(); ++i) {
    int64_t left = check.operand(0).dimension(lhs[i]), right = check.operand(1).dimension(rhs[i]);
    check.Require(SameDimension(left, right), [&] {
      return std::string(name) + " dimensions " + std::to_string(lhs[i]) + " and " +
             std::to_string(rhs[i]) + " have the different sizes " + std::to_string(left) +
             " and " + std::to_string(right);
    });
  }
}

void AppendFree(const Shape& shape, const Dimensions& batching, const Dimensions& contracting,
                Dimensions& out) {
  for (int64_t i = 0; i < shape.rank(); ++i) {
    if (!Contains(batching, i) && !Contains(contracting, i)) out.push_back(shape.dimension(i));
  }
}

Shape InferDotGeneral(const ShapeCheck& check) {
  check.RequireOperands(2);
  const Shape &lhs = check.operand(0), &rhs = check.operand(1);
  const auto& dot = check.as<DotAttributes>();
  RequireDotSide(check, lhs, dot.lhs_batching_dimensions, dot.lhs_contracting_dimensions,
                 "lhs dimensions");
  RequireDotSide(check, rhs, dot.rhs_batching_dimensions, dot.rhs_contracting_dimensions,
                 "rhs dimensions");
  RequireEqualSizes(check, dot.lhs_batching_dimensions, dot.rhs_batching_dimensions, "batching");
  RequireEqualSizes(check, dot.lhs_contracting_dimensions, dot.rhs_contracting_dimensions,
                    "contracting");
  Dimensions dimensions;
  for (int64_t i : dot.lhs_batching_dimensions) dimensions.push_back(lhs.dimension(i));
  AppendFree(lhs, dot.lhs_batching_dimensions, dot.lhs_contracting_dimensions, dimensions);
  AppendFree(rhs, dot.rhs_batching_dimensions, dot.rhs_contracting_dimensions, dimensions);
  return Shape(ResultType(check), std::move(dimensions));
}

void RequirePermutation(const ShapeCheck& check, int64_t first, int64_t second,
                        const Dimensions& spatial, int64_t rank, const char* name) {
  Dimensions all = spatial;
  all.push_back(first);
  all.push_back(second);
  check.RequireLength(all.size(), rank, name);
  check.RequireDimensions(all, rank, name);
}

void RequireConvolutionWindow(const ShapeCheck& check, const Window& window, int64_t spatial) {
  check.RequireLength(window.strides.size(), spatial, "window_strides");
  check.RequireLength(window.padding_low.size(), spatial, "padding");
  check.RequireLength(window.padding_high.size(), spatial, "padding");
  check.RequireLength(window.base_dilations.size(), spatial, "lhs_dilation");
  check.RequireLength(window.window_dilations.size(), spatial, "rhs_dilation");
  check.RequireLength(window.reversal.size(), spatial, "window_reversal");
  for (int64_t i = 0; i < spatial; ++i) {
    check.Require(
        window.strides[i] > 0 && window.base_dilations[i] > 0 && window.window_dilations[i] > 0,
        "strides and dilations must be positive");
  }
}

void RequireGroups(const ShapeCheck& check, const ConvolutionAttributes& convolution) {
  const Shape &lhs = check.operand(0), &rhs = check.operand(1);
  const ConvolutionDimensions& d = convolution.dimensions;
  int64_t feature_groups = convolution.feature_group_count;
  int64_t batch_groups = convolution.batch_group_count;
  check.Require(feature_groups > 0 && batch_groups > 0, "group counts must be positive");
  check.Require(feature_groups == 1 || batch_groups == 1,
                "feature_group_count and batch_group_count must not both exceed 1");
  int64_t input_features = lhs.dimension(d.input_feature_dimension);
  int64_t kernel_input = rhs.dimension(d.kernel_input_feature_dimension);
  int64_t kernel_output = rhs.dimension(d.kernel_output_feature_dimension);
  int64_t batch = lhs.dimension(d.input_batch_dimension);
  check.Require(batch == kDynamic || batch % batch_groups == 0,
                "the batch must be a multiple of batch_group_count");
  check.Require(input_features == kDynamic || kernel_input == kDynamic ||
                    input_features == kernel_input * feature_groups,
                [&] {
                  return "the lhs has " + std::to_string(input_features) +
                         " features, but the kernel takes " + std::to_string(kernel_input) +
                         " in each of " + std::to_string(feature_groups) + " groups";
                });
  check.Require(kernel_output == kDynamic ||
                    (kernel_output % feature_groups == 0 && kernel_output % batch_groups == 0),
                "the kernel's output features must be a multiple of the group count");
}

// Dimensions with the result's spatial ones left kDynamic.
Shape ConvolutionFrame(const ShapeCheck& check, const ConvolutionAttributes& convolution) {
  const Shape &lhs = check.operand(0), &rhs = check.operand(1);
  const ConvolutionDimensions& d = convolution.dimensions;
  check.Require(lhs.rank() == rhs.rank() && lhs.rank() >= 2,
                "both operands must have the same rank, at least 2");
  RequirePermutation(check, d.input_batch_dimension, d.input_feature_dimension,
                     d.input_spatial_dimensions, lhs.rank(), "input dimensions");
  RequirePermutation(check, d.kernel_input_feature_dimension, d.kernel_output_feature_dimension,
                     d.kernel_spatial_dimensions, lhs.rank(), "kernel dimensions");
  RequirePermutation(check, d.output_batch_dimension, d.output_feature_dimension,
                     d.output_spatial_dimensions, lhs.rank(), "output dimensions");
  RequireGroups(check, convolution);
  Dimensions dimensions(lhs.rank(), kDynamic);
  int64_t batch = lhs.dimension(d.input_batch_dimension);
  dimensions[d.output_batch_dimension] =
      batch == kDynamic ? kDynamic : batch / convolution.batch_group_count;
  dimensions[d.output_feature_dimension] = rhs.dimension(d.kernel_output_feature_dimension);
  return Shape(ResultType(check), std::move(dimensions));
}

Shape InferConvolution(const ShapeCheck& check) {
  check.RequireOperands(2);
  const auto& convolution = check.as<ConvolutionAttributes>();
  Shape frame = ConvolutionFrame(check, convolution);
  const ConvolutionDimensions& d = convolution.dimensions;
  const Window& window = convolution.window;
  auto spatial = static_cast<int64_t>(d.input_spatial_dimensions.size());
  RequireConvolutionWindow(check, window, spatial);
  Dimensions dimensions = frame.dimensions();
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t kernel = check.operand(1).dimension(d.kernel_spatial_dimensions[i]);
    check.Require(window.dimensions.empty() || SameDimension(window.dimensions.at(i), kernel),
                  "the window's sizes must be those of the kernel");
    dimensions[d.output_spatial_dimensions[i]] =
        WindowedSize(check.operand(0).dimension(d.input_spatial_dimensions[i]), kernel,
                     window.strides[i], window.padding_low[i], window.padding_high[i],
                     window.base_dilations[i], window.window_dilations[i]);
  }
  return frame.WithDimensions(std::move(dimensions));
}

Shape InferDynamicConv(const ShapeCheck& check) {
  check.RequireOperands(3);
  check.RequireGiven();
  const auto& convolution = check.as<ConvolutionAttributes>();
  Shape frame = ConvolutionFrame(check, convolution);
  auto spatial = static_cast<int64_t>(convolution.dimensions.input_spatial_dimensions.size());
  const Shape& padding = check.operand(2);
  check.Require(IsInteger(padding.element_type()) && padding.rank() == 2 &&
                    SameDimension(padding.dimension(0), spatial) &&
                    SameDimension(padding.dimension(1), 2),
                "the padding must be integers, a pair for each spatial dimension");
  return frame;
}

}  // namespace

Shape InferContraction(const ShapeCheck& check) {
  check.RequireArrays();
  switch (check.opcode) {
    case Opcode::kDotGeneral:
      return InferDotGeneral(check);
    case Opcode::kConvolution:
      return InferConvolution(check);
    default:
      return InferDynamicConv(check);
  }
}

}  // namespace hlo
