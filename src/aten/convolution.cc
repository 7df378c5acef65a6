// Convolution of any spatial rank, plain and transposed, grouped and dilated, and its gradients in
// the forms that engines recognise: the input's gradient convolves the output's gradient, dilated
// by the stride, with the reversed kernel; the weight's gradient swaps the roles of batch and
// features and dilates the kernel by the stride.
#include <array>

#include "aten/dimension.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "hlo/size_arithmetic.h"
#include "lazy/programs_of_any_size.h"

namespace torch_xla {
namespace {

// The parameters of one convolution, a list entry for each spatial dimension.
struct Geometry {
  Dimensions stride, padding, dilation, output_padding;
  int64_t groups = 1;
  int64_t rank() const { return static_cast<int64_t>(stride.size()); }
};

Geometry MakeGeometry(int64_t rank, const Dimensions& stride, const Dimensions& padding,
                      const Dimensions& dilation, const Dimensions& output_padding,
                      int64_t groups) {
  if (rank < 1) throw hlo::Error("weight should have at least three dimensions");
  return {PerDimension(stride, rank, "stride"), PerDimension(padding, rank, "padding"),
          PerDimension(dilation, rank, "dilation"),
          PerDimension(output_padding, rank, "output_padding"), groups};
}

hlo::Window PlainWindow(int64_t rank) {
  hlo::Window window;
  window.strides = window.base_dilations = window.window_dilations = Dimensions(rank, 1);
  window.padding_low = window.padding_high = Dimensions(rank, 0);
  window.reversal = std::vector<bool>(rank, false);
  return window;
}

Dimensions SpatialDimensions(int64_t rank) {
  Dimensions spatial(rank);
  for (int64_t i = 0; i < rank; ++i) spatial[i] = i + 2;
  return spatial;
}

Dimensions SpatialSizes(Value x) { return {x->dimensions().begin() + 2, x->dimensions().end()}; }

int64_t Dilated(int64_t size, int64_t dilation) { return (size - 1) * dilation + 1; }

// Whether each element of the input lies in one window: cut into patches, say. Then a convolution
// is a product of matrices, and so are its gradients. Not where other sizes may come, of which not
// each would be cut evenly.
bool Tiles(const Geometry& g, const Dimensions& kernel_sizes, Value x,
           const Dimensions& input_sizes) {
  // Shorter rows of a window are gathered more slowly than the product is worth.
  constexpr int64_t kLeastRow = 4;
  if (lazy::LoweringForAnySize::IsOn()) return false;
  for (int64_t i = 0; i < g.rank(); ++i) {
    const int64_t size = kernel_sizes[i];
    if (size == 0 || g.stride[i] != size || g.padding[i] != 0 || g.dilation[i] != 1 ||
        g.output_padding[i] != 0 || input_sizes[i] % size != 0) {
      return false;
    }
  }
  return g.groups == 1 && kernel_sizes.back() >= kLeastRow && hlo::IsFloat(x->element_type());
}

// [batch, features, outputs * kernel, …] as [batch, features, outputs, kernel, …].
Value SplitIntoTiles(Builder& b, Value x, const Dimensions& kernel) {
  Dimensions split(x->dimensions().begin(), x->dimensions().begin() + 2);
  for (size_t i = 0; i < kernel.size(); ++i) {
    split.push_back(x->shape().dimension(static_cast<int64_t>(i) + 2) / kernel[i]);
    split.push_back(kernel[i]);
  }
  return b.Reshape(x, split);
}

// `first`, first + step, …: one for each spatial dimension.
Dimensions EachSpatial(int64_t rank, int64_t first, int64_t step) {
  Dimensions list(rank);
  for (int64_t i = 0; i < rank; ++i) list[i] = first + i * step;
  return list;
}

Dimensions Joined(Dimensions a, const Dimensions& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Value Contract(Builder& b, Value x, Value y, Dimensions of_x, Dimensions of_y) {
  hlo::DotAttributes attributes;
  attributes.lhs_contracting_dimensions = std::move(of_x);
  attributes.rhs_contracting_dimensions = std::move(of_y);
  return b.DotGeneral(x, y, attributes);
}

Value ForwardOfTiles(Builder& b, Value x, Value weight, int64_t rank) {
  Value tiles = SplitIntoTiles(b, x, SpatialSizes(weight));
  Value product = Contract(b, tiles, weight, Joined({1}, EachSpatial(rank, 3, 2)),
                           Joined({1}, EachSpatial(rank, 2, 1)));
  return b.Transpose(product, MoveDimensionPermutation(rank + 2, rank + 1, 1));
}

Value InputGradientOfTiles(Builder& b, Value gradient, Value weight, int64_t rank,
                           const Dimensions& input_sizes) {
  // [batch, outputs…, features, kernel…]
  Value tiles = Contract(b, gradient, weight, {1}, {0});
  Dimensions order = {0, rank + 1};
  for (int64_t i = 0; i < rank; ++i) order.insert(order.end(), {1 + i, rank + 2 + i});
  Dimensions sizes = {gradient->shape().dimension(0), weight->shape().dimension(1)};
  return b.Reshape(b.Transpose(tiles, order), Joined(sizes, input_sizes));
}

Value WeightGradientOfTiles(Builder& b, Value gradient, Value x, int64_t rank,
                            const Dimensions& kernel_sizes) {
  return Contract(b, gradient, SplitIntoTiles(b, x, kernel_sizes),
                  Joined({0}, EachSpatial(rank, 2, 1)), Joined({0}, EachSpatial(rank, 2, 2)));
}

// weight: [out, in / groups, spatial…]. `output_sizes` crops or extends the result; empty: what the
// padding gives.
Value Forward(Builder& b, Value x, Value weight, const Geometry& g,
              const Dimensions& output_sizes = {}) {
  if (Tiles(g, SpatialSizes(weight), x, SpatialSizes(x))) {
    return ForwardOfTiles(b, x, weight, g.rank());
  }
  hlo::ConvolutionAttributes attributes;
  attributes.window = PlainWindow(g.rank());
  attributes.window.strides = g.stride;
  attributes.window.padding_low = attributes.window.padding_high = g.padding;
  attributes.window.window_dilations = g.dilation;
  for (size_t i = 0; i < output_sizes.size(); ++i) {
    attributes.window.padding_high[i] = (output_sizes[i] - 1) * g.stride[i] +
                                        Dilated(weight->shape().dimension(i + 2), g.dilation[i]) -
                                        x->shape().dimension(i + 2) - g.padding[i];
  }
  attributes.dimensions = hlo::ConvolutionDimensions::ChannelsFirst(g.rank());
  attributes.feature_group_count = g.groups;
  return b.Convolution(x, weight, attributes);
}

// [groups * a, c, …] as [a, groups * c, …]: the kernel of a grouped convolution with its features'
// roles swapped.
Value SwapGroupedFeatures(Builder& b, Value weight, int64_t groups) {
  Dimensions d = weight->dimensions();
  Dimensions split = d;
  split[0] = d[0] / groups;
  split.insert(split.begin(), groups);
  Dimensions merged = d;
  merged[0] = d[0] / groups;
  merged[1] = d[1] * groups;
  return b.Reshape(b.Transpose(b.Reshape(weight, split),
                               MoveDimensionPermutation(static_cast<int64_t>(split.size()), 0, 1)),
                   merged);
}

// Whether the windows of a transposed convolution are a few steps long, and a step many elements:
// each position within a step then is an output of its own of a convolution without strides, as in
// upsampling by a learned or bilinear kernel.
bool AreWholeSteps(const Geometry& g, const Dimensions& kernel_sizes, Value gradient,
                   const Dimensions& input_sizes) {
  constexpr int64_t kLeastStride = 8, kMostSteps = 4;
  if (lazy::LoweringForAnySize::IsOn()) return false;
  for (int64_t i = 0; i < g.rank(); ++i) {
    const int64_t size = kernel_sizes[i], stride = g.stride[i];
    if (stride < kLeastStride || size == 0 || size % stride != 0 || size > kMostSteps * stride ||
        g.dilation[i] != 1) {
      return false;
    }
    // Where the windows reach; what they do not is not there.
    const int64_t reached = (gradient->shape().dimension(i + 2) - 1) * stride + size;
    if (g.padding[i] + input_sizes[i] > reached) {
      return false;
    }
  }
  return g.rank() > 1 && g.groups == 1 && hlo::IsFloat(gradient->element_type());
}

// [a, b, steps * stride…] as [b * stride…, a, steps…], which is the kernel of the convolution for
// each position within a step.
Value KernelOfSteps(Builder& b, Value weight, const Geometry& g) {
  const int64_t rank = g.rank();
  Dimensions steps;
  for (int64_t i = 0; i < rank; ++i)
    steps.push_back(weight->shape().dimension(i + 2) / g.stride[i]);
  Dimensions split(weight->dimensions().begin(), weight->dimensions().begin() + 2);
  for (int64_t i = 0; i < rank; ++i) split.insert(split.end(), {steps[i], g.stride[i]});
  Dimensions order = Joined({1}, EachSpatial(rank, 3, 2));
  order = Joined(Joined(order, {0}), EachSpatial(rank, 2, 2));
  const int64_t outputs = weight->shape().dimension(1) * hlo::Product(g.stride);
  Value kernel = b.Transpose(b.Reshape(weight, split), order);
  kernel = b.Reshape(kernel, Joined({outputs, weight->shape().dimension(0)}, steps));
  return b.Reverse(kernel, SpatialDimensions(rank));
}

Value InputGradientOfSteps(Builder& b, Value gradient, Value weight, const Geometry& g,
                           const Dimensions& input_sizes) {
  const int64_t rank = g.rank();
  Value kernel = KernelOfSteps(b, weight, g);
  hlo::ConvolutionAttributes attributes;
  attributes.window = PlainWindow(rank);
  for (int64_t i = 0; i < rank; ++i) {
    attributes.window.padding_low[i] = attributes.window.padding_high[i] =
        kernel->shape().dimension(i + 2) - 1;
  }
  attributes.dimensions = hlo::ConvolutionDimensions::ChannelsFirst(rank);
  Value parts = b.Convolution(gradient, kernel, attributes);
  // [batch, features, positions within a step…, steps…], and then each step's positions together.
  Dimensions split = {parts->shape().dimension(0), weight->shape().dimension(1)};
  Dimensions whole = split, order = {0, 1}, begin = {0, 0};
  split = Joined(Joined(split, g.stride), SpatialSizes(parts));
  for (int64_t i = 0; i < rank; ++i) {
    order.insert(order.end(), {2 + rank + i, 2 + i});
    whole.push_back(parts->shape().dimension(i + 2) * g.stride[i]);
  }
  Value result = b.Reshape(b.Transpose(b.Reshape(parts, split), order), whole);
  begin = Joined(begin, g.padding);
  Dimensions end = {whole[0], whole[1]};
  for (int64_t i = 0; i < rank; ++i) end.push_back(g.padding[i] + input_sizes[i]);
  return b.Slice(result, begin, end, Dimensions(rank + 2, 1));
}

// What convolves to `gradient` transposed: the gradient of Forward with respect to an input of the
// spatial sizes `input_sizes`. weight is Forward's.
Value InputGradient(Builder& b, Value gradient, Value weight, const Geometry& g,
                    const Dimensions& input_sizes) {
  if (Tiles(g, SpatialSizes(weight), gradient, input_sizes)) {
    return InputGradientOfTiles(b, gradient, weight, g.rank(), input_sizes);
  }
  if (AreWholeSteps(g, SpatialSizes(weight), gradient, input_sizes)) {
    return InputGradientOfSteps(b, gradient, weight, g, input_sizes);
  }
  hlo::ConvolutionAttributes attributes;
  attributes.window = PlainWindow(g.rank());
  attributes.window.base_dilations = g.stride;
  attributes.window.window_dilations = g.dilation;
  for (int64_t i = 0; i < g.rank(); ++i) {
    int64_t kernel = Dilated(weight->shape().dimension(i + 2), g.dilation[i]);
    int64_t spread = Dilated(gradient->shape().dimension(i + 2), g.stride[i]);
    attributes.window.padding_low[i] = kernel - 1 - g.padding[i];
    attributes.window.padding_high[i] =
        input_sizes[i] + kernel - 1 - spread - attributes.window.padding_low[i];
  }
  attributes.dimensions = hlo::ConvolutionDimensions::ChannelsFirst(g.rank());
  attributes.feature_group_count = g.groups;
  Value reversed = b.Reverse(weight, SpatialDimensions(g.rank()));
  if (g.groups > 1) {
    reversed = SwapGroupedFeatures(b, reversed, g.groups);
  }
  attributes.dimensions.kernel_input_feature_dimension = 0;
  attributes.dimensions.kernel_output_feature_dimension = 1;
  return b.Convolution(gradient, reversed, attributes);
}

// The gradient of Forward(x, weight) with respect to the weight, whose spatial sizes are
// `kernel_sizes`.
Value WeightGradient(Builder& b, Value gradient, Value x, const Geometry& g,
                     const Dimensions& kernel_sizes) {
  if (Tiles(g, kernel_sizes, x, SpatialSizes(x))) {
    return WeightGradientOfTiles(b, gradient, x, g.rank(), kernel_sizes);
  }
  hlo::ConvolutionAttributes attributes;
  attributes.window = PlainWindow(g.rank());
  attributes.window.strides = g.dilation;
  attributes.window.window_dilations = g.stride;
  for (int64_t i = 0; i < g.rank(); ++i) {
    int64_t spread = Dilated(gradient->shape().dimension(i + 2), g.stride[i]);
    // The padded input is exactly as long as the kernel's positions need, rows that no window
    // reached are cropped.
    int64_t needed = Dilated(kernel_sizes[i], g.dilation[i]) + spread - 1;
    attributes.window.padding_low[i] = g.padding[i];
    attributes.window.padding_high[i] = needed - x->shape().dimension(i + 2) - g.padding[i];
  }
  hlo::ConvolutionDimensions& d = attributes.dimensions;
  d.input_batch_dimension = 1;
  d.input_feature_dimension = 0;
  d.kernel_input_feature_dimension = 0;
  d.kernel_output_feature_dimension = 1;
  d.output_batch_dimension = 1;
  d.output_feature_dimension = 0;
  d.input_spatial_dimensions = d.kernel_spatial_dimensions = d.output_spatial_dimensions =
      SpatialDimensions(g.rank());
  attributes.batch_group_count = g.groups;
  return b.Convolution(x, gradient, attributes);
}

// Transposed: the weight is [in, out / groups, spatial…], that of the forward convolution whose
// input gradient this is.
Value Transposed(Builder& b, Value x, Value weight, const Geometry& g) {
  Dimensions sizes = SpatialSizes(x);
  for (int64_t i = 0; i < g.rank(); ++i) {
    sizes[i] = (sizes[i] - 1) * g.stride[i] - 2 * g.padding[i] +
               Dilated(weight->shape().dimension(i + 2), g.dilation[i]) + g.output_padding[i];
  }
  return InputGradient(b, x, weight, g, sizes);
}

// Of an input without channels the result has none, whatever the weight would give.
Value WithoutChannels(Builder& b, Value result) {
  Dimensions none = result->dimensions();
  none[1] = 0;
  return b.Zeros(Shape(result->element_type(), none));
}

std::string DimensionsText(const Dimensions& dimensions) { return hlo::ToString(dimensions); }

// Torch's checks, in its words where a model's author meets them.
void CheckShapes(Value x, Value weight, const std::optional<Value>& bias, const Geometry& g,
                 bool transposed) {
  if (x->element_type() != weight->element_type()) {
    throw hlo::Error("Input type (" + std::string(hlo::ShortName(x->element_type())) +
                     ") and weight type (" + std::string(hlo::ShortName(weight->element_type())) +
                     ") should be the same");
  }
  if (x->shape().rank() != weight->shape().rank()) {
    throw hlo::Error("Expected " + std::to_string(weight->shape().rank()) +
                     "-dimensional input for " + std::to_string(weight->shape().rank()) +
                     "-dimensional weight " + DimensionsText(weight->dimensions()) +
                     ", but got input of size: " + DimensionsText(x->dimensions()));
  }
  int64_t channels =
      transposed ? weight->shape().dimension(0) : weight->shape().dimension(1) * g.groups;
  if (x->shape().dimension(1) != channels) {
    throw hlo::Error("Given groups=" + std::to_string(g.groups) + ", weight of size " +
                     DimensionsText(weight->dimensions()) + ", expected input" +
                     DimensionsText(x->dimensions()) + " to have " + std::to_string(channels) +
                     " channels, but got " + std::to_string(x->shape().dimension(1)) +
                     " channels instead");
  }
  const int64_t outputs =
      transposed ? weight->shape().dimension(1) * g.groups : weight->shape().dimension(0);
  if (bias && (*bias)->dimensions() != Dimensions{outputs}) {
    throw hlo::Error("Given weight of size " + DimensionsText(weight->dimensions()) +
                     ", expected bias to be 1-dimensional with " + std::to_string(outputs) +
                     " elements, but got bias of size " + DimensionsText((*bias)->dimensions()) +
                     " instead");
  }
  for (int64_t i = 0; i < g.rank() && !transposed; ++i) {
    int64_t kernel = Dilated(weight->shape().dimension(i + 2), g.dilation[i]);
    int64_t padded = x->shape().dimension(i + 2) + 2 * g.padding[i];
    if (padded < kernel) {
      throw hlo::Error("Calculated padded input size per channel: (" + std::to_string(padded) +
                       "). Kernel size: (" + std::to_string(kernel) +
                       "). Kernel size can't be greater than actual input size");
    }
  }
}

Value Convolution(Builder& b, Value x, Value weight, std::optional<Value> bias, Dimensions stride,
                  Dimensions padding, Dimensions dilation, bool transposed,
                  Dimensions output_padding, int64_t groups) {
  int64_t rank = weight->shape().rank() - 2;
  Geometry g = MakeGeometry(rank, stride, padding, dilation, output_padding, groups);
  if (std::any_of(g.padding.begin(), g.padding.end(), [](int64_t p) { return p < 0; })) {
    throw hlo::Error("negative padding is not supported");
  }
  CheckShapes(x, weight, bias, g, transposed);
  Value result = transposed ? Transposed(b, x, weight, g) : Forward(b, x, weight, g);
  if (x->shape().dimension(1) == 0) return WithoutChannels(b, result);
  if (!bias) return result;
  return b.Add(result, AlongDimension(b, *bias, result->dimensions(), 1));
}

std::array<Value, 3> ConvolutionBackward(Builder& b, Value gradient, Value x, Value weight,
                                         std::optional<Dimensions> bias_sizes, Dimensions stride,
                                         Dimensions padding, Dimensions dilation, bool transposed,
                                         Dimensions output_padding, int64_t groups,
                                         std::array<bool, 3> output_mask) {
  int64_t rank = weight->shape().rank() - 2;
  Geometry g = MakeGeometry(rank, stride, padding, dilation, output_padding, groups);
  std::array<Value, 3> results = {nullptr, nullptr, nullptr};
  if (x->shape().dimension(1) == 0) {
    if (output_mask[0]) results[0] = b.Zeros(x->shape());
    if (output_mask[1]) results[1] = b.Zeros(weight->shape());
    if (output_mask[2]) results[2] = b.Zeros(Shape(x->element_type(), bias_sizes.value()));
    return results;
  }
  if (output_mask[0]) {
    results[0] = transposed ? Forward(b, gradient, weight, g, SpatialSizes(x))
                            : InputGradient(b, gradient, weight, g, SpatialSizes(x));
  }
  if (output_mask[1]) {
    // A transposed convolution is the input gradient of one whose input is its output.
    results[1] = transposed ? WeightGradient(b, x, gradient, g, SpatialSizes(weight))
                            : WeightGradient(b, gradient, x, g, SpatialSizes(weight));
  }
  if (output_mask[2]) {
    results[2] = Sum(b, gradient, OtherDimensions({1}, gradient->shape().rank()));
  }
  return results;
}

// --- col2im: blocks that windows have taken from an image are added at their places, which is the
// gradient of im2col, too

// How windows lie along one dimension of an image.
struct Windows {
  int64_t size;  // of the image
  int64_t kernel, dilation, padding, stride;
  int64_t count() const {
    const int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
  }
};

// x[…, kernel, …, window, …] as […, …, image, …]: each of the kernel's elements is of every
// window's block, `stride` apart in the image.
Value AddedAlong(Builder& b, Value x, int64_t of_kernel, int64_t of_window, const Windows& w) {
  Value sum = nullptr;
  for (int64_t k = 0; k < w.kernel; ++k) {
    Dimensions shape = x->dimensions();
    shape.erase(shape.begin() + of_kernel);
    Value blocks = b.Reshape(b.SliceInDim(x, of_kernel, k, k + 1), shape);
    Dimensions low(shape.size()), high(shape.size()), interior(shape.size());
    const int64_t d = of_window - 1;
    low[d] = k * w.dilation - w.padding;
    high[d] = w.size - (low[d] + (w.count() - 1) * w.stride + 1);
    interior[d] = w.stride - 1;
    Value placed = b.Pad(blocks, ScalarLike(b, blocks, 0), low, high, interior);
    sum = sum == nullptr ? placed : b.Add(sum, placed);
  }
  return sum;
}

Value Col2Im(Builder& b, Value x, Dimensions output, Dimensions kernel, Dimensions dilation,
             Dimensions padding, Dimensions stride) {
  const ElementType type = x->element_type();
  if (hlo::IsInteger(type)) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented, "col2im: not implemented for integers");
  }
  const auto require = [](bool holds) {
    if (!holds) throw hlo::Error("col2im: the blocks are not of windows of these sizes");
  };
  const int64_t rank = x->shape().rank();
  require(rank == 2 || rank == 3);
  Windows windows[2];
  for (size_t i = 0; i < 2; ++i) {
    windows[i] = {output.at(i), kernel.at(i), dilation.at(i), padding.at(i), stride.at(i)};
    require(kernel[i] > 0 && dilation[i] > 0 && padding[i] >= 0 && stride[i] > 0 && output[i] > 0);
    require(windows[i].count() > 0);
  }
  const auto& [rows, columns] = windows;
  const int64_t batch = rank == 3 ? x->shape().dimension(0) : 1;
  const int64_t channels = x->shape().dimension(rank - 2) / (rows.kernel * columns.kernel);
  require(channels > 0 &&
          channels * rows.kernel * columns.kernel == x->shape().dimension(rank - 2));
  require(rows.count() * columns.count() == x->shape().dimension(rank - 1));
  x = b.Reshape(ToAccumulation(b, x),
                {batch, channels, rows.kernel, columns.kernel, rows.count(), columns.count()});
  x = AddedAlong(b, x, 3, 5, columns);
  x = AddedAlong(b, x, 2, 3, rows);
  Dimensions image = {channels, rows.size, columns.size};
  if (rank == 3) image.insert(image.begin(), batch);
  return b.Convert(b.Reshape(x, image), type);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  Register<&Convolution>(m, "convolution");
  Register<&Convolution>(m, "convolution_overrideable");
  Register<&ConvolutionBackward>(m, "convolution_backward");
  Register<&Col2Im>(m, "col2im");
}

}  // namespace torch_xla
