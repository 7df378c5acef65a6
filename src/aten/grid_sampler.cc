// grid_sample: an image read between its pixels, at places that a tensor names. An output element
// is a weighted sum over the taps around its place, which are the product of a few taps in each
// dimension. Places and sums are computed in f32 for f16 and bf16: places have few digits there.
#include <ATen/OpMathType.h>

#include <array>
#include <initializer_list>
#include <tuple>

#include "aten/dimension.h"
#include "aten/elementwise.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"

namespace torch_xla {
namespace {

enum GridMode : int64_t { kBilinear = 0, kNearest = 1, kBicubic = 2 };
enum Padding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

struct Sampling {
  int64_t mode, padding;
  bool align_corners;
};

// A place along one dimension in pixels, and its derivative by the grid's number.
struct Place {
  Value position, slope;
};

// One tap of each place along one dimension. All are [batch, places] and floating but the mask.
struct GridTap {
  Value index;   // in the image, whole
  Value inside;  // whether the tap is in the image
  Value weight;
  Value derivative;  // of the weight, by the grid's number
};

Place InPixels(Builder& b, Value x, int64_t size, bool align_corners) {
  double n = static_cast<double>(size);
  Value one = Like(b, x, 1);
  Value half = Like(b, x, 0.5);
  if (align_corners) {
    return {b.Multiply(b.Multiply(b.Add(x, one), half), Like(b, x, n - 1)),
            Like(b, x, (n - 1) / 2)};
  }
  Value scaled = b.Subtract(b.Multiply(b.Add(x, one), Like(b, x, n)), one);
  return {b.Multiply(scaled, half), Like(b, x, n / 2)};
}

Place Clipped(Builder& b, Place p, int64_t size, int64_t rank) {
  Value zero = Like(b, p.position, 0);
  Value last = Like(b, p.position, static_cast<double>(size - 1));
  Value moves = b.And(b.Gt(p.position, zero), b.Lt(p.position, last));
  // A NaN becomes the first pixel in a plane, and the last one in a volume.
  Value position = rank == 2 ? b.Minimum(b.Select(b.Gt(p.position, zero), p.position, zero), last)
                             : b.Maximum(b.Select(b.Lt(p.position, last), p.position, last), zero);
  return {position, ZeroUnless(b, moves, p.slope)};
}

// Folded at two mirrors, given as twice their positions.
Place Reflected(Builder& b, Place p, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) return {Like(b, p.position, 0), Like(b, p.slope, 0)};
  Value low = Like(b, p.position, static_cast<double>(twice_low) / 2);
  Value span = Like(b, p.position, static_cast<double>(twice_high - twice_low) / 2);
  Value signed_offset = b.Subtract(p.position, low);
  Value offset = b.Abs(signed_offset);
  Value rest = b.Remainder(offset, span);
  Value flips = b.Unary(Opcode::kFloor, b.Divide(offset, span));
  Value is_odd = b.Ne(b.Remainder(flips, Like(b, flips, 2)), Like(b, flips, 0));
  Value folded = b.Add(b.Select(is_odd, b.Subtract(span, rest), rest), low);
  Value is_before = b.Lt(signed_offset, Like(b, signed_offset, 0));
  Value turned = b.Xor(is_odd, is_before);
  return {folded, b.Select(turned, b.Negate(p.slope), p.slope)};
}

Place Padded(Builder& b, Place p, int64_t size, int64_t rank, const Sampling& how) {
  if (how.padding == kZeros) return p;
  if (how.padding == kReflection) {
    p = how.align_corners ? Reflected(b, p, 0, 2 * (size - 1)) : Reflected(b, p, -1, 2 * size - 1);
  }
  return Clipped(b, p, size, rank);
}

GridTap MakeTap(Builder& b, Value index, int64_t size, Value weight, Value derivative) {
  Value zero = Like(b, index, 0), last = Like(b, index, static_cast<double>(size - 1));
  Value inside = b.And(b.Ge(index, zero), b.Le(index, last));
  return {ZeroUnless(b, inside, index), inside, weight, derivative};
}

// a x^3 + b x^2 + c x + d, and its derivative.
struct Cubic {
  double a, b, c, d;
  Value At(Builder& builder, Value x) const { return Horner(builder, x, {a, b, c, d}); }
  Value SlopeAt(Builder& builder, Value x) const { return Horner(builder, x, {3 * a, 2 * b, c}); }
  static Value Horner(Builder& builder, Value x, std::initializer_list<double> coefficients) {
    Value sum = Like(builder, x, 0);
    for (double k : coefficients) sum = builder.Add(builder.Multiply(sum, x), Like(builder, x, k));
    return sum;
  }
};
// Keys' convolution with A = -0.75 as polynomials of the fraction, for taps -1, 0, 1, 2.
constexpr double kA = -0.75;
constexpr std::array<Cubic, 4> kCubicTaps = {{{kA, -2 * kA, kA, 0},
                                              {kA + 2, -(kA + 3), 0, 1},
                                              {-(kA + 2), 2 * kA + 3, -kA, 0},
                                              {-kA, kA, 0, 0}}};

std::vector<GridTap> BicubicTaps(Builder& b, Value x, int64_t size, const Sampling& how) {
  Place p = InPixels(b, x, size, how.align_corners);
  Value first = b.Unary(Opcode::kFloor, p.position);
  Value fraction = b.Subtract(p.position, first);
  std::vector<GridTap> taps;
  for (int k = 0; k < 4; ++k) {
    // Each tap is padded by itself.
    Value position = b.Add(first, Like(b, first, k - 1));
    Value index = Padded(b, {position, p.slope}, size, 2, how).position;
    taps.push_back(MakeTap(b, b.Unary(Opcode::kRoundNearestEven, index), size,
                           kCubicTaps[k].At(b, fraction),
                           b.Multiply(kCubicTaps[k].SlopeAt(b, fraction), p.slope)));
  }
  return taps;
}

std::vector<GridTap> TapsAlong(Builder& b, Value x, int64_t size, int64_t rank,
                               const Sampling& how) {
  if (how.mode == kBicubic) return BicubicTaps(b, x, size, how);
  Place p = Padded(b, InPixels(b, x, size, how.align_corners), size, rank, how);
  if (how.mode == kNearest) {
    Value index = b.Unary(Opcode::kRoundNearestEven, p.position);
    return {MakeTap(b, index, size, Like(b, x, 1), Like(b, x, 0))};
  }
  Value one = Like(b, x, 1);
  Value first = b.Unary(Opcode::kFloor, p.position);
  Value fraction = b.Subtract(p.position, first);
  return {MakeTap(b, first, size, b.Subtract(one, fraction), b.Negate(p.slope)),
          MakeTap(b, b.Add(first, one), size, fraction, p.slope)};
}

// A tap in every dimension together.
struct Corner {
  Value index;         // among the flattened pixels, s32
  Value inside;        // [batch, places]
  Value weight;        // of the pixel there; outside, too, where no pixel is
  Values derivatives;  // of the weight by the grid's numbers, dimension by dimension
};

std::vector<Corner> Corners(Builder& b, const std::vector<std::vector<GridTap>>& taps,
                            const Dimensions& sizes) {
  size_t rank = taps.size(), count = 1;
  for (const auto& along : taps) count *= along.size();
  std::vector<Corner> corners;
  for (size_t c = 0; c < count; ++c) {
    std::vector<const GridTap*> chosen(rank);
    size_t rest = c;
    for (size_t d = rank; d-- > 0; rest /= taps[d].size())
      chosen[d] = &taps[d][rest % taps[d].size()];
    Corner corner{nullptr, nullptr, nullptr, {}};
    for (size_t d = 0; d < rank; ++d) {
      Value index = b.Convert(chosen[d]->index, ElementType::kS32);
      bool is_first = d == 0;
      corner.index = is_first
                         ? index
                         : b.Add(b.Multiply(corner.index, b.Full(index->shape(), sizes[d])), index);
      corner.inside = is_first ? chosen[d]->inside : b.And(corner.inside, chosen[d]->inside);
      corner.weight = is_first ? chosen[d]->weight : b.Multiply(corner.weight, chosen[d]->weight);
    }
    for (size_t d = 0; d < rank; ++d) {
      Value derivative = chosen[d]->derivative;
      for (size_t e = 0; e < rank; ++e) {
        if (e != d) derivative = b.Multiply(derivative, chosen[e]->weight);
      }
      corner.derivatives.push_back(derivative);
    }
    corners.push_back(std::move(corner));
  }
  return corners;
}

// The image as [batch, channels, pixels], and where it is read.
struct Problem {
  Value image;
  Dimensions sizes;   // spatial, of the image
  Dimensions places;  // spatial, of the grid
  std::vector<Corner> corners;

  // What weighs a corner's pixel, which is 0 outside. Eager's kernel for planes multiplies by it,
  // so that a place which is no number gives none; the one for volumes passes over it.
  Value OfPixel(Builder& b, const Corner& corner, Value factor) const {
    return sizes.size() == 2 ? factor : ZeroUnless(b, corner.inside, factor);
  }
};

void CheckShapes(Value image, Value grid, int64_t rank) {
  bool fits = image->shape().rank() == rank + 2 && grid->shape().rank() == rank + 2 &&
              image->shape().dimension(0) == grid->shape().dimension(0) &&
              grid->shape().dimension(rank + 1) == rank;
  for (int64_t d = 2; fits && d < rank + 2; ++d) fits = image->shape().dimension(d) > 0;
  if (fits) return;
  throw hlo::Error(
      "grid_sampler(): expected a non-empty input [N, C, spatial dimensions…] and a grid [N, "
      "output dimensions…, " +
      std::to_string(rank) + "], but got " + image->shape().ToString() + " and " +
      grid->shape().ToString());
}

// [batch, channels, n] to [batch, n, channels], and back.
Value ChannelsLast(Builder& b, Value x) { return b.Transpose(x, {0, 2, 1}); }

Problem MakeProblem(Builder& b, Value image, Value grid, int64_t rank, const Sampling& how) {
  CheckShapes(image, grid, rank);
  if (how.mode == kBicubic && rank != 2) {
    throw hlo::Error("grid_sampler(): bicubic interpolation only supports 4D input");
  }
  Problem p;
  grid = ToAccumulation(b, grid);
  const Dimensions& full = image->dimensions();
  p.sizes.assign(full.begin() + 2, full.end());
  p.places.assign(grid->dimensions().begin() + 1, grid->dimensions().end() - 1);
  int64_t pixels = NumElements(full, OtherDimensions({0, 1}, rank + 2));
  p.image = b.Reshape(image, {full[0], full[1], pixels});
  int64_t count = NumElements(grid->dimensions(), OtherDimensions({0, rank + 1}, rank + 2));
  Value flat = b.Reshape(grid, {full[0], count, rank});
  std::vector<std::vector<GridTap>> taps;
  for (int64_t d = 0; d < rank; ++d) {
    // The grid's first number is the place in the image's last dimension.
    Value x = b.Reshape(b.SliceInDim(flat, 2, rank - 1 - d, rank - d), {full[0], count});
    taps.push_back(TapsAlong(b, x, p.sizes[d], rank, how));
  }
  p.corners = Corners(b, taps, p.sizes);
  return p;
}

// [batch, places] for each channel.
Value OverChannels(Builder& b, Value x, int64_t channels) {
  return b.BroadcastInDim(x, {x->shape().dimension(0), x->shape().dimension(1), channels}, {0, 1});
}

// image[n, index[n, p]] of [batch, pixels, channels], where a pixel is one piece of memory, in the
// type of sums.
Value Pixels(Builder& b, Value image, Value index) {
  if (image->shape().num_elements() == 0) {  // an empty batch, of which no slice can be taken
    Dimensions none = index->dimensions();
    none.push_back(image->shape().dimension(2));
    return ToAccumulation(b, b.Zeros(Shape(image->element_type(), none)));
  }
  hlo::GatherAttributes attributes;
  attributes.offset_dims = {2};
  attributes.collapsed_slice_dims = attributes.start_index_map = {1};
  attributes.operand_batching_dims = attributes.start_indices_batching_dims = {0};
  attributes.index_vector_dim = 2;
  attributes.slice_sizes = {1, 1, image->shape().dimension(2)};
  Dimensions with_vector = index->dimensions();
  with_vector.push_back(1);
  return ToAccumulation(b, b.Gather(image, b.Reshape(index, with_vector), attributes));
}

// What all channels of a place have in common is computed before, for many places at a time: in one
// loop with the channels it would be for a place by itself, however few channels that serves.
void ComputeApart(Builder& b, Problem& p) {
  for (Corner& corner : p.corners) {
    for (Value* value : {&corner.index, &corner.inside, &corner.weight}) {
      *value = b.OptimizationBarrier({*value});
    }
  }
}

// image[n, c, index[n, p]] of [batch, channels, pixels], in the type of sums.
Value PixelsOfChannels(Builder& b, Value image, Value index) {
  const Dimensions sizes = {image->shape().dimension(0), image->shape().dimension(1),
                            index->shape().dimension(1)};
  if (image->shape().num_elements() == 0) {
    return ToAccumulation(b, b.Zeros(Shape(image->element_type(), sizes)));
  }
  hlo::GatherAttributes attributes;
  attributes.collapsed_slice_dims = attributes.start_index_map = {2};
  attributes.operand_batching_dims = attributes.start_indices_batching_dims = {0, 1};
  attributes.index_vector_dim = 3;
  attributes.slice_sizes = {1, 1, 1};
  Dimensions with_vector = sizes;
  with_vector.push_back(1);
  index = b.Reshape(b.BroadcastInDim(index, sizes, {0, 2}), with_vector);
  return ToAccumulation(b, b.Gather(image, index, attributes));
}

// A few channels do not fill a vector, so that places do, for one channel after the other.
bool IsOfFewChannels(int64_t channels) { return channels < 8; }

Value GridSampler(Builder& b, Value image, Value grid, int64_t rank, const Sampling& how) {
  ElementType type = image->element_type();
  Problem p = MakeProblem(b, image, grid, rank, how);
  const int64_t channels = image->shape().dimension(1);
  const bool by_channels = IsOfFewChannels(channels);
  Value flat = by_channels ? p.image : ChannelsLast(b, p.image);
  if (channels > 1) ComputeApart(b, p);
  auto over_channels = [&](Value x) {
    if (!by_channels) return OverChannels(b, x, channels);
    return b.BroadcastInDim(x, {x->shape().dimension(0), channels, x->shape().dimension(1)},
                            {0, 2});
  };
  Value sum = nullptr;
  for (const Corner& corner : p.corners) {
    Value pixels =
        by_channels ? PixelsOfChannels(b, flat, corner.index) : Pixels(b, flat, corner.index);
    // A pixel outside counts as 0, whatever stands where it is read instead.
    pixels = ZeroUnless(b, over_channels(corner.inside), pixels);
    Value weight = p.OfPixel(b, corner, corner.weight);
    Value term = b.Multiply(pixels, over_channels(weight));
    sum = sum == nullptr ? term : b.Add(sum, term);
  }
  if (!by_channels) sum = ChannelsLast(b, sum);
  Dimensions result = {image->shape().dimension(0), channels};
  result.insert(result.end(), p.places.begin(), p.places.end());
  return b.Convert(b.Reshape(sum, result), type);
}

// Each corner's share of the gradient, added to the pixel it came from: one scatter for all.
Value ImageGradient(Builder& b, Value gradient, const Problem& p) {
  int64_t channels = gradient->shape().dimension(2);
  Values indices, shares;
  for (const Corner& corner : p.corners) {
    indices.push_back(corner.index);
    Value weight = ZeroUnless(b, corner.inside, corner.weight);
    shares.push_back(b.Multiply(gradient, OverChannels(b, weight, channels)));
  }
  Value index = b.Concatenate(indices, 1);
  Dimensions with_vector = index->dimensions();
  with_vector.push_back(1);
  hlo::ScatterAttributes attributes;
  attributes.update_window_dims = {2};
  attributes.inserted_window_dims = attributes.scatter_dims_to_operand_dims = {1};
  attributes.input_batching_dims = attributes.scatter_indices_batching_dims = {0};
  attributes.index_vector_dim = 2;
  ElementType type = gradient->element_type();
  const Dimensions& first = p.image->dimensions();
  return b.Scatter(b.Zeros(Shape(type, {first[0], first[2], first[1]})),
                   b.Reshape(index, with_vector), b.Concatenate(shares, 1),
                   b.ScalarCombiner(Opcode::kAdd, type), attributes);
}

// [batch, places, rank].
Value GridGradient(Builder& b, Value gradient, const Problem& p) {
  int64_t rank = static_cast<int64_t>(p.sizes.size());
  Value image = ChannelsLast(b, p.image);
  Values sums(rank, nullptr);
  for (const Corner& corner : p.corners) {
    Value products = b.Multiply(gradient, Pixels(b, image, corner.index));
    Value along = ZeroUnless(b, corner.inside, Sum(b, products, {2}));
    for (int64_t d = 0; d < rank; ++d) {
      Value term = b.Multiply(along, p.OfPixel(b, corner, corner.derivatives[d]));
      sums[d] = sums[d] == nullptr ? term : b.Add(sums[d], term);
    }
  }
  Values columns;
  for (int64_t d = rank - 1; d >= 0; --d) {
    Dimensions column = sums[d]->dimensions();
    column.push_back(1);
    columns.push_back(b.Reshape(sums[d], column));
  }
  return b.Concatenate(columns, 2);
}

std::pair<Value, Value> GridSamplerBackward(Builder& b, Value gradient, Value image, Value grid,
                                            int64_t rank, const Sampling& how,
                                            const std::array<bool, 2>& wanted) {
  Problem p = MakeProblem(b, image, grid, rank, how);
  const Dimensions& full = image->dimensions();
  int64_t places = p.corners[0].weight->shape().dimension(1);
  gradient = ToAccumulation(b, gradient);
  gradient = ChannelsLast(b, b.Reshape(gradient, {full[0], full[1], places}));
  std::pair<Value, Value> result(nullptr, nullptr);
  if (wanted[0]) {
    Value flat = ChannelsLast(b, ImageGradient(b, gradient, p));
    result.first = b.Convert(b.Reshape(flat, full), image->element_type());
  }
  if (wanted[1]) {
    Value flat = GridGradient(b, gradient, p);
    result.second = b.Convert(b.Reshape(flat, grid->dimensions()), grid->element_type());
  }
  return result;
}

template <int64_t rank>
Value GridSamplerOf(Builder& b, Value image, Value grid, int64_t mode, int64_t padding,
                    bool align_corners) {
  return GridSampler(b, image, grid, rank, {mode, padding, align_corners});
}
template <int64_t rank>
std::pair<Value, Value> GridSamplerOfBackward(Builder& b, Value gradient, Value image, Value grid,
                                              int64_t mode, int64_t padding, bool align_corners,
                                              std::array<bool, 2> wanted) {
  return GridSamplerBackward(b, gradient, image, grid, rank, {mode, padding, align_corners},
                             wanted);
}

// Where places are moved into the image, torch's kernel for planes takes a NaN along, also one that
// it makes itself of a place whose pixel is infinite, and writes the gradient wherever that leads.
std::tuple<at::Tensor, at::Tensor> RunPlaneBackward(const at::Tensor& gradient,
                                                    const at::Tensor& image, const at::Tensor& grid,
                                                    int64_t mode, int64_t padding,
                                                    bool align_corners,
                                                    std::array<bool, 2> wanted) {
  constexpr double kFarthest = 1e30;
  TORCH_CHECK(padding == kZeros || grid.abs().max().item<double>() <= kFarthest,
              "a place that is no pixel");
  const at::ScalarType type = image.scalar_type(), wide = at::toOpMathType(type);
  const bool is_one_type = gradient.scalar_type() == type && grid.scalar_type() == type;
  if (wide == type || !is_one_type) {
    return at::grid_sampler_2d_backward(gradient, image, grid, mode, padding, align_corners,
                                        wanted);
  }
  // Torch's kernel adds 16 bits up in 16 bits.
  auto [of_image, of_grid] = at::grid_sampler_2d_backward(
      gradient.to(wide), image.to(wide), grid.to(wide), mode, padding, align_corners, wanted);
  return {of_image.defined() ? of_image.to(type) : of_image, of_grid.to(type)};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  Register<&GridSamplerOf<2>>(m, "grid_sampler_2d");
  RunBy<&GridSamplerOfBackward<2>>(&RunPlaneBackward);
  Register<&GridSamplerOfBackward<2>>(m, "grid_sampler_2d_backward");
  Register<&GridSamplerOf<3>>(m, "grid_sampler_3d");
  Register<&GridSamplerOfBackward<3>>(m, "grid_sampler_3d_backward");
}

}  // namespace torch_xla
