// Batch, layer, group and weight normalisation, as plain reductions and element-wise steps.
#include <array>

#include "aten/dimension.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "aten/refused_types.h"

namespace torch_xla {
namespace {

// Statistics are kept in at least f32.
Value Wide(Builder& b, Value x) { return ToAccumulation(b, x); }

// The type in which eager hands statistics on: the input's, unless its parameters are wider.
ElementType StatisticsType(ElementType input, const OptionalValue& parameter) {
  return parameter ? PromoteTypes(input, (*parameter)->element_type()) : input;
}

// Torch's kernels read a parameter in the input's type, or in f32 beside an input of half
// precision.
void CheckParameter(Value x, const OptionalValue& parameter, const Dimensions& shape,
                    const char* name) {
  if (!parameter) return;
  const ElementType type = (*parameter)->element_type(), of_input = x->element_type();
  const bool is_half = of_input == ElementType::kF16 || of_input == ElementType::kBF16;
  if (type != of_input && !(is_half && type == ElementType::kF32)) {
    throw hlo::Error("expected scalar type " + std::string(hlo::ShortName(of_input)) +
                     " but found " + std::string(hlo::ShortName(type)));
  }
  if ((*parameter)->dimensions() == shape) return;
  throw hlo::Error("Expected " + std::string(name) + " of shape " + hlo::ToString(shape) +
                   ", but got " + (*parameter)->shape().ToString());
}

// --- Batch normalisation: channels are dimension 1

// A value per channel stretched over the input's shape.
Value Channels(Builder& b, Value per_channel, Value x) {
  return AlongDimension(b, Wide(b, per_channel), x->dimensions(), 1);
}
Dimensions AllButChannels(Value x) { return OtherDimensions({1}, x->shape().rank()); }

// (x - mean) * (invstd * weight) + bias.
Value Normalized(Builder& b, Value x, Value mean, Value inverse_deviation,
                 const OptionalValue& weight, const OptionalValue& bias) {
  Value scale = weight ? b.Multiply(inverse_deviation, Wide(b, *weight)) : inverse_deviation;
  Value result = b.Multiply(b.Subtract(x, Channels(b, mean, x)), Channels(b, scale, x));
  return bias ? b.Add(result, Channels(b, *bias, x)) : result;
}

Value InverseDeviation(Builder& b, Value variance, double eps) {
  return b.Rsqrt(b.Add(variance, Like(b, variance, eps)));
}

void CheckChannels(Value x, const OptionalValue& parameter, const char* name) {
  CheckParameter(x, parameter, {x->shape().dimension(1)}, name);
}

// Result, mean and inverse deviation of the batch, and its unbiased variance for the running
// statistics.
std::array<Value, 4> BatchNormTraining(Builder& b, Value x, OptionalValue weight,
                                       OptionalValue bias, OptionalValue running, double eps) {
  CheckChannels(x, weight, "weight");
  CheckChannels(x, bias, "bias");
  CheckChannels(x, running, "running_mean");
  ElementType type = x->element_type();
  x = Wide(b, x);
  Dimensions reduced = AllButChannels(x);
  int64_t count = NumElements(x->dimensions(), reduced);
  if (x->shape().num_elements() == 0) {
    throw hlo::Error("input tensor must have at least one element, but got input_sizes = " +
                     hlo::ToString(x->dimensions()));
  }
  Moments moments = MeanAndVariance(b, x, reduced, 0);
  Value inverse = InverseDeviation(b, moments.variance, eps);
  double bessel = static_cast<double>(count) / static_cast<double>(count - 1);
  Value unbiased = b.Multiply(moments.variance, Like(b, moments.variance, bessel));
  Value result = Normalized(b, x, moments.mean, inverse, weight, bias);
  ElementType statistics = StatisticsType(StatisticsType(type, weight), running);
  return {b.Convert(result, type), b.Convert(moments.mean, statistics),
          b.Convert(inverse, statistics), unbiased};
}

Value BatchNormInference(Builder& b, Value x, OptionalValue weight, OptionalValue bias, Value mean,
                         Value variance, double eps) {
  CheckChannels(x, weight, "weight");
  CheckChannels(x, bias, "bias");
  CheckChannels(x, mean, "running_mean");
  CheckChannels(x, variance, "running_var");
  ElementType type = x->element_type();
  x = Wide(b, x);
  Value inverse = InverseDeviation(b, Wide(b, variance), eps);
  return b.Convert(Normalized(b, x, Wide(b, mean), inverse, weight, bias), type);
}

// running * (1 - momentum) + batch * momentum. The momentum may be 1 / (number of batches so far).
Value MovingAverage(Builder& b, Value running, Value batch, Scalar momentum) {
  batch = Wide(b, batch);
  Value factor = Splat(b, b.Convert(momentum, batch->element_type()), batch->dimensions());
  Value kept = b.Multiply(Wide(b, running), b.Subtract(Like(b, batch, 1), factor));
  return b.Convert(b.Add(kept, b.Multiply(batch, factor)), running->element_type());
}

Values MovingAverages(Builder& b, Values running, Values batch, Scalar momentum) {
  Values updated;
  for (size_t i = 0; i < running.size(); ++i) {
    updated.push_back(MovingAverage(b, running[i], batch[i], momentum));
  }
  return updated;
}

// The gradients of Normalized with respect to x, the weight and the bias. In training the
// statistics depend on x too; in evaluation they are the given constants.
std::array<Value, 3> BatchNormGradients(Builder& b, Value gradient, Value x,
                                        const OptionalValue& weight, Value mean, Value inverse,
                                        bool training, std::array<bool, 3> wanted) {
  CheckChannels(x, weight, "weight");
  CheckChannels(x, mean, "mean");
  CheckChannels(x, inverse, "deviation");
  ElementType type = x->element_type();
  gradient = Wide(b, gradient);
  x = Wide(b, x);
  Dimensions reduced = AllButChannels(x);
  double count = static_cast<double>(NumElements(x->dimensions(), reduced));
  inverse = Wide(b, inverse);
  Value standardized = b.Multiply(b.Subtract(x, Channels(b, mean, x)), Channels(b, inverse, x));
  Value sum = Sum(b, gradient, reduced);
  Value product_sum = Sum(b, b.Multiply(gradient, standardized), reduced);
  std::array<Value, 3> results = {nullptr, nullptr, nullptr};
  if (wanted[0]) {
    Value centered = gradient;
    if (training) {
      Value share = Like(b, sum, 1 / count);
      Value mean_gradient = Channels(b, b.Multiply(sum, share), x);
      Value projection = Channels(b, b.Multiply(product_sum, share), x);
      centered =
          b.Subtract(b.Subtract(gradient, mean_gradient), b.Multiply(standardized, projection));
    }
    Value scale = weight ? b.Multiply(inverse, Wide(b, *weight)) : inverse;
    results[0] = b.Convert(b.Multiply(centered, Channels(b, scale, x)), type);
  }
  ElementType weight_type = weight ? (*weight)->element_type() : type;
  if (wanted[1]) results[1] = b.Convert(product_sum, weight_type);
  if (wanted[2]) results[2] = b.Convert(sum, weight_type);
  return results;
}

std::array<Value, 3> BatchNormBackwardTraining(Builder& b, Value gradient, Value x,
                                               OptionalValue weight, Value mean, Value inverse,
                                               std::array<bool, 3> wanted) {
  return BatchNormGradients(b, gradient, x, weight, mean, inverse, true, wanted);
}
std::array<Value, 3> BatchNormBackwardEvaluation(Builder& b, Value gradient, Value x,
                                                 OptionalValue weight, Value mean, Value variance,
                                                 double eps, std::array<bool, 3> wanted) {
  Value inverse = InverseDeviation(b, Wide(b, variance), eps);
  return BatchNormGradients(b, gradient, x, weight, Wide(b, mean), inverse, false, wanted);
}

using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using OptionalTensor = std::optional<at::Tensor>;

// Each of the running statistics that there are, with the batch's.
void UpdateRunning(const std::array<std::pair<OptionalTensor, at::Tensor>, 2>& statistics,
                   double momentum) {
  std::vector<at::Tensor> running, batch;
  for (const auto& [kept, of_batch] : statistics) {
    if (!kept || !kept->defined()) continue;
    running.push_back(*kept);
    batch.push_back(of_batch);
  }
  if (running.empty()) return;
  const auto updated = Record<&MovingAverages>(running, batch, at::Scalar(momentum));
  for (size_t i = 0; i < running.size(); ++i) WriteInto(running[i], updated[i]);
}

ThreeTensors NativeBatchNorm(const at::Tensor& x, const OptionalTensor& weight,
                             const OptionalTensor& bias, const OptionalTensor& running_mean,
                             const OptionalTensor& running_variance, bool training, double momentum,
                             double eps) {
  CheckKernel(at::isFloatingType(x.scalar_type()), "batch_norm", x.scalar_type());
  x.size(1);  // throws if there are no channels
  const auto is_there = [](const OptionalTensor& x) { return x && x->defined(); };
  const bool has_running = is_there(running_mean);
  TORCH_CHECK_VALUE(has_running == is_there(running_variance),
                    "running_mean and running_var must either both be None or neither be None");
  if (!training) {
    TORCH_CHECK(has_running, "batch norm in evaluation needs running statistics");
    at::Tensor result =
        Record<&BatchNormInference>(x, weight, bias, *running_mean, *running_variance, eps);
    at::Tensor none = at::empty({0}, x.options());
    return {result, none, none};
  }
  auto [result, mean, inverse, unbiased] =
      Record<&BatchNormTraining>(x, weight, bias, running_mean, eps);
  UpdateRunning({{{running_mean, mean}, {running_variance, unbiased}}}, momentum);
  return {result, mean, inverse};
}

ThreeTensors BatchNormLegit(const at::Tensor& x, const OptionalTensor& weight,
                            const OptionalTensor& bias, at::Tensor& running_mean,
                            at::Tensor& running_variance, bool training, double momentum,
                            double eps) {
  return NativeBatchNorm(x, weight, bias, running_mean, running_variance, training, momentum, eps);
}
ThreeTensors BatchNormLegitNoStatistics(const at::Tensor& x, const OptionalTensor& weight,
                                        const OptionalTensor& bias, bool training, double momentum,
                                        double eps) {
  return NativeBatchNorm(x, weight, bias, std::nullopt, std::nullopt, training, momentum, eps);
}
ThreeTensors BatchNormNoTraining(const at::Tensor& x, const OptionalTensor& weight,
                                 const OptionalTensor& bias, const at::Tensor& running_mean,
                                 const at::Tensor& running_variance, double momentum, double eps) {
  return NativeBatchNorm(x, weight, bias, running_mean, running_variance, false, momentum, eps);
}

// What cuDNN would keep for the gradient is empty here, as on the CPU.
using FourTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
FourTensors WithReserve(const ThreeTensors& results) {
  const auto& [result, mean, inverse] = results;
  return {result, mean, inverse, at::empty({0}, result.options().dtype(at::kByte))};
}
FourTensors BatchNormWithUpdate(const at::Tensor& x, const OptionalTensor& weight,
                                const OptionalTensor& bias, at::Tensor& running_mean,
                                at::Tensor& running_variance, double momentum, double eps) {
  return WithReserve(
      NativeBatchNorm(x, weight, bias, running_mean, running_variance, true, momentum, eps));
}
FourTensors BatchNormNoUpdate(const at::Tensor& x, const OptionalTensor& weight,
                              const OptionalTensor& bias, const OptionalTensor& running_mean,
                              const OptionalTensor& running_variance, double momentum, double eps) {
  return WithReserve(
      NativeBatchNorm(x, weight, bias, running_mean, running_variance, false, momentum, eps));
}

ThreeTensors NativeBatchNormBackward(const at::Tensor& gradient, const at::Tensor& x,
                                     const OptionalTensor& weight,
                                     const OptionalTensor& running_mean,
                                     const OptionalTensor& running_variance,
                                     const OptionalTensor& saved_mean,
                                     const OptionalTensor& saved_inverse, bool training, double eps,
                                     std::array<bool, 3> wanted) {
  if (training) {
    return Record<&BatchNormBackwardTraining>(gradient, x, weight, *saved_mean, *saved_inverse,
                                              wanted);
  }
  return Record<&BatchNormBackwardEvaluation>(gradient, x, weight, *running_mean, *running_variance,
                                              eps, wanted);
}

// --- Layer normalisation: over the last dimensions

Dimensions LastDimensions(Value x, size_t count) {
  Dimensions last;
  int64_t rank = x->shape().rank();
  for (int64_t d = rank - static_cast<int64_t>(count); d < rank; ++d) last.push_back(d);
  return last;
}

void CheckNormalizedShape(Value x, const Dimensions& normalized) {
  const Dimensions& d = x->dimensions();
  bool fits = d.size() >= normalized.size() && !normalized.empty() &&
              std::equal(normalized.begin(), normalized.end(), d.end() - normalized.size());
  if (fits) return;
  throw hlo::Error("Given normalized_shape=" + hlo::ToString(normalized) +
                   ", expected input with shape [*, " + hlo::ToString(normalized).substr(1) +
                   ", but got input of size" + hlo::ToString(d));
}

// The weight (of the normalised shape) over x's shape.
Value OverLast(Builder& b, Value weight, Value x) {
  return b.BroadcastTo(Wide(b, weight), x->dimensions());
}

std::array<Value, 3> LayerNorm(Builder& b, Value x, Dimensions normalized, OptionalValue weight,
                               OptionalValue bias, double eps) {
  CheckNormalizedShape(x, normalized);
  CheckParameter(x, weight, normalized, "weight");
  CheckParameter(x, bias, normalized, "bias");
  ElementType type = x->element_type();
  x = Wide(b, x);
  Dimensions reduced = LastDimensions(x, normalized.size());
  Moments moments = MeanAndVariance(b, x, reduced, 0, true);
  Value inverse = InverseDeviation(b, moments.variance, eps);
  Value result = b.Multiply(b.Subtract(x, b.BroadcastTo(moments.mean, x->dimensions())),
                            b.BroadcastTo(inverse, x->dimensions()));
  if (weight) result = b.Multiply(result, OverLast(b, *weight, x));
  if (bias) result = b.Add(result, OverLast(b, *bias, x));
  ElementType statistics = StatisticsType(type, weight);
  return {b.Convert(result, type), b.Convert(moments.mean, statistics),
          b.Convert(inverse, statistics)};
}

std::array<Value, 3> LayerNormBackward(Builder& b, Value gradient, Value x, Dimensions normalized,
                                       Value mean, Value inverse, OptionalValue weight,
                                       OptionalValue bias, std::array<bool, 3> wanted) {
  ElementType type = x->element_type();
  gradient = Wide(b, gradient);
  x = Wide(b, x);
  const Dimensions& full = x->dimensions();
  Dimensions reduced = LastDimensions(x, normalized.size());
  Dimensions rows = OtherDimensions(reduced, x->shape().rank());
  Value spread = b.BroadcastTo(Wide(b, inverse), full);
  Value standardized = b.Multiply(b.Subtract(x, b.BroadcastTo(Wide(b, mean), full)), spread);
  std::array<Value, 3> results = {nullptr, nullptr, nullptr};
  if (wanted[0]) {
    Value scaled = weight ? b.Multiply(gradient, OverLast(b, *weight, x)) : gradient;
    Value mean_gradient = b.BroadcastTo(Mean(b, scaled, reduced, true), full);
    Value projection =
        b.BroadcastTo(Mean(b, b.Multiply(scaled, standardized), reduced, true), full);
    Value centered =
        b.Subtract(b.Subtract(scaled, mean_gradient), b.Multiply(standardized, projection));
    results[0] = b.Convert(b.Multiply(centered, spread), type);
  }
  ElementType weight_type = weight ? (*weight)->element_type() : type;
  if (wanted[1])
    results[1] = b.Convert(Sum(b, b.Multiply(gradient, standardized), rows), weight_type);
  if (wanted[2]) results[2] = b.Convert(Sum(b, gradient, rows), weight_type);
  return results;
}

// --- Group normalisation: channels in groups, each normalised with its pixels

// Sums run over each channel's pixels first: what is large keeps its shape, so that it stays in one
// kernel with its neighbours whatever the layout.

// [n, groups]: the mean of each group's channels, of [n, channels].
Value MeanOfGroups(Builder& b, Value per_channel, int64_t groups) {
  const Dimensions& all = per_channel->dimensions();
  return Mean(b, b.Reshape(per_channel, {all[0], groups, all[1] / groups}), {2});
}

// [n, channels], of [n, groups].
Value PerChannel(Builder& b, Value per_group, int64_t channels) {
  const Dimensions& all = per_group->dimensions();
  Value spread = b.BroadcastInDim(per_group, {all[0], all[1], channels / all[1]}, {0, 1});
  return b.Reshape(spread, {all[0], channels});
}

void CheckGroups(Value x, int64_t n, int64_t channels, int64_t pixels, int64_t groups) {
  if (groups > 0 && channels % groups == 0 && x->shape().num_elements() == n * channels * pixels) {
    return;
  }
  throw hlo::Error("group norm: " + std::to_string(groups) + " groups do not divide " +
                   std::to_string(n) + " times " + std::to_string(channels) + " channels of " +
                   std::to_string(pixels) + " elements, of " + x->shape().ToString());
}

// The shape of an input of that many elements in which channels are dimension 1: its own, if it can
// be.
Dimensions WithChannels(const Dimensions& full, int64_t n, int64_t channels, int64_t pixels) {
  const bool has_channels = full.size() > 1 && full[0] == n && full[1] == channels;
  return has_channels ? full : Dimensions{n, channels, pixels};
}

std::array<Value, 3> GroupNorm(Builder& b, Value x, OptionalValue weight, OptionalValue bias,
                               int64_t n, int64_t channels, int64_t pixels, int64_t groups,
                               double eps) {
  CheckGroups(x, n, channels, pixels, groups);
  CheckParameter(x, weight, {channels}, "weight");
  CheckParameter(x, bias, {channels}, "bias");
  ElementType type = x->element_type();
  const Shape shape = x->shape();
  x = b.Reshape(Wide(b, x), WithChannels(shape.dimensions(), n, channels, pixels));
  const Dimensions places = OtherDimensions({0, 1}, x->shape().rank());
  auto spread = [&](Value v) { return b.BroadcastInDim(v, x->dimensions(), {0, 1}); };
  Value mean = MeanOfGroups(b, Mean(b, x, places), groups);
  Value centered = b.Subtract(x, spread(PerChannel(b, mean, channels)));
  Value variance = MeanOfGroups(b, Mean(b, b.Multiply(centered, centered), places), groups);
  Value inverse = InverseDeviation(b, variance, eps);
  Value scale = PerChannel(b, inverse, channels);
  if (weight) scale = b.Multiply(scale, b.BroadcastTo(Wide(b, *weight), {n, channels}));
  Value result = b.Multiply(centered, spread(scale));
  if (bias) result = b.Add(result, Channels(b, *bias, result));
  ElementType statistics = StatisticsType(type, weight);
  return {b.Convert(b.Reshape(result, shape.dimensions()), type), b.Convert(mean, statistics),
          b.Convert(inverse, statistics)};
}

std::array<Value, 3> GroupNormBackward(Builder& b, Value gradient, Value x, Value mean,
                                       Value inverse, OptionalValue weight, int64_t n,
                                       int64_t channels, int64_t pixels, int64_t groups,
                                       std::array<bool, 3> wanted) {
  CheckGroups(x, n, channels, pixels, groups);
  ElementType type = x->element_type();
  const Shape of_input = x->shape();
  x = b.Reshape(Wide(b, x), WithChannels(of_input.dimensions(), n, channels, pixels));
  gradient = b.Reshape(Wide(b, gradient), x->dimensions());
  const Dimensions places = OtherDimensions({0, 1}, x->shape().rank());
  auto spread = [&](Value v) { return b.BroadcastInDim(v, x->dimensions(), {0, 1}); };
  Value scale = PerChannel(b, Wide(b, inverse), channels);
  Value centered = b.Subtract(x, spread(PerChannel(b, Wide(b, mean), channels)));
  Value standardized = b.Multiply(centered, spread(scale));
  // Of [n, channels], as the gradients of both parameters are, and what the groups take out.
  Value sum = Sum(b, gradient, places);
  Value product_sum = Sum(b, b.Multiply(gradient, standardized), places);
  std::array<Value, 3> results = {nullptr, nullptr, nullptr};
  if (wanted[0]) {
    Value factor = weight ? b.BroadcastTo(Wide(b, *weight), {n, channels}) : Like(b, sum, 1);
    auto share = [&](Value v) {
      Value weighted = b.Multiply(v, b.Divide(factor, Like(b, v, static_cast<double>(pixels))));
      return spread(PerChannel(b, MeanOfGroups(b, weighted, groups), channels));
    };
    Value scaled = b.Multiply(gradient, spread(factor));
    Value projection = b.Multiply(standardized, share(product_sum));
    Value rest = b.Subtract(b.Subtract(scaled, share(sum)), projection);
    Value result = b.Multiply(rest, spread(scale));
    results[0] = b.Convert(b.Reshape(result, of_input.dimensions()), type);
  }
  ElementType weight_type = weight ? (*weight)->element_type() : type;
  if (wanted[1]) results[1] = b.Convert(Sum(b, product_sum, {0}), weight_type);
  if (wanted[2]) results[2] = b.Convert(Sum(b, sum, {0}), weight_type);
  return results;
}

// --- Weight normalisation: v * (g / |v|), the norm over all but one dimension

std::pair<Value, Value> WeightNorm(Builder& b, Value v, Value g, int64_t dimension) {
  Dimensions others = OtherDimensions({dimension}, v->shape().rank());
  Value norm = b.Sqrt(Sum(b, b.Multiply(v, v), others, true));
  return {b.Multiply(v, b.BroadcastTo(b.Divide(g, norm), v->dimensions())), norm};
}

std::pair<Value, Value> WeightNormBackward(Builder& b, Value gradient, Value v, Value g, Value norm,
                                           int64_t dimension) {
  Dimensions others = OtherDimensions({dimension}, v->shape().rank());
  Value product = Sum(b, b.Multiply(gradient, v), others, true);
  Value gradient_of_g = b.Divide(product, norm);
  Value scale = b.Divide(g, norm);
  Value projection = b.Divide(product, b.Multiply(norm, norm));
  Value centered = b.Subtract(gradient, b.Multiply(v, b.BroadcastTo(projection, v->dimensions())));
  return {b.Multiply(centered, b.BroadcastTo(scale, v->dimensions())), gradient_of_g};
}

// Of a batch norm of nothing: torch's kernel divides by the number of elements.
ThreeTensors GradientsOfNothing(const at::Tensor& x, const at::Tensor& mean,
                                std::array<bool, 3> wanted) {
  const auto zeros = [](const at::Tensor& like, bool is_wanted) {
    return is_wanted ? at::zeros_like(like) : at::Tensor();
  };
  return {zeros(x, wanted[0]), zeros(mean, wanted[1]), zeros(mean, wanted[2])};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&BatchNormTraining>(+[](const at::Tensor& x, const OptionalTensor& weight,
                                const OptionalTensor& bias, const OptionalTensor&, double eps) {
    const auto dimensions = OtherDimensions({1}, x.dim());
    auto [result, mean, inverse] = at::native_batch_norm(x, weight, bias, {}, {}, true, 0, eps);
    const auto wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    at::Tensor unbiased = at::var(x.to(wide), dimensions, /*unbiased=*/true);
    return std::make_tuple(result, mean, inverse, unbiased);
  });
  RunBy<&BatchNormInference>(+[](const at::Tensor& x, const OptionalTensor& weight,
                                 const OptionalTensor& bias, const at::Tensor& mean,
                                 const at::Tensor& variance, double eps) {
    return std::get<0>(at::native_batch_norm(x, weight, bias, mean, variance, false, 0, eps));
  });
  RunBy<&MovingAverages>(
      +[](at::TensorList running, at::TensorList batch, const at::Tensor& momentum) {
        std::vector<at::Tensor> updated;
        for (size_t i = 0; i < running.size(); ++i) {
          const at::Tensor kept = running[i] * (1 - momentum);
          updated.push_back(at::add(kept, batch[i] * momentum).to(running[i].scalar_type()));
        }
        return updated;
      });
  recording::NameKind(lazy::Op<&BatchNormTraining>::kind(), "native_batch_norm");
  RunBy<&BatchNormBackwardTraining>(+[](const at::Tensor& gradient, const at::Tensor& x,
                                        const OptionalTensor& weight, const at::Tensor& mean,
                                        const at::Tensor& inverse, std::array<bool, 3> wanted) {
    if (x.numel() == 0) return GradientsOfNothing(x, mean, wanted);
    return at::native_batch_norm_backward(gradient, x, weight, {}, {}, mean, inverse, true, 0,
                                          wanted);
  });
  RunBy<&BatchNormBackwardEvaluation>(+[](const at::Tensor& gradient, const at::Tensor& x,
                                          const OptionalTensor& weight, const at::Tensor& mean,
                                          const at::Tensor& variance, double eps,
                                          std::array<bool, 3> wanted) {
    if (x.numel() == 0) return GradientsOfNothing(x, mean, wanted);
    return at::native_batch_norm_backward(gradient, x, weight, mean, variance, {}, {}, false, eps,
                                          wanted);
  });
  RunBy<&WeightNorm>(+[](const at::Tensor& v, const at::Tensor& g, int64_t dimension) {
    // Torch's kernel divides by the number of elements.
    if (v.numel() == 0) return std::tuple(v.clone(), at::zeros(g.sizes(), v.options()));
    return at::_weight_norm_interface(v, g, dimension);
  });
  m.impl("native_batch_norm", &NativeBatchNorm);
  m.impl("native_batch_norm_backward", &NativeBatchNormBackward);
  m.impl("_native_batch_norm_legit", &BatchNormLegit);
  m.impl("_native_batch_norm_legit.no_stats", &BatchNormLegitNoStatistics);
  m.impl("_native_batch_norm_legit_no_training", &BatchNormNoTraining);
  m.impl("_batch_norm_with_update", &BatchNormWithUpdate);
  m.impl("_batch_norm_no_update", &BatchNormNoUpdate);
  Register<&LayerNorm>(m, "native_layer_norm");
  // Torch's kernel rounds each sum over rows to 16 bits, and reads its operands as if they were
  // row-major.
  RunBy<&LayerNormBackward>(+[](const at::Tensor& gradient, const at::Tensor& x,
                                at::IntArrayRef normalized, const at::Tensor& mean,
                                const at::Tensor& inverse, const OptionalTensor& weight,
                                const OptionalTensor& bias, std::array<bool, 3> wanted) {
    const auto wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const auto plain = [wide](const at::Tensor& t) { return t.to(wide).contiguous(); };
    const auto plain_or_none = [plain](const OptionalTensor& t) {
      return t ? OptionalTensor(plain(*t)) : std::nullopt;
    };
    auto [dx, dweight, dbias] = at::native_layer_norm_backward(
        plain(gradient), plain(x), normalized, plain(mean), plain(inverse), plain_or_none(weight),
        plain_or_none(bias), wanted);
    const auto in = [](const at::Tensor& t, at::ScalarType type) {
      return t.defined() ? t.to(type) : t;
    };
    const at::ScalarType type = x.scalar_type();
    const at::ScalarType of_weight = weight ? weight->scalar_type() : type;
    return std::make_tuple(in(dx, type), in(dweight, of_weight), in(dbias, of_weight));
  });
  Register<&LayerNormBackward>(m, "native_layer_norm_backward");
  Register<&GroupNorm>(m, "native_group_norm");
  Register<&GroupNormBackward>(m, "native_group_norm_backward");
  Register<&WeightNorm>(m, "_weight_norm_interface");
  Register<&WeightNormBackward>(m, "_weight_norm_interface_backward");
}

}  // namespace torch_xla
