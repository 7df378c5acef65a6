// Interpolation over one, two or three spatial dimensions, which follow batch and channel. Each
// dimension is resampled by itself: an output element is a weighted sum of a few input elements,
// which ones is known while the graph is made. The gradient is the same with inputs and outputs
// exchanged, so neither direction scatters.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/resampling.h"

namespace torch_xla {
namespace {

using Scale = std::optional<double>;

enum class Filter {
  kNearest,
  kNearestExact,
  kLinear,
  kCubic,
  kLinearAntialias,
  kCubicAntialias,
  kLanczosAntialias,
};

bool IsAntialias(Filter filter) { return filter >= Filter::kLinearAntialias; }

// One dimension: its sizes, and the scale that the user gave for it.
struct Axis {
  int64_t input, output;
  bool align_corners;
  Scale scale;
};

// The arithmetic below is done in the type in which eager does it, so that coordinates round alike.

template <typename T>
T InputStep(const Axis& a) {
  if (a.align_corners) {
    return a.output > 1 ? static_cast<T>(a.input - 1) / static_cast<T>(a.output - 1) : T{0};
  }
  if (a.scale && *a.scale > 0) return static_cast<T>(1.0 / *a.scale);
  return static_cast<T>(a.input) / static_cast<T>(a.output);
}

int64_t Bounded(const Axis& a, int64_t index) { return std::clamp<int64_t>(index, 0, a.input - 1); }

Taps NearestTaps(const Axis& a, int64_t i) {
  if (a.output == a.input) return {{i, 1}};
  if (a.output == 2 * a.input) return {{i / 2, 1}};
  float step = InputStep<float>(a);
  return {{Bounded(a, static_cast<int64_t>(std::floor(static_cast<float>(i) * step))), 1}};
}

Taps NearestExactTaps(const Axis& a, int64_t i) {
  double center = (static_cast<double>(i) + 0.5) * InputStep<float>(a);
  return {{Bounded(a, static_cast<int64_t>(std::floor(static_cast<float>(center)))), 1}};
}

template <typename T>
T InputPosition(const Axis& a, int64_t i) {
  T step = InputStep<T>(a), output = static_cast<T>(i);
  return a.align_corners ? step * output : step * (output + T{0.5}) - T{0.5};
}

template <typename T>
Taps LinearTaps(const Axis& a, int64_t i) {
  if (a.output == a.input) return {{i, 1}};
  T position = std::max(InputPosition<T>(a, i), T{0});
  int64_t index = Bounded(a, static_cast<int64_t>(position));
  T fraction = std::clamp(position - static_cast<T>(index), T{0}, T{1});
  if (index == a.input - 1) return {{index, 1}};
  return {{index, 1 - fraction}, {index + 1, fraction}};
}

// Keys' cubic convolution with parameter A, at a distance from the tap.
template <typename T>
T CubicWeight(T distance, T A) {
  T x = std::abs(distance);
  if (x < 1) return ((A + 2) * x - (A + 3)) * x * x + 1;
  if (x < 2) return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A;
  return 0;
}

// As eager weighs them: those beyond an edge apart, though they are one element, and those without
// weight. Of infinity both make NaN.
template <typename T>
Taps CubicTaps(const Axis& a, int64_t i) {
  T position = InputPosition<T>(a, i);
  int64_t index = std::min(static_cast<int64_t>(std::floor(position)), a.input - 1);
  T fraction = std::clamp(position - static_cast<T>(index), T{0}, T{1});
  Taps taps;
  for (int64_t k = -1; k <= 2; ++k) {
    T weight = CubicWeight<T>(fraction - static_cast<T>(k), T{-0.75});
    taps.push_back({Bounded(a, index + k), weight});
  }
  return taps;
}

template <typename T>
T SincPi(T x) {
  T angle = std::numbers::pi_v<T> * x;
  return x == 0 ? T{1} : std::sin(angle) / angle;
}

template <typename T>
T FilterWeight(Filter filter, T x) {
  if (filter == Filter::kCubicAntialias) return CubicWeight<T>(x, T{-0.5});
  if (filter == Filter::kLinearAntialias) return std::max(T{0}, 1 - std::abs(x));
  return std::abs(x) < 3 ? SincPi(x) * SincPi(x / 3) : T{0};
}

int64_t FilterSize(Filter filter) {
  if (filter == Filter::kLinearAntialias) return 2;
  return filter == Filter::kCubicAntialias ? 4 : 6;
}

// The filter is stretched over all input elements that an output element covers.
template <typename T>
Taps AntialiasTaps(Filter filter, const Axis& a, int64_t i) {
  T step = InputStep<T>(a), stretch = std::max(step, T{1});
  T support = static_cast<T>(FilterSize(filter)) * T{0.5} * stretch;
  T center = step * (static_cast<T>(i) + T{0.5});
  int64_t begin = std::max<int64_t>(static_cast<int64_t>(center - support + T{0.5}), 0);
  int64_t end = std::min<int64_t>(static_cast<int64_t>(center + support + T{0.5}), a.input);
  std::vector<T> weights;
  T total = 0;
  for (int64_t k = begin; k < end; ++k) {
    weights.push_back(FilterWeight(filter, (static_cast<T>(k) - center + T{0.5}) * (1 / stretch)));
    total += weights.back();
  }
  Taps taps;
  for (int64_t k = begin; k < end; ++k) {
    T weight = weights[k - begin];
    AddTap(taps, k, total == 0 ? weight : weight / total);
  }
  return taps;
}

template <typename T>
Taps TapsOf(Filter filter, const Axis& a, int64_t i) {
  switch (filter) {
    case Filter::kNearest:
      return NearestTaps(a, i);
    case Filter::kNearestExact:
      return NearestExactTaps(a, i);
    case Filter::kLinear:
      return LinearTaps<T>(a, i);
    case Filter::kCubic:
      return CubicTaps<T>(a, i);
    default:
      return AntialiasTaps<T>(filter, a, i);
  }
}

Resampling MakeResampling(Filter filter, const Axis& a, ElementType type) {
  Resampling r{.input_size = a.input, .outputs = {}, .has_fewer_taps = IsAntialias(filter)};
  for (int64_t i = 0; i < a.output; ++i) {
    r.outputs.push_back(type == ElementType::kF64 ? TapsOf<double>(filter, a, i)
                                                  : TapsOf<float>(filter, a, i));
  }
  return r;
}

struct Interpolation {
  Filter filter;
  bool align_corners = false;
  std::vector<Scale> scales;  // one for each spatial dimension
};

void CheckSizes(const Dimensions& input, const Dimensions& output, size_t rank) {
  bool fits = input.size() == rank + 2 && output.size() == rank;
  for (size_t i = 0; fits && i < rank; ++i) fits = input[i + 2] > 0 && output[i] > 0;
  for (size_t i = 1; fits && i < input.size(); ++i) fits = input[i] > 0;
  if (fits) return;
  throw hlo::Error("Expected a non-empty input with batch, channel and " + std::to_string(rank) +
                   " spatial dimensions, all sizes greater than 0, but got " +
                   hlo::ToString(input) + " and output sizes " + hlo::ToString(output));
}

// Integers are rounded from the f32 result.
Value ToType(Builder& b, Value x, ElementType type) {
  if (!hlo::IsInteger(type) || x->element_type() == type) return b.Convert(x, type);
  x = b.Unary(Opcode::kRoundNearestAfz, x);
  if (type == ElementType::kU8) x = b.Clamp(ScalarLike(b, x, 0), x, ScalarLike(b, x, 255));
  return b.Convert(x, type);
}

bool IsNearest(Filter filter) {
  return filter == Filter::kNearest || filter == Filter::kNearestExact;
}

Resampling Unchanged(int64_t size) {
  Resampling r{.input_size = size, .outputs = {}};
  for (int64_t i = 0; i < size; ++i) r.outputs.push_back({{i, 1}});
  return r;
}

std::vector<Resampling> Resamplings(const Interpolation& how, const Dimensions& input,
                                    const Dimensions& output, ElementType type) {
  std::vector<Resampling> all;
  for (size_t i = 0; i < how.scales.size(); ++i) {
    Axis axis{input[i + 2], output[i], how.align_corners, how.scales[i]};
    all.push_back(MakeResampling(how.filter, axis, type));
  }
  return all;
}

// The most bits behind the point with which all weights are less than 2^15.
int FractionBits(const Resampling& r) {
  double most = 0;
  for (const Taps& taps : r.outputs) {
    for (const Tap& tap : taps) most = std::max(most, tap.weight);
  }
  int bits = 0;
  while (bits < 22 && std::ldexp(most, bits + 1) + 0.5 < 1 << 15) ++bits;
  return bits;
}

// Each element that has a weight once.
Taps Joined(const Taps& taps) {
  Taps joined;
  for (const Tap& tap : taps) AddTap(joined, tap.index, tap.weight);
  std::erase_if(joined, [](const Tap& tap) { return tap.weight == 0; });
  return joined;
}

// In integers, rows first, with bytes in between: eager's kernel for images does so, and its
// roundings are seen.
Value ResampleBytes(Builder& b, Value x, std::vector<Resampling> resamplings) {
  for (size_t i = resamplings.size(); i-- > 0;) {
    Resampling& r = resamplings[i];
    for (Taps& taps : r.outputs) taps = Joined(taps);
    if (KeepsAll(r)) continue;
    const int bits = FractionBits(r);
    for (Taps& taps : r.outputs) {
      for (Tap& tap : taps) tap.weight = std::round(std::ldexp(tap.weight, bits));
    }
    Value sum = Resample(b, b.Convert(x, ElementType::kS32), static_cast<int64_t>(i) + 2, {r});
    sum = b.Add(sum, b.Full(sum->shape(), std::ldexp(0.5, bits)));
    sum = b.Binary(Opcode::kShiftRightArithmetic, sum, b.Full(sum->shape(), int64_t{bits}));
    x = b.Convert(b.Clamp(ScalarLike(b, sum, 0), sum, ScalarLike(b, sum, 255)), ElementType::kU8);
  }
  return x;
}

// Eager leaves out a dimension that keeps its size when it filters, whatever the scale; but its
// gradient does not.
std::vector<Resampling> ForwardResamplings(const Interpolation& how, const Dimensions& input,
                                           const Dimensions& output, ElementType type) {
  std::vector<Resampling> all = Resamplings(how, input, output, type);
  if (!IsAntialias(how.filter)) return all;
  for (size_t i = 0; i < all.size(); ++i) {
    if (input[i + 2] == output[i]) all[i] = Unchanged(output[i]);
  }
  return all;
}

bool IsImageOfBytes(Value x, const Interpolation& how) {
  return x->element_type() == ElementType::kU8 && how.scales.size() == 2 && !IsNearest(how.filter);
}

Value Interpolate(Builder& b, Value x, const Dimensions& output, const Interpolation& how) {
  CheckSizes(x->dimensions(), output, how.scales.size());
  ElementType type = x->element_type();
  if (IsImageOfBytes(x, how)) {
    return ResampleBytes(b, x, ForwardResamplings(how, x->dimensions(), output, ElementType::kF64));
  }
  if (!IsNearest(how.filter)) x = ToAccumulation(b, ToFloat(b, x));
  x = Resample(b, x, 2, ForwardResamplings(how, x->dimensions(), output, type));
  return ToType(b, x, type);
}

Value InterpolateBackward(Builder& b, Value gradient, const Dimensions& output,
                          const Dimensions& input, const Interpolation& how) {
  CheckSizes(input, output, how.scales.size());
  Dimensions expected(input.begin(), input.begin() + 2);
  expected.insert(expected.end(), output.begin(), output.end());
  if (gradient->dimensions() != expected) {
    throw hlo::Error("Expected grad_output to have the shape of the output, " +
                     hlo::ToString(expected) + ", but got " +
                     hlo::ToString(gradient->dimensions()));
  }
  // Eager weighs nothing here, though it does forward: an infinity stays by itself.
  const bool keeps_size = std::equal(output.begin(), output.end(), input.begin() + 2);
  if (how.filter == Filter::kCubic && keeps_size) return gradient;
  ElementType type = gradient->element_type();
  std::vector<Resampling> all = Resamplings(how, input, output, type);
  for (Resampling& r : all) r = Transposed(r);
  return ToType(b, Resample(b, ToAccumulation(b, gradient), 2, all), type);
}

template <Filter filter, typename... Scales>
Value Upsample(Builder& b, Value x, Dimensions output, Scales... scales) {
  return Interpolate(b, x, output, {filter, false, {scales...}});
}
template <Filter filter, typename... Scales>
Value UpsampleBackward(Builder& b, Value gradient, Dimensions output, Dimensions input,
                       Scales... scales) {
  return InterpolateBackward(b, gradient, output, input, {filter, false, {scales...}});
}
template <Filter filter, typename... Scales>
Value UpsampleAligned(Builder& b, Value x, Dimensions output, bool align_corners,
                      Scales... scales) {
  return Interpolate(b, x, output, {filter, align_corners, {scales...}});
}
template <Filter filter, typename... Scales>
Value UpsampleAlignedBackward(Builder& b, Value gradient, Dimensions output, Dimensions input,
                              bool align_corners, Scales... scales) {
  return InterpolateBackward(b, gradient, output, input, {filter, align_corners, {scales...}});
}

template <Filter filter, typename... Scales>
void RegisterNearest(torch::Library& m, const std::string& name) {
  Register<&Upsample<filter, Scales...>>(m, name.c_str());
  Register<&UpsampleBackward<filter, Scales...>>(m, (name + "_backward").c_str());
}
template <Filter filter, typename... Scales>
void RegisterAligned(torch::Library& m, const std::string& name) {
  Register<&UpsampleAligned<filter, Scales...>>(m, name.c_str());
  Register<&UpsampleAlignedBackward<filter, Scales...>>(m, (name + "_backward").c_str());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RegisterNearest<Filter::kNearest, Scale>(m, "upsample_nearest1d");
  RegisterNearest<Filter::kNearest, Scale, Scale>(m, "upsample_nearest2d");
  RegisterNearest<Filter::kNearest, Scale, Scale, Scale>(m, "upsample_nearest3d");
  RegisterNearest<Filter::kNearestExact, Scale>(m, "_upsample_nearest_exact1d");
  RegisterNearest<Filter::kNearestExact, Scale, Scale>(m, "_upsample_nearest_exact2d");
  RegisterNearest<Filter::kNearestExact, Scale, Scale, Scale>(m, "_upsample_nearest_exact3d");
  RegisterAligned<Filter::kLinear, Scale>(m, "upsample_linear1d");
  RegisterAligned<Filter::kLinear, Scale, Scale>(m, "upsample_bilinear2d");
  RegisterAligned<Filter::kLinear, Scale, Scale, Scale>(m, "upsample_trilinear3d");
  RegisterAligned<Filter::kCubic, Scale, Scale>(m, "upsample_bicubic2d");
  RegisterAligned<Filter::kLinearAntialias, Scale, Scale>(m, "_upsample_bilinear2d_aa");
  RegisterAligned<Filter::kCubicAntialias, Scale, Scale>(m, "_upsample_bicubic2d_aa");
  RegisterAligned<Filter::kLanczosAntialias, Scale, Scale>(m, "_upsample_lanczos2d_aa");
}

}  // namespace torch_xla
