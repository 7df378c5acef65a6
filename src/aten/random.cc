// Random numbers: bits of Philox whose key and counter are data of the graph, and the distributions
// made from them (draws.h) element by element, so that they fuse into what uses them. Probabilities
// and limits that a program keeps from step to step are constants of the graph. Arguments are
// checked by torch's own templates, with eager's messages.
#include <ATen/MemoryOverlap.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/native/TensorFactories.h>

#include <algorithm>
#include <cmath>

#include "aten/broadcast.h"
#include "aten/draws.h"
#include "aten/evaluated_form.h"
#include "aten/generator.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/refuse.h"
#include "aten/refused_types.h"
#include "aten/sort.h"
#include "aten/value_check.h"
#include "hlo/number_conversion.h"
#include "lazy/eager.h"
#include "lazy/tensor_counts.h"

namespace torch_xla {
namespace {

using OptionalGenerator = std::optional<at::Generator>;

bool IsContinuous(const at::Tensor& x) { return x.is_floating_point() || x.is_complex(); }

// --- Distributions, in the type of a tensor

Value FromNumber(Builder& b, Value like, Value number) {
  return Splat(b, b.Convert(number, like->element_type()), like->dimensions());
}

Value Uniform(Builder& b, Value state, Dimensions dimensions, ElementType type, Scalar from,
              Scalar width, Scalar last) {
  Value u = UnitUniform(b, BitsFor(b, state, dimensions, type), type);
  Value drawn =
      InInterval(b, u, FromNumber(b, u, from), FromNumber(b, u, width), FromNumber(b, u, last));
  return b.Convert(drawn, type);
}

// Normally distributed, in the type that `type` is computed in.
Value DrawNormal(Builder& b, Value state, const Dimensions& dimensions, ElementType type,
                 Scalar mean, Scalar deviation) {
  Value z = StandardNormal(b, BitsFor(b, state, dimensions, type));
  return b.Add(b.Multiply(z, FromNumber(b, z, deviation)), FromNumber(b, z, mean));
}

Value Normal(Builder& b, Value state, Dimensions dimensions, ElementType type, Scalar mean,
             Scalar deviation) {
  return b.Convert(DrawNormal(b, state, dimensions, type, mean, deviation), type);
}

// Of mean 0 and deviation 1, which a program does not have to take.
Value NormalStandard(Builder& b, Value state, Dimensions dimensions, ElementType type) {
  return b.Convert(StandardNormal(b, BitsFor(b, state, dimensions, type)), type);
}

Value NormalOf(Builder& b, Value state, Value mean, Value deviation) {
  CheckAll(b, {kRuntimeError, "normal expects all elements of std >= 0.0"},
           [&] { return b.Ge(deviation, Like(b, deviation, 0)); });
  ElementType type = mean->element_type();
  auto [m, d] = Broadcast(b, ToAccumulation(b, mean),
                          b.Convert(ToAccumulation(b, deviation), AccumulationType(type)));
  Value z = StandardNormal(b, BitsFor(b, state, m->dimensions(), type));
  return b.Convert(b.Add(b.Multiply(z, d), m), type);
}

// The draw within finite numbers, unless a parameter is infinite and so says otherwise.
Value UnlessInfinite(Builder& b, Value parameter, Value draw, Value finite) {
  Value is_finite = b.Unary(Opcode::kIsFinite, parameter);
  return b.Select(is_finite, finite, b.Convert(draw, finite->element_type()));
}

Value LogNormal(Builder& b, Value state, Dimensions dimensions, ElementType type, Scalar mean,
                Scalar deviation) {
  Value x = b.Exp(DrawNormal(b, state, dimensions, type, mean, deviation));
  return UnlessInfinite(b, FromNumber(b, x, mean), x, ToPositiveFinite(b, x, type));
}

Value Exponential(Builder& b, Value state, Dimensions dimensions, ElementType type, Scalar rate) {
  Value e = StandardExponential(b, BitsFor(b, state, dimensions, type));
  return ToPositiveFinite(b, b.Divide(e, FromNumber(b, e, rate)), type);
}

Value Cauchy(Builder& b, Value state, Dimensions dimensions, ElementType type, Scalar median,
             Scalar sigma) {
  Value c = StandardCauchy(b, BitsFor(b, state, dimensions, type));
  Value middle = FromNumber(b, c, median);
  Value result = b.Add(b.Multiply(c, FromNumber(b, c, sigma)), middle);
  return UnlessInfinite(b, middle, result, ToFinite(b, result, type));
}

// The number of trials until the first success, at least 1. In f64 for types that hold numbers
// which f32 rounds.
Value Geometric(Builder& b, Value state, Dimensions dimensions, ElementType type, double p) {
  bool is_wide = type != ElementType::kF32 && hlo::BitWidth(type) >= 32;
  ElementType computed = is_wide ? ElementType::kF64 : ElementType::kF32;
  Value e = StandardExponential(b, BitsFor(b, state, dimensions, computed));
  Value trials = b.Unary(Opcode::kCeil, b.Multiply(e, Like(b, e, -1 / std::log1p(-p))));
  return ToPositiveFinite(b, b.Maximum(trials, Like(b, trials, 1)), type);
}

Value Bernoulli(Builder& b, Value state, Dimensions dimensions, ElementType type, double p) {
  return b.Convert(Coin(b, RandomBits(b, state, dimensions, ElementType::kU32), p), type);
}

// The probabilities are a tensor; `type` is the result's.
Value BernoulliOf(Builder& b, Value state, Value p, Dimensions dimensions, ElementType type) {
  p = ToAccumulation(b, ToFloat(b, p));
  CheckAll(b,
           {kRuntimeError,
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message "
            "be improved?  If so, please report an enhancement request to PyTorch.)"},
           [&] { return b.And(b.Ge(p, Like(b, p, 0)), b.Le(p, Like(b, p, 1))); });
  p = b.BroadcastTo(p, dimensions);
  ElementType computed = p->element_type();
  Value u = UnitUniform(b, BitsFor(b, state, dimensions, computed), computed);
  return b.Convert(b.Lt(u, p), type);
}

// The high words of the products of random bits, of 32 or 64, and a number of 32 bits: u64.
Value HighProduct(Builder& b, Value bits, Value size) {
  const bool is_wide = bits->element_type() == ElementType::kU64;
  bits = b.Convert(bits, ElementType::kU64);
  Value shift = b.Full(bits->shape(), int64_t{32});
  Value mask = b.Full(bits->shape(), int64_t{0xffffffff});
  auto high = [&](Value x) { return b.Binary(Opcode::kShiftRightLogical, x, shift); };
  size = b.And(size, mask);
  if (!is_wide) return high(b.Multiply(bits, size));
  Value carried = high(b.Multiply(b.And(bits, mask), size));
  return high(b.Add(b.Multiply(high(bits), size), carried));
}

// How integers of a range are drawn.
enum class IntegerDraw : uint8_t {
  kScaled32,  // 32 random bits are scaled to it
  kScaled64,  // 64 are, to one of 32 bits
  kModulo,    // 64 are taken modulo it; a range of 0 is all numbers
};

// From 32 bits each number of the range is as likely as any other to within 2^-16.
IntegerDraw DrawOf(uint64_t range) {
  if (range == 0 || range >= uint64_t{1} << 32) return IntegerDraw::kModulo;
  return range <= uint64_t{1} << 16 ? IntegerDraw::kScaled32 : IntegerDraw::kScaled64;
}

// Integers in [low, low + range); a range of 0 is all of them. Of more than 2^16, each is as likely
// as any other to within range / 2^64.
Value Integers(Builder& b, Value state, Dimensions dimensions, ElementType type, Scalar low,
               Scalar range, IntegerDraw draw) {
  const bool is_narrow = draw == IntegerDraw::kScaled32;
  Value bits = RandomBits(b, state, dimensions, is_narrow ? ElementType::kU32 : ElementType::kU64);
  Value size = Splat(b, b.Convert(range, ElementType::kU64), dimensions);
  Value number;
  if (draw != IntegerDraw::kModulo) {
    number = HighProduct(b, bits, size);
  } else {
    number = b.Select(b.Eq(size, b.Zeros(size->shape())), bits, b.Remainder(bits, size));
  }
  Value base = Splat(b, b.Convert(low, ElementType::kS64), dimensions);
  return b.Convert(b.Add(b.Convert(number, ElementType::kS64), base), type);
}

Value Permutation(Builder& b, Value state, int64_t n, ElementType type) {
  Value keys = RandomBits(b, state, {n}, ElementType::kU64);
  return b.Convert(SortWithIndices(b, keys, 0, false, true).second, type);
}

// --- In place

// Fills `self` with what a distribution gives for its shape and type.
template <auto f, typename... Arguments>
void FillWithDraws(const at::Tensor& self, const OptionalGenerator& generator,
                   const Arguments&... arguments) {
  at::assert_no_internal_overlap(self);
  lazy::Value state = RandomState(generator, self.device());
  RecordInto<f>(self, state, self.sizes(), self.scalar_type(), arguments...);
}

// A number passed at run time. One beyond f32, which eager draws with in f64, becomes infinite.
Number Real(double value, at::ScalarType type) {
  if (type == at::kDouble) return {value, ElementType::kF64};
  return {static_cast<double>(hlo::ConvertNumber<float>(value)), ElementType::kF32};
}
Number Real(double value, const at::Tensor& like) { return Real(value, like.scalar_type()); }

// torch's templates check the arguments and call these, each with the tensor itself or an iterator
// over nothing but it. The parameter, a generator's class, says nothing here.
namespace templates = at::native::templates;
const at::Tensor& Target(const at::Tensor& self) { return self; }
const at::Tensor& Target(const at::TensorIteratorBase& iterator) { return iterator.tensor(0); }

template <typename>
struct UniformFill {
  void operator()(const at::TensorIteratorBase& iterator, double from, double to,
                  const OptionalGenerator& generator) const {
    const at::Tensor& self = Target(iterator);
    Interval interval = IntervalOf(ToElementType(self.scalar_type()), from, to);
    FillWithDraws<&Uniform>(self, generator, Real(interval.from, self), Real(interval.width, self),
                            Real(interval.last, self));
  }
};

// Of two real parameters.
template <auto f>
struct RealFill {
  template <typename>
  struct Of {
    template <typename T>
    void operator()(const T& target, double a, double b, const OptionalGenerator& generator) const {
      const at::Tensor& self = Target(target);
      FillWithDraws<f>(self, generator, Real(a, self), Real(b, self));
    }
  };
};

template <typename>
struct NormalFill {
  template <typename T>
  void operator()(const T& target, double mean, double deviation,
                  const OptionalGenerator& generator) const {
    const at::Tensor& self = Target(target);
    if (mean == 0 && deviation == 1) {
      FillWithDraws<&NormalStandard>(self, generator);
    } else {
      FillWithDraws<&Normal>(self, generator, Real(mean, self), Real(deviation, self));
    }
  }
};

template <typename>
struct ExponentialFill {
  void operator()(const at::TensorIteratorBase& iterator, double rate,
                  const OptionalGenerator& generator) const {
    at::Tensor self = Target(iterator);
    // All at once: the only rate at which zero is drawn.
    if (std::isinf(rate)) {
      self.zero_();
    } else {
      FillWithDraws<&Exponential>(self, generator, Real(rate, self));
    }
  }
};

// Of a probability that is a constant of the graph.
template <auto f>
struct ProbabilityFill {
  template <typename>
  struct Of {
    template <typename T>
    void operator()(const T& target, double p, const OptionalGenerator& generator) const {
      FillWithDraws<f>(Target(target), generator, p);
    }
  };
};

void FillIntegers(const at::Tensor& self, int64_t low, uint64_t range,
                  const OptionalGenerator& generator) {
  Number from{low, ElementType::kS64};
  Number size{static_cast<int64_t>(range), ElementType::kS64};
  FillWithDraws<&Integers>(self, generator, from, size, DrawOf(range));
}

template <typename>
struct IntegersFill {
  void operator()(const at::TensorIteratorBase& iterator, uint64_t range, int64_t from,
                  const OptionalGenerator& generator) const {
    FillIntegers(Target(iterator), from, range, generator);
  }
  // All numbers of 64 bits.
  void operator()(const at::TensorIteratorBase& iterator,
                  const OptionalGenerator& generator) const {
    const at::Tensor& self = Target(iterator);
    at::ScalarType type = self.scalar_type();
    TORCH_CHECK(
        type == at::kLong || type == at::kBFloat16 || type == at::kFloat || type == at::kDouble,
        "random_ from all 64 bits handles only int64, double, float and bfloat16, not ", type);
    FillIntegers(self, std::numeric_limits<int64_t>::min(), 0, generator);
  }
};

// The least and the greatest int64 within the type's range.
std::pair<int64_t, int64_t> IntegersOf(at::ScalarType type) {
  std::pair<int64_t, int64_t> range(std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int64_t>::max());
  AT_DISPATCH_V2(type, "random_", AT_WRAP([&] {
                   using Limits = std::numeric_limits<scalar_t>;
                   if (static_cast<double>(Limits::lowest()) > -0x1p63) {
                     range.first = static_cast<int64_t>(Limits::lowest());
                   }
                   if (static_cast<double>(Limits::max()) < 0x1p63) {
                     range.second = static_cast<int64_t>(Limits::max());
                   }
                 }),
                 at::kBool, at::kHalf, at::kBFloat16, AT_EXPAND(AT_ALL_TYPES),
                 AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES));
  return range;
}

// From zero to the largest number up to which the type holds all integers.
uint64_t LargestInteger(at::ScalarType type) {
  return AT_DISPATCH_V2(type, "random_", AT_WRAP([&] {
                          if constexpr (std::is_same_v<scalar_t, bool>) {
                            return uint64_t{1};
                          } else if constexpr (std::is_integral_v<scalar_t>) {
                            return static_cast<uint64_t>(std::numeric_limits<scalar_t>::max());
                          } else {
                            return uint64_t{1} << std::numeric_limits<scalar_t>::digits;
                          }
                        }),
                        AT_EXPAND(AT_ALL_TYPES), at::kBool, at::kHalf, at::kBFloat16);
}

template <typename>
struct AllIntegersFill {
  void operator()(const at::TensorIteratorBase& iterator,
                  const OptionalGenerator& generator) const {
    const at::Tensor& self = Target(iterator);
    FillIntegers(self, 0, LargestInteger(self.scalar_type()) + 1, generator);
  }
};

// Eager's kernels refuse types, but are not asked where there is nothing to draw.
bool DrawsNothing(const at::Tensor& self, bool has_kernel, const char* kernel) {
  if (has_kernel) return false;
  CheckKernel(self.numel() == 0, kernel, self.scalar_type());
  return true;
}

at::Tensor& FillUniform(at::Tensor& self, double from, double to, OptionalGenerator generator) {
  return templates::uniform_impl_<UniformFill, XlaGeneratorImpl>(self, from, to, generator);
}
at::Tensor& FillNormal(at::Tensor& self, double mean, double deviation,
                       OptionalGenerator generator) {
  TORCH_CHECK(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
  if (DrawsNothing(self, IsContinuous(self), "normal_kernel_cpu")) return self;
  return templates::normal_impl_<NormalFill, XlaGeneratorImpl>(self, mean, deviation, generator);
}
at::Tensor& FillLogNormal(at::Tensor& self, double mean, double deviation,
                          OptionalGenerator generator) {
  TORCH_CHECK(deviation > 0, "log_normal_ expects std > 0.0, but found std=", deviation);
  if (DrawsNothing(self, self.is_floating_point(), "log_normal_cpu")) return self;
  return templates::log_normal_impl_<RealFill<&LogNormal>::Of, XlaGeneratorImpl>(
      self, mean, deviation, generator);
}
at::Tensor& FillExponential(at::Tensor& self, double rate, OptionalGenerator generator) {
  TORCH_CHECK(rate > 0.0, "exponential_ expects lambda > 0.0, but found lambda=", rate);
  if (self.numel() == 0) return self;
  TORCH_CHECK(self.is_floating_point(),
              "Exponential distribution is a continuous probability distribution. dtype must be a "
              "floating point but you specified ",
              self.scalar_type());
  return templates::exponential_impl_<ExponentialFill, XlaGeneratorImpl>(self, rate, generator);
}
at::Tensor& FillCauchy(at::Tensor& self, double median, double sigma, OptionalGenerator generator) {
  return templates::cauchy_impl_<RealFill<&Cauchy>::Of, XlaGeneratorImpl>(self, median, sigma,
                                                                          generator);
}
at::Tensor& FillGeometric(at::Tensor& self, double p, OptionalGenerator generator) {
  const bool has_kernel = !self.is_complex() && self.scalar_type() != at::kBool;
  if (DrawsNothing(self, has_kernel, "geometric_cpu")) return self;
  return templates::geometric_impl_<ProbabilityFill<&Geometric>::Of, XlaGeneratorImpl>(self, p,
                                                                                       generator);
}
at::Tensor& FillBernoulli(at::Tensor& self, double p, OptionalGenerator generator) {
  if (DrawsNothing(self, !self.is_complex(), "bernoulli_scalar_cpu_")) return self;
  return templates::bernoulli_impl_<ProbabilityFill<&Bernoulli>::Of, XlaGeneratorImpl>(self, p,
                                                                                       generator);
}
// Throws what is wrong with [from, to), which eager refuses, if it is empty or beyond the type.
void ExplainInterval(at::ScalarType type, int64_t from, int64_t to, const std::string& eager) {
  if (from >= to) {
    Refuse(eager, "random_(): expected `from` (", from, ") to be smaller than `to` (", to, ").");
  }
  const auto [lowest, highest] = IntegersOf(type);
  const auto check = [&, lowest = lowest, highest = highest](const char* name, int64_t number) {
    if (number >= lowest && number <= highest) return;
    const bool is_high = number > highest;
    Refuse(eager, "random_(): expected `", name, "` to be within the range [", lowest, ", ",
           highest, "]. However got value ", number, ", which is ",
           is_high ? "greater than the upper" : "smaller than the lower", " bound.");
  };
  check("from", from);
  check("to", to - 1);
}

at::Tensor& FillRandomFrom(at::Tensor& self, int64_t from, std::optional<int64_t> to,
                           OptionalGenerator generator) {
  // The template wraps around for such numbers, and never ends for the last of them.
  TORCH_CHECK(to || !self.is_floating_point() || from < int64_t{1} << 62,
              "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted "
              "to dtype, but got from=",
              from);
  try {
    return templates::random_from_to_impl<IntegersFill, XlaGeneratorImpl>(self, from, to,
                                                                          generator);
  } catch (const c10::Error& error) {
    // (Of a complex type the interval is not what is wrong.)
    if (to && !self.is_complex()) {
      ExplainInterval(self.scalar_type(), from, *to, error.what_without_backtrace());
    }
    throw;
  }
}
at::Tensor& FillRandomTo(at::Tensor& self, int64_t to, OptionalGenerator generator) {
  return FillRandomFrom(self, 0, to, generator);
}
at::Tensor& FillRandom(at::Tensor& self, OptionalGenerator generator) {
  return templates::random_impl<AllIntegersFill, XlaGeneratorImpl>(self, generator);
}

at::Tensor BernoulliLike(const at::Tensor& p, at::IntArrayRef sizes, at::ScalarType type,
                         const OptionalGenerator& generator) {
  CheckKernel(p.is_floating_point(), "bernoulli_tensor_cpu_p_", p.scalar_type());
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
  at::assert_no_internal_overlap(self);
  at::Tensor device_p = p.to(self.device());
  WriteInto(self, BernoulliLike(device_p, self.sizes(), self.scalar_type(), generator));
  return self;
}

// Whether a tensor of that description is of floats and like any other.
bool IsDrawnAtOnce(at::IntArrayRef size, at::ScalarType type, std::optional<at::Layout> layout,
                   std::optional<bool> pin_memory) {
  const bool is_valid = std::ranges::all_of(size, [](int64_t extent) { return extent >= 0; });
  const bool is_float =
      type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16;
  return is_valid && is_float && layout.value_or(at::kStrided) == at::kStrided &&
         !pin_memory.value_or(false);
}

at::Tensor Randperm(int64_t n, OptionalGenerator generator, std::optional<at::ScalarType> type,
                    std::optional<at::Layout> layout, std::optional<at::Device> device,
                    std::optional<bool> pin_memory) {
  TORCH_CHECK(n >= 0, "Trying to create tensor with negative dimension ", n, ": [", n, "]");
  at::Device on = device.value_or(at::Device(at::kXLA));
  at::ScalarType kind = type.value_or(at::kLong);
  CheckKernel(kind != at::kBool && !at::isComplexType(kind), "randperm", kind);
  at::native::check_supported_max_int_with_precision(n, at::empty({0}, kind));
  return RecordOn<&Permutation>(on, RandomState(generator, on), n, kind);
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
  CheckKernel(IsContinuous(mean), "normal_kernel_cpu", mean.scalar_type());
  return Record<&NormalOf>(RandomState(generator, mean.device()), mean, deviation);
}
at::Tensor NormalTensorNumber(const at::Tensor& mean, double deviation,
                              OptionalGenerator generator) {
  TORCH_CHECK(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
  const at::ScalarType type = c10::toRealValueType(mean.scalar_type());
  return NormalTensors(mean, at::full({}, deviation, mean.options().dtype(type)), generator);
}
at::Tensor NormalNumberTensor(double mean, const at::Tensor& deviation,
                              OptionalGenerator generator) {
  return NormalTensors(at::full({}, mean, deviation.options()), deviation, generator);
}

// Torch's randn and rand fill an empty tensor. Floats are drawn without one, but where programs
// count what is called: in eager mode.
at::Tensor NewDraws(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                    std::optional<at::Layout> layout, std::optional<at::Device> device,
                    std::optional<bool> pin_memory, const auto& fill, const auto& draw) {
  const at::ScalarType type = dtype.value_or(c10::get_default_dtype_as_scalartype());
  const at::Device on = device.value_or(at::Device(at::kXLA));
  if (lazy::RunsAsCalled() || !IsDrawnAtOnce(size, type, layout, pin_memory)) {
    return fill(at::empty(size, type, layout, on, pin_memory, std::nullopt));
  }
  lazy::CountPassingTensor();  // the empty one
  return draw(on, type);
}

at::Tensor Randn(at::IntArrayRef size, OptionalGenerator generator,
                 std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                 std::optional<at::Device> device, std::optional<bool> pin_memory) {
  const auto fill = [&](const at::Tensor& empty) { return empty.normal_(0, 1, generator); };
  return NewDraws(size, dtype, layout, device, pin_memory, fill,
                  [&](at::Device on, at::ScalarType type) {
                    return RecordOn<&NormalStandard>(on, RandomState(generator, on), size, type);
                  });
}
at::Tensor RandnDefault(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout> layout, std::optional<at::Device> device,
                        std::optional<bool> pin_memory) {
  return Randn(size, std::nullopt, dtype, layout, device, pin_memory);
}

at::Tensor Rand(at::IntArrayRef size, OptionalGenerator generator,
                std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                std::optional<at::Device> device, std::optional<bool> pin_memory) {
  const auto fill = [&](const at::Tensor& empty) { return empty.uniform_(0, 1, generator); };
  return NewDraws(size, dtype, layout, device, pin_memory, fill,
                  [&](at::Device on, at::ScalarType type) {
                    const Interval interval = IntervalOf(ToElementType(type), 0, 1);
                    return RecordOn<&Uniform>(on, RandomState(generator, on), size, type,
                                              Real(interval.from, type), Real(interval.width, type),
                                              Real(interval.last, type));
                  });
}
at::Tensor RandDefault(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                       std::optional<at::Layout> layout, std::optional<at::Device> device,
                       std::optional<bool> pin_memory) {
  return Rand(size, std::nullopt, dtype, layout, device, pin_memory);
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
  m.impl("randn", &RandnDefault);
  m.impl("randn.generator", &Randn);
  m.impl("rand", &RandDefault);
  m.impl("rand.generator", &Rand);
  m.impl("randperm", &RandpermDefault);
  m.impl("randperm.generator", &Randperm);
  m.impl("normal.Tensor_Tensor", &NormalTensors);
  m.impl("normal.Tensor_float", &NormalTensorNumber);
  m.impl("normal.float_Tensor", &NormalNumberTensor);
  RunByEvaluator<&Uniform>();
  RunByEvaluator<&Normal>();
  RunByEvaluator<&NormalStandard>();
  RunByEvaluator<&NormalOf>();
  RunByEvaluator<&LogNormal>();
  RunByEvaluator<&Exponential>();
  RunByEvaluator<&Cauchy>();
  RunByEvaluator<&Geometric>();
  RunByEvaluator<&Bernoulli>();
  RunByEvaluator<&BernoulliOf>();
  RunByEvaluator<&Integers>();
  RunByEvaluator<&Permutation>();
}

}  // namespace torch_xla
