// Random numbers: bits of Philox whose key and counter are data of the graph, and the distributions
// made from them element by element, so that they fuse into what uses them. Probabilities and
// limits that a program keeps from step to step are constants of the graph.
#include <cmath>
#include <numbers>

#include "aten/broadcast.h"
#include "aten/dimension.h"
#include "aten/elementwise.h"
#include "aten/generator.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "aten/sort.h"
#include "aten/special.h"

namespace torch_xla {
namespace {

using OptionalGenerator = std::optional<at::Generator>;

Value Bits(Builder& b, Value state, const Dimensions& dimensions, bool wide) {
  Shape shape(wide ? ElementType::kU64 : ElementType::kU32, dimensions);
  return b.GetTupleElement(b.RngBitGenerator(state, hlo::RngAlgorithm::kPhilox, shape), 1);
}

// Uniform over [0, 1) in steps of 2^-24 (2^-53 for f64). `middle` shifts by half a step, into (0,
// 1).
Value UnitUniform(Builder& b, Value state, const Dimensions& dimensions, ElementType type,
                  bool middle = false) {
  bool wide = type == ElementType::kF64;
  Value bits = Bits(b, state, dimensions, wide);
  int64_t digits = wide ? 53 : 24;
  Value shift = b.Full(bits->shape(), (wide ? 64 : 32) - digits);
  Value number = b.Binary(Opcode::kShiftRightLogical, bits, shift);
  // Signed: the top bits are zero, and signed numbers convert faster.
  Value whole = b.Convert(number, wide ? ElementType::kS64 : ElementType::kS32);
  Value real = b.Convert(whole, wide ? ElementType::kF64 : ElementType::kF32);
  if (middle) real = b.Add(real, Like(b, real, 0.5));
  return b.Multiply(real, Like(b, real, std::ldexp(1.0, -static_cast<int>(digits))));
}

Value StandardNormal(Builder& b, Value state, const Dimensions& dimensions, ElementType type) {
  Value u = UnitUniform(b, state, dimensions, type, true);
  Value centered = b.Subtract(b.Add(u, u), Like(b, u, 1));
  return b.Multiply(ErfInv(b, centered), Like(b, u, std::numbers::sqrt2));
}

// Exponentially distributed with mean 1.
Value StandardExponential(Builder& b, Value state, const Dimensions& dimensions, ElementType type) {
  Value u = UnitUniform(b, state, dimensions, type, true);
  return b.Negate(b.Log(u));
}

// True with probability p, by comparing 32 random bits.
Value Coin(Builder& b, Value state, const Dimensions& dimensions, double p) {
  if (!(p >= 0 && p <= 1)) {
    throw hlo::Error("expected probability to be between 0 and 1, but got " + std::to_string(p));
  }
  Shape pred(ElementType::kPred, dimensions);
  if (p == 0 || p == 1) return b.Full(pred, static_cast<int64_t>(p));
  Value bits = Bits(b, state, dimensions, false);
  return b.Lt(bits, b.Full(bits->shape(), static_cast<int64_t>(std::ldexp(p, 32))));
}

// --- Distributions, in the type of a tensor

Value FromNumber(Builder& b, Value like, Value number) {
  return Splat(b, b.Convert(number, like->element_type()), like->dimensions());
}

// The upper end must stay out where rounding would reach it.
Value Uniform(Builder& b, Value state, Dimensions dimensions, ElementType type, Scalar low,
              Scalar high) {
  Value u = UnitUniform(b, state, dimensions, type);
  Value from = FromNumber(b, u, low), to = FromNumber(b, u, high);
  return b.Convert(b.Add(b.Multiply(u, b.Subtract(to, from)), from), type);
}

Value Normal(Builder& b, Value state, Dimensions dimensions, ElementType type, Scalar mean,
             Scalar deviation) {
  Value z = StandardNormal(b, state, dimensions, type);
  Value result = b.Add(b.Multiply(z, FromNumber(b, z, deviation)), FromNumber(b, z, mean));
  return b.Convert(result, type);
}

Value NormalOf(Builder& b, Value state, Value mean, Value deviation) {
  ElementType type = mean->element_type();
  auto [m, d] = Broadcast(b, ToAccumulation(b, mean),
                          b.Convert(ToAccumulation(b, deviation), AccumulationType(type)));
  Value z = StandardNormal(b, state, m->dimensions(), m->element_type());
  return b.Convert(b.Add(b.Multiply(z, d), m), type);
}

Value LogNormal(Builder& b, Value state, Dimensions dimensions, ElementType type, Scalar mean,
                Scalar deviation) {
  Value z = StandardNormal(b, state, dimensions, type);
  Value exponent = b.Add(b.Multiply(z, FromNumber(b, z, deviation)), FromNumber(b, z, mean));
  return b.Convert(b.Exp(exponent), type);
}

Value Exponential(Builder& b, Value state, Dimensions dimensions, ElementType type, Scalar rate) {
  Value e = StandardExponential(b, state, dimensions, type);
  return b.Convert(b.Divide(e, FromNumber(b, e, rate)), type);
}

Value Cauchy(Builder& b, Value state, Dimensions dimensions, ElementType type, Scalar median,
             Scalar sigma) {
  Value u = UnitUniform(b, state, dimensions, type, true);
  Value angle = b.Multiply(b.Subtract(u, Like(b, u, 0.5)), Like(b, u, std::numbers::pi));
  Value result = b.Add(b.Multiply(b.Unary(Opcode::kTan, angle), FromNumber(b, u, sigma)),
                       FromNumber(b, u, median));
  return b.Convert(result, type);
}

// The number of trials until the first success.
Value Geometric(Builder& b, Value state, Dimensions dimensions, ElementType type, double p) {
  Value e = StandardExponential(b, state, dimensions, ElementType::kF32);
  Value trials = b.Unary(Opcode::kCeil, b.Multiply(e, Like(b, e, -1 / std::log1p(-p))));
  return b.Convert(b.Maximum(trials, Like(b, trials, 1)), type);
}

Value Bernoulli(Builder& b, Value state, Dimensions dimensions, ElementType type, double p) {
  return b.Convert(Coin(b, state, dimensions, p), type);
}

// The probabilities are a tensor; `type` is the result's.
Value BernoulliOf(Builder& b, Value state, Value p, Dimensions dimensions, ElementType type) {
  p = b.BroadcastTo(ToAccumulation(b, ToFloat(b, p)), dimensions);
  Value u = UnitUniform(b, state, dimensions, p->element_type());
  return b.Convert(b.Lt(u, p), type);
}

// Integers in [low, low + range); a range of 0 is all of them. 64 bits modulo the range are biased
// by less than range / 2^64.
Value Integers(Builder& b, Value state, Dimensions dimensions, ElementType type, Scalar low,
               Scalar range) {
  Value bits = Bits(b, state, dimensions, true);
  Value size = Splat(b, b.Convert(range, ElementType::kU64), dimensions);
  Value zero = b.Zeros(size->shape());
  Value number = b.Select(b.Eq(size, zero), bits, b.Remainder(bits, size));
  Value base = Splat(b, b.Convert(low, ElementType::kS64), dimensions);
  return b.Convert(b.Add(b.Convert(number, ElementType::kS64), base), type);
}

Value Permutation(Builder& b, Value state, int64_t n, ElementType type) {
  Value keys = Bits(b, state, {n}, true);
  return b.Convert(SortWithIndices(b, keys, 0, false, true).second, type);
}

// --- Drawing classes

// A race of exponential clocks with the probabilities as rates: the order of arrival is a draw
// without replacement.
Value DrawWithoutReplacement(Builder& b, Value state, Value p, int64_t count) {
  int64_t last = p->shape().rank() - 1;
  p = ToAccumulation(b, p);
  Value e = StandardExponential(b, state, p->dimensions(), p->element_type());
  Value order = SortWithIndices(b, b.Divide(p, e), last, true, false).second;
  return b.SliceInDim(order, last, 0, count);
}

// How many of the cumulated probabilities a uniform number passes.
Value DrawWithReplacement(Builder& b, Value state, Value p, int64_t count) {
  int64_t last = p->shape().rank() - 1, classes = p->shape().dimension(last);
  Value cumulated = CumulativeSum(b, ToAccumulation(b, p), last);
  Dimensions draws = p->dimensions(), pairs = draws;
  draws[last] = count;
  pairs.insert(pairs.begin() + last, count);
  Value u = UnitUniform(b, state, draws, cumulated->element_type());
  Value total = b.SliceInDim(cumulated, last, classes - 1, classes);
  u = b.Multiply(u, b.BroadcastTo(total, draws));
  Value limits = BroadcastReduced(b, cumulated, {last}, pairs);
  Value passed = b.Le(limits, BroadcastReduced(b, u, {last + 1}, pairs));
  Value index = Sum(b, b.Convert(passed, ElementType::kS64), {last + 1});
  return b.Minimum(index, b.Full(index->shape(), classes - 1));
}

at::Tensor Multinomial(const at::Tensor& p, int64_t count, bool replacement,
                       std::optional<at::Generator> generator) {
  TORCH_CHECK(p.dim() == 1 || p.dim() == 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(count > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(replacement || count <= p.size(-1),
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  // As many as float32 counts.
  TORCH_CHECK(p.size(-1) <= (int64_t{1} << 24), "number of categories cannot exceed 2^24");
  lazy::Value state = RandomState(generator, p.device());
  return replacement ? Record<&DrawWithReplacement>(state, p, count)
                     : Record<&DrawWithoutReplacement>(state, p, count);
}

// --- Dropout

std::pair<Value, Value> Dropout(Builder& b, Value state, Value x, double p) {
  Value mask = Coin(b, state, x->dimensions(), 1 - p);
  double scale = p == 1 ? 0 : 1 / (1 - p);
  return {ZeroUnless(b, mask, b.Multiply(x, Like(b, x, scale))), mask};
}

Value DropoutBackward(Builder& b, Value gradient, Value mask, double scale) {
  gradient = ToFloat(b, gradient);
  return ZeroUnless(b, mask, b.Multiply(gradient, Like(b, gradient, scale)));
}

std::tuple<at::Tensor, at::Tensor> NativeDropout(const at::Tensor& x, double p,
                                                 std::optional<bool> train) {
  if (!train.value_or(true) || x.numel() == 0) {
    return {x.clone(), at::ones(x.sizes(), x.options().dtype(at::kBool))};
  }
  return Record<&Dropout>(RandomState(std::nullopt, x.device()), x, p);
}

// --- Leaky rectifier of random slopes

// x times a slope drawn between the limits where it is not positive, and by what it was multiplied.
std::pair<Value, Value> RandomLeakyRelu(Builder& b, Value state, Value x, double lower,
                                        double upper) {
  Value u = UnitUniform(b, state, x->dimensions(), x->element_type());
  Value drawn = b.Add(b.Multiply(u, Like(b, u, upper - lower)), Like(b, u, lower));
  Value leaks = b.Le(x, Like(b, x, 0));
  Value slope = b.Select(leaks, b.Convert(drawn, x->element_type()), Like(b, x, 1));
  return {b.Select(leaks, b.Multiply(x, slope), x), slope};
}

std::tuple<at::Tensor, at::Tensor> RreluWithNoiseFunctional(const at::Tensor& x,
                                                            const at::Tensor& noise,
                                                            const at::Scalar& lower,
                                                            const at::Scalar& upper, bool training,
                                                            OptionalGenerator generator) {
  TORCH_CHECK(x.sizes() == noise.sizes(),
              "noise tensor shape must match self tensor shape. Got self.shape = ", x.sizes(),
              " noise.shape = ", noise.sizes());
  if (!training) return {at::leaky_relu(x, (lower.toDouble() + upper.toDouble()) / 2), noise};
  return Record<&RandomLeakyRelu>(RandomState(generator, x.device()), x, lower.toDouble(),
                                  upper.toDouble());
}
at::Tensor RreluWithNoise(const at::Tensor& x, at::Tensor& noise, const at::Scalar& lower,
                          const at::Scalar& upper, bool training, OptionalGenerator generator) {
  auto [result, slopes] =
      RreluWithNoiseFunctional(x, noise, lower, upper, training, std::move(generator));
  if (training) WriteInto(noise, slopes);
  return result;
}
at::Tensor& RreluWithNoiseInPlace(at::Tensor& self, at::Tensor& noise, const at::Scalar& lower,
                                  const at::Scalar& upper, bool training,
                                  OptionalGenerator generator) {
  WriteInto(self, RreluWithNoise(self, noise, lower, upper, training, std::move(generator)));
  return self;
}

// --- In place

// Fills `self` with what a distribution gives for its shape and type.
template <auto f, typename... Arguments>
at::Tensor& Fill(at::Tensor& self, const OptionalGenerator& generator,
                 const Arguments&... arguments) {
  lazy::Value state = RandomState(generator, self.device());
  WriteInto(self,
            RecordOn<f>(self.device(), state, self.sizes(), self.scalar_type(), arguments...));
  return self;
}

// A number passed at run time.
Number Real(double value, const at::Tensor& like) {
  return {value, like.scalar_type() == at::kDouble ? ElementType::kF64 : ElementType::kF32};
}

at::Tensor& FillUniform(at::Tensor& self, double from, double to, OptionalGenerator generator) {
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from,
              " > to=", to);
  if (self.is_complex()) {
    at::Tensor parts = at::view_as_real(self);
    FillUniform(parts, from, to, std::move(generator));
    return self;
  }
  return Fill<&Uniform>(self, generator, Real(from, self), Real(to, self));
}
at::Tensor& FillNormal(at::Tensor& self, double mean, double deviation,
                       OptionalGenerator generator) {
  TORCH_CHECK(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
  if (self.is_complex()) {
    // The variance of a complex number is the sum of its parts'.
    at::Tensor parts = at::view_as_real(self);
    FillNormal(parts, mean, deviation / std::numbers::sqrt2, std::move(generator));
    return self;
  }
  return Fill<&Normal>(self, generator, Real(mean, self), Real(deviation, self));
}
at::Tensor& FillLogNormal(at::Tensor& self, double mean, double deviation,
                          OptionalGenerator generator) {
  TORCH_CHECK(deviation > 0, "log_normal_ expects std > 0.0, but found std=", deviation);
  return Fill<&LogNormal>(self, generator, Real(mean, self), Real(deviation, self));
}
at::Tensor& FillExponential(at::Tensor& self, double rate, OptionalGenerator generator) {
  TORCH_CHECK(rate > 0, "exponential_ expects lambda > 0.0, but found lambda=", rate);
  return Fill<&Exponential>(self, generator, Real(rate, self));
}
at::Tensor& FillCauchy(at::Tensor& self, double median, double sigma, OptionalGenerator generator) {
  TORCH_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  return Fill<&Cauchy>(self, generator, Real(median, self), Real(sigma, self));
}
at::Tensor& FillGeometric(at::Tensor& self, double p, OptionalGenerator generator) {
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  return Fill<&Geometric>(self, generator, p);
}
at::Tensor& FillBernoulli(at::Tensor& self, double p, OptionalGenerator generator) {
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  return Fill<&Bernoulli>(self, generator, p);
}

at::Tensor BernoulliLike(const at::Tensor& p, at::IntArrayRef sizes, at::ScalarType type,
                         const OptionalGenerator& generator) {
  lazy::Value state = RandomState(generator, p.device());
  return Record<&BernoulliOf>(state, p, sizes, type);
}
at::Tensor BernoulliTensor(const at::Tensor& p, OptionalGenerator generator) {
  return BernoulliLike(p, p.sizes(), p.scalar_type(), generator);
}
at::Tensor BernoulliConstant(const at::Tensor& x, double p, OptionalGenerator generator) {
  at::Tensor result = at::empty_like(x);
  return FillBernoulli(result, p, generator);
}
at::Tensor& FillBernoulliTensor(at::Tensor& self, const at::Tensor& p,
                                OptionalGenerator generator) {
  at::Tensor device_p = p.to(self.device());
  WriteInto(self, BernoulliLike(device_p, self.sizes(), self.scalar_type(), generator));
  return self;
}

at::Tensor& FillIntegers(at::Tensor& self, int64_t low, uint64_t range,
                         const OptionalGenerator& generator) {
  Number from{low, ElementType::kS64};
  Number size{static_cast<int64_t>(range), ElementType::kS64};
  return Fill<&Integers>(self, generator, from, size);
}
at::Tensor& FillRandomFrom(at::Tensor& self, int64_t from, std::optional<int64_t> to,
                           OptionalGenerator generator) {
  if (!to) return FillIntegers(self, from, 0 - static_cast<uint64_t>(from), generator);
  TORCH_CHECK(from < *to, "random_ expects 'from' to be less than 'to', but got from=", from,
              " >= to=", *to);
  return FillIntegers(self, from, static_cast<uint64_t>(*to) - static_cast<uint64_t>(from),
                      generator);
}
at::Tensor& FillRandomTo(at::Tensor& self, int64_t to, OptionalGenerator generator) {
  return FillRandomFrom(self, 0, to, generator);
}

// All numbers that the type can hold without loss.
int64_t LargestInteger(at::ScalarType type) {
  switch (type) {
    case at::kBool:
      return 1;
    case at::kByte:
      return 255;
    case at::kChar:
      return 127;
    case at::kShort:
      return 32767;
    case at::kInt:
      return std::numeric_limits<int32_t>::max();
    case at::kLong:
      return std::numeric_limits<int64_t>::max();
    case at::kHalf:
      return 1 << 11;
    case at::kBFloat16:
      return 1 << 8;
    case at::kFloat:
      return 1 << 24;
    default:
      return int64_t{1} << 53;
  }
}
at::Tensor& FillRandom(at::Tensor& self, OptionalGenerator generator) {
  uint64_t range = static_cast<uint64_t>(LargestInteger(self.scalar_type())) + 1;
  return FillIntegers(self, 0, range, generator);
}

at::Tensor Randperm(int64_t n, OptionalGenerator generator, std::optional<at::ScalarType> type,
                    std::optional<at::Layout> layout, std::optional<at::Device> device,
                    std::optional<bool> pin_memory) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got ", n);
  at::Device on = device.value_or(at::Device(at::kXLA));
  return RecordOn<&Permutation>(on, RandomState(generator, on), n, type.value_or(at::kLong));
}
at::Tensor RandpermDefault(int64_t n, std::optional<at::ScalarType> type,
                           std::optional<at::Layout> layout, std::optional<at::Device> device,
                           std::optional<bool> pin_memory) {
  return Randperm(n, std::nullopt, type, layout, device, pin_memory);
}

at::Tensor NormalTensors(const at::Tensor& mean, const at::Tensor& deviation,
                         OptionalGenerator generator) {
  TORCH_CHECK(!deviation.is_complex(), "normal expects standard deviation to be non-complex");
  if (mean.is_complex()) {
    auto sizes = at::infer_size(mean.sizes(), deviation.sizes());
    return at::randn(sizes, generator, mean.options()).mul_(deviation).add_(mean);
  }
  return Record<&NormalOf>(RandomState(generator, mean.device()), mean, deviation);
}
at::Tensor NormalTensorNumber(const at::Tensor& mean, double deviation,
                              OptionalGenerator generator) {
  return NormalTensors(mean, at::full({}, deviation, mean.options()), generator);
}
at::Tensor NormalNumberTensor(double mean, const at::Tensor& deviation,
                              OptionalGenerator generator) {
  return NormalTensors(at::full({}, mean, deviation.options()), deviation, generator);
}

// The composite operator would keep a mask of the input's type; this keeps one of bools.
at::Tensor DropoutAutograd(const at::Tensor& x, double p, bool train) {
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (p == 0 || !train || x.numel() == 0) return x;
  return std::get<0>(at::native_dropout(x, p, train));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("uniform_", &FillUniform);
  m.impl("normal_", &FillNormal);
  m.impl("log_normal_", &FillLogNormal);
  m.impl("exponential_", &FillExponential);
  m.impl("cauchy_", &FillCauchy);
  m.impl("geometric_", &FillGeometric);
  m.impl("bernoulli", &BernoulliTensor);
  m.impl("bernoulli.p", &BernoulliConstant);
  m.impl("bernoulli_.float", &FillBernoulli);
  m.impl("bernoulli_.Tensor", &FillBernoulliTensor);
  m.impl("random_", &FillRandom);
  m.impl("random_.to", &FillRandomTo);
  m.impl("random_.from", &FillRandomFrom);
  m.impl("randperm", &RandpermDefault);
  m.impl("randperm.generator", &Randperm);
  m.impl("normal.Tensor_Tensor", &NormalTensors);
  m.impl("normal.Tensor_float", &NormalTensorNumber);
  m.impl("normal.float_Tensor", &NormalNumberTensor);
  m.impl("multinomial", &Multinomial);
  m.impl("rrelu_with_noise", &RreluWithNoise);
  m.impl("rrelu_with_noise_", &RreluWithNoiseInPlace);
  m.impl("rrelu_with_noise_functional", &RreluWithNoiseFunctional);
  m.impl("native_dropout", &NativeDropout);
  Register<&DropoutBackward>(m, "native_dropout_backward");
}

TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) { m.impl("dropout", &DropoutAutograd); }

}  // namespace torch_xla
