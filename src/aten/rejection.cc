// Distributions whose numbers take more than one draw each: by rejection, in rounds until an
// attempt of every element is accepted, and by a search among cumulative probabilities.
#include <functional>
#include <optional>

#include "aten/broadcast.h"
#include "aten/dimension.h"
#include "aten/draws.h"
#include "aten/elementwise.h"
#include "aten/evaluated_form.h"
#include "aten/generator.h"
#include "aten/iteration.h"
#include "aten/op.h"
#include "aten/polynomial.h"
#include "aten/promotion.h"
#include "aten/reduction.h"
#include "aten/refused_types.h"
#include "aten/value_check.h"

namespace torch_xla {
namespace {

// What accepts an attempt least often are Poisson's numbers of mean ten, which six in seven
// attempts bring: all of these fail once in 10^27 draws.
constexpr double kMostRounds = 32;
// From this mean on, counts are drawn by rejection; below, by a search.
constexpr double kLargeMean = 10;
// A count of a smaller mean is not larger than this one in 10^40 draws.
constexpr double kMostOfSmallMean = 80;

// One draw after the other from the numbers of a state.
class Source {
 public:
  Source(Builder& b, Value state, Value like) : b_(b), state_(state), like_(like) {}

  Value Normal() { return StandardNormal(b_, Bits()); }
  // -log(u) of a uniform number.
  Value Exponential() { return StandardExponential(b_, Bits()); }
  // Over [0, 1).
  Value Uniform() { return UnitUniform(b_, Bits(), like_->element_type()); }
  // After these draws.
  Value state() const { return state_; }

 private:
  Value Bits() {
    const bool is_wide = like_->element_type() == ElementType::kF64;
    const Shape shape(is_wide ? ElementType::kU64 : ElementType::kU32, like_->dimensions());
    Value drawn = b_.RngBitGenerator(state_, hlo::RngAlgorithm::kPhilox, shape);
    state_ = b_.GetTupleElement(drawn, 0);
    return b_.GetTupleElement(drawn, 1);
  }

  Builder& b_;
  Value state_, like_;
};

struct Attempt {
  Value drawn, is_accepted;
};
using Draw = std::function<Attempt(Builder& b, Source& source, const Values& parameters)>;

// Where `is_wanted`, the first accepted attempt; elsewhere, and where none is, `otherwise`.
Value FirstAccepted(Builder& b, const char* name, Value state, Value is_wanted, Value otherwise,
                    const Values& parameters, const Draw& draw) {
  Values start = {otherwise, is_wanted, state};
  start.insert(start.end(), parameters.begin(), parameters.end());
  Value begins = b.Reduce(Opcode::kOr, is_wanted, AllDimensions(is_wanted->shape().rank()));
  Iteration rounds = {.name = name, .most_steps = kMostRounds, .begins = begins};
  return UntilSettled(b, rounds, start, [&](Builder& r, Value, const Values& p) -> Values {
    Source source(r, p[2], p[0]);
    const Values rest(p.begin() + 3, p.end());
    Attempt attempt = draw(r, source, rest);
    Value is_left = r.And(p[1], r.Not(attempt.is_accepted));
    Value drawn = r.Select(p[1], r.Select(attempt.is_accepted, attempt.drawn, p[0]), p[0]);
    Values next = {is_left, drawn, is_left, source.state()};
    next.insert(next.end(), rest.begin(), rest.end());
    return next;
  })[0];
}

// --- Gamma and Dirichlet

// Of shapes from 1 on: Marsaglia and Tsang, 2000.
Value GammaOfLargeShape(Builder& b, Value state, Value shape) {
  Value d = b.Subtract(shape, Like(b, shape, 1.0 / 3));
  Value is_wanted = b.And(b.Gt(d, Like(b, d, 0)), b.Unary(Opcode::kIsFinite, d));
  return FirstAccepted(
      b, "gamma", state, is_wanted, d, {d}, [](Builder& r, Source& source, const Values& p) {
        Value d = p[0], one = Like(r, d, 1), normal = source.Normal();
        Value c = r.Rsqrt(r.Multiply(d, Like(r, d, 9)));
        Value root = r.Add(one, r.Multiply(c, normal));
        Value cube = r.Multiply(r.Multiply(root, root), root);
        Value is_positive = r.Gt(root, Like(r, root, 0));
        Value log_cube = r.Log(r.Select(is_positive, cube, one));
        Value half_square = r.Multiply(r.Multiply(normal, normal), Like(r, normal, 0.5));
        Value bound = r.Add(half_square, r.Multiply(d, r.Add(r.Subtract(one, cube), log_cube)));
        Value is_below = r.Gt(source.Exponential(), r.Negate(bound));
        return Attempt{r.Multiply(d, cube), r.And(is_positive, is_below)};
      });
}

// A smaller shape's number is that of the next larger one by a power of a uniform number.
Value Gamma(Builder& b, Value state, Value shape) {
  Value one = Like(b, shape, 1);
  Value is_small = b.Lt(shape, one);
  Source source(b, state, shape);
  Value power = b.Exp(b.Negate(b.Divide(source.Exponential(), shape)));
  Value large = b.Select(is_small, b.Add(shape, one), shape);
  Value drawn = GammaOfLargeShape(b, source.state(), large);
  return b.Multiply(drawn, b.Select(is_small, power, one));
}

// Not less than the smallest normal number of the type that it is converted to.
Value ToPositive(Builder& b, Value x, ElementType type) {
  const double least = type == ElementType::kF64   ? 0x1p-1022
                       : type == ElementType::kF16 ? 0x1p-14
                                                   : 0x1p-126;
  return b.Convert(b.Maximum(x, Like(b, x, least)), type);
}

Value StandardGamma(Builder& b, Value state, Value shape) {
  return ToPositive(b, Gamma(b, state, ToAccumulation(b, shape)), shape->element_type());
}

Value Dirichlet(Builder& b, Value state, Value concentration) {
  if (concentration->shape().rank() == 0) return Like(b, concentration, 1);  // the whole
  const Dimensions last = {concentration->shape().rank() - 1};
  Value drawn = Gamma(b, state, b.Convert(concentration, ElementType::kF64));
  drawn = ToPositive(b, drawn, ElementType::kF64);
  Value total = BroadcastReduced(b, Sum(b, drawn, last), last, drawn->dimensions());
  return ToPositive(b, b.Divide(drawn, total), concentration->element_type());
}

// --- Counts

// How many cumulative probabilities a uniform number passes, of which the first is given and each
// next one is (x - k y) / (k + 1) times the one of k.
Value PassedProbabilities(Builder& b, Value uniform, Value first, Value x, Value y) {
  return EachWhile(
      b, "search", {Like(b, first, 0), first, first, uniform, x, y},
      [](Builder& r, const Values& p) {
        // What is less than this cannot change a sum of about one.
        Value counts = r.And(r.Ge(p[3], p[2]), r.Gt(p[1], Like(r, p[1], 1e-17)));
        return r.And(counts, r.Lt(p[0], Like(r, p[0], kMostOfSmallMean)));
      },
      [](Builder& r, const Values& p) -> Values {
        Value next = r.Add(p[0], Like(r, p[0], 1));
        Value factor = r.Divide(r.Subtract(p[4], r.Multiply(p[0], p[5])), next);
        Value probability = r.Multiply(p[1], factor);
        return {next, probability, r.Add(p[2], probability), p[3], p[4], p[5]};
      })[0];
}

// Logarithms of probabilities of counts of 10^15 are differences of numbers that are known to some
// units only. So they are put together, as Loader does (2000), of what a count deviates from its
// mean and of what Stirling's formula leaves.

// x log(x / mean) - x + mean, of a count.
Value Deviance(Builder& b, Value x, Value mean) {
  Value distance = b.Subtract(x, mean);
  Value v = b.Divide(distance, b.Add(x, mean));
  Value square = b.Multiply(v, v);
  // 2 (atanh(v) - v) / v^3, of |v| < 0.1.
  constexpr double kSeries[] = {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11};
  Value rest = b.Multiply(square, Polynomial(b, square, kSeries));
  Value near = b.Multiply(v, b.Add(distance, b.Multiply(x, rest)));
  Value positive = b.Maximum(x, Like(b, x, 1));
  Value far = b.Subtract(b.Multiply(x, b.Log(b.Divide(positive, mean))), distance);
  return b.Select(b.Lt(b.Abs(v), Like(b, v, 0.1)), near, far);
}

// log(k!) - (k log(k) - k), of a count.
Value StirlingRemainder(Builder& b, Value k) {
  constexpr double kLarge = 10;
  constexpr double kHalfLogTwoPi = 0.91893853320467274;
  constexpr double kSeries[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680};
  // k! is (k + 10)! through the ten numbers between.
  Value is_small = b.Lt(k, Like(b, k, kLarge));
  Value large = b.Select(is_small, b.Add(k, Like(b, k, kLarge)), k);
  Value inverse = b.Divide(Like(b, k, 1), large);
  Value series = Polynomial(b, b.Multiply(inverse, inverse), kSeries);
  Value log = b.Log(large);
  Value remainder = b.Add(b.Add(Like(b, k, kHalfLogTwoPi), b.Multiply(inverse, series)),
                          b.Multiply(log, Like(b, k, 0.5)));
  Value between = Like(b, k, 1);
  for (double i = 1; i <= kLarge; ++i) between = b.Multiply(between, b.Add(k, Like(b, k, i)));
  Value log_k = b.Log(b.Maximum(k, Like(b, k, 1)));
  Value formula = b.Subtract(b.Multiply(large, log), b.Multiply(k, log_k));
  Value small =
      b.Subtract(b.Add(remainder, b.Subtract(formula, Like(b, k, kLarge))), b.Log(between));
  return b.Select(is_small, small, remainder);
}

// An attempt of Hörmann's transformed rejection, 1993: two uniform numbers, of which the first
// makes a count around `middle` by the shape (a, b) of a hat, and the second is held against the
// count's probability.
struct Candidate {
  Value count;
  Value edge;     // how far the first number is from the nearer end of its interval
  Value height;   // the second number, of (0, 1]
  Value density;  // the hat's, by which its height is scaled
};

Candidate Transform(Builder& r, Source& source, Value a, Value b, Value middle) {
  auto number = [&](double x) { return Like(r, middle, x); };
  Value place = r.Subtract(source.Uniform(), number(0.5));
  Value height = r.Subtract(number(1), source.Uniform());
  Value edge = r.Subtract(number(0.5), r.Abs(place));
  Value slope = r.Add(r.Divide(r.Multiply(a, number(2)), edge), b);
  Value count = r.Unary(Opcode::kFloor, r.Add(r.Multiply(slope, place), middle));
  Value density = r.Add(r.Divide(a, r.Multiply(edge, edge)), b);
  return {count, edge, height, density};
}

// Most candidates are inside, where no probability has to be known.
Value IsInside(Builder& r, const Candidate& candidate, Value lowest_hat) {
  return r.And(r.Ge(candidate.edge, Like(r, candidate.edge, 0.07)),
               r.Le(candidate.height, lowest_hat));
}

Value IsUnderProbability(Builder& r, const Candidate& candidate, Value scale,
                         Value log_probability) {
  Value height = r.Divide(r.Multiply(candidate.height, scale), candidate.density);
  return r.Le(r.Log(height), log_probability);
}

// c + x / y.
Value ConstantPlusQuotient(Builder& r, double c, double x, Value y) {
  return r.Add(Like(r, y, c), r.Divide(Like(r, y, x), y));
}
// c + x y.
Value ConstantPlusMultiple(Builder& r, double c, double x, Value y) {
  return r.Add(Like(r, y, c), r.Multiply(Like(r, y, x), y));
}

Attempt AttemptPoisson(Builder& r, Source& source, const Values& parameters) {
  Value mean = parameters[0];
  Value b = ConstantPlusMultiple(r, 0.931, 2.53, r.Sqrt(mean));
  Value a = ConstantPlusMultiple(r, -0.059, 0.02483, b);
  Value scale = ConstantPlusQuotient(r, 1.1239, 1.1328, r.Subtract(b, Like(r, b, 3.4)));
  Value lowest_hat = ConstantPlusQuotient(r, 0.9277, -3.6224, r.Subtract(b, Like(r, b, 2)));
  Candidate c = Transform(r, source, a, b, r.Add(mean, Like(r, mean, 0.43)));
  Value zero = Like(r, mean, 0);
  Value k = r.Maximum(c.count, zero);
  Value log_probability = r.Negate(r.Add(Deviance(r, k, mean), StirlingRemainder(r, k)));
  Value is_possible =
      r.And(r.Ge(c.count, zero), r.Or(r.Ge(c.edge, Like(r, mean, 0.013)), r.Le(c.height, c.edge)));
  Value is_below = r.And(is_possible, IsUnderProbability(r, c, scale, log_probability));
  return {c.count, r.Or(IsInside(r, c, lowest_hat), is_below)};
}

// Where the mean is no number that counts are drawn for, it is the result.
Value Poisson(Builder& b, Value state, Value rate) {
  if (ChecksValues(b)) {
    Value is_wrong = b.Not(b.Ge(rate, Like(b, rate, 0)));
    CheckNone(b, is_wrong,
              {kRuntimeError, "invalid Poisson rate, expected rate to be non-negative"});
  }
  Value mean = b.Convert(rate, ElementType::kF64);
  Value is_small = b.Lt(mean, Like(b, mean, kLargeMean));
  Value is_large = b.And(b.Not(is_small), b.Unary(Opcode::kIsFinite, mean));
  Value small = ZeroUnless(b, is_small, mean);
  Source source(b, state, mean);
  Value passed =
      PassedProbabilities(b, source.Uniform(), b.Exp(b.Negate(small)), small, Like(b, mean, 0));
  Value otherwise = b.Select(is_small, passed, b.Unary(Opcode::kFloor, mean));
  Value drawn =
      FirstAccepted(b, "poisson", source.state(), is_large, otherwise, {mean}, AttemptPoisson);
  return b.Convert(drawn, rate->element_type());
}

// Of k and of n - k, in which alone the probabilities of a binomial distribution differ.
Value LogImprobability(Builder& b, Value k, Value n, Value mean, Value mean_of_others) {
  Value others = b.Subtract(n, k);
  return b.Add(b.Add(Deviance(b, k, mean), Deviance(b, others, mean_of_others)),
               b.Add(StirlingRemainder(b, k), StirlingRemainder(b, others)));
}

Attempt AttemptBinomial(Builder& r, Source& source, const Values& parameters) {
  Value n = parameters[0], p = parameters[1], one = Like(r, n, 1);
  Value mean = r.Multiply(n, p), rest = r.Subtract(one, p);
  Value deviation = r.Sqrt(r.Multiply(mean, rest));
  Value b = ConstantPlusMultiple(r, 1.15, 2.53, deviation);
  Value a = r.Add(ConstantPlusMultiple(r, -0.0873, 0.0248, b), r.Multiply(p, Like(r, p, 0.01)));
  Value scale = r.Multiply(ConstantPlusQuotient(r, 2.83, 5.1, b), deviation);
  Value mode = r.Unary(Opcode::kFloor, r.Multiply(r.Add(n, one), p));
  Candidate c = Transform(r, source, a, b, r.Add(mean, Like(r, mean, 0.5)));
  Value is_possible = r.And(r.Ge(c.count, Like(r, n, 0)), r.Le(c.count, n));
  Value k = r.Select(is_possible, c.count, mode);
  // Relative to the mode's.
  Value mean_of_others = r.Multiply(n, rest);
  Value log_probability = r.Subtract(LogImprobability(r, mode, n, mean, mean_of_others),
                                     LogImprobability(r, k, n, mean, mean_of_others));
  Value is_accepted = r.Or(IsInside(r, c, ConstantPlusQuotient(r, 0.92, -4.2, b)),
                           IsUnderProbability(r, c, scale, log_probability));
  return {c.count, r.And(is_possible, is_accepted)};
}

// Of p up to 1/2.
Value BinomialOfLess(Builder& b, Value state, Value n, Value p) {
  Value mean = b.Multiply(n, p);
  Value is_large = b.And(b.Ge(mean, Like(b, mean, kLargeMean)), b.Unary(Opcode::kIsFinite, mean));
  Value is_small = b.Not(is_large);
  Value small_n = ZeroUnless(b, is_small, n), small_p = ZeroUnless(b, is_small, p);
  Value first = b.Exp(b.Multiply(small_n, b.Unary(Opcode::kLogPlusOne, b.Negate(small_p))));
  Value odds = b.Divide(small_p, b.Subtract(Like(b, p, 1), small_p));
  Source source(b, state, n);
  Value passed = PassedProbabilities(b, source.Uniform(), first, b.Multiply(small_n, odds), odds);
  return FirstAccepted(b, "binomial", source.state(), is_large, b.Minimum(passed, n), {n, p},
                       AttemptBinomial);
}

Value Binomial(Builder& b, Value state, Value count, Value probability) {
  auto [n, p] =
      Broadcast(b, b.Convert(count, ElementType::kF64), b.Convert(probability, ElementType::kF64));
  n = b.Unary(Opcode::kFloor, b.Maximum(n, Like(b, n, 0)));
  Value is_nan = b.Ne(p, p);
  Value is_flipped = b.Gt(p, Like(b, p, 0.5));
  Value less = b.Select(is_flipped, b.Subtract(Like(b, p, 1), p), p);
  Value drawn = BinomialOfLess(b, state, n, b.Maximum(less, Like(b, p, 0)));
  drawn = b.Select(is_flipped, b.Subtract(n, drawn), drawn);
  Value is_finite = b.Unary(Opcode::kIsFinite, n);
  drawn = b.Select(b.Or(is_finite, b.Le(p, Like(b, p, 0))), drawn, n);
  return b.Convert(b.Select(is_nan, Like(b, p, kNaN), drawn), count->element_type());
}

// --- Registration

using OptionalGenerator = std::optional<at::Generator>;

template <auto f>
at::Tensor DrawLike(const char* kernel, const at::Tensor& x, const OptionalGenerator& generator) {
  CheckKernel(x.is_floating_point(), kernel, x.scalar_type());
  return Record<f>(RandomState(generator, x.device()), x);
}

at::Tensor PoissonLike(const at::Tensor& rate, OptionalGenerator generator) {
  return DrawLike<&Poisson>("poisson_cpu", rate, generator);
}
at::Tensor GammaLike(const at::Tensor& shape, OptionalGenerator generator) {
  return DrawLike<&StandardGamma>("gamma_cpu", shape, generator);
}
at::Tensor DirichletLike(const at::Tensor& concentration, OptionalGenerator generator) {
  return DrawLike<&Dirichlet>("dirichlet", concentration, generator);
}
at::Tensor BinomialLike(const at::Tensor& count, const at::Tensor& probability,
                        OptionalGenerator generator) {
  TORCH_CHECK_VALUE(
      count.is_floating_point(),
      "binomial only supports floating-point dtypes for count, got: ", count.scalar_type());
  TORCH_CHECK_VALUE(
      probability.is_floating_point(),
      "binomial only supports floating-point dtypes for prob, got: ", probability.scalar_type());
  TORCH_CHECK(count.scalar_type() == probability.scalar_type(), "Found dtype ",
              probability.scalar_type(), " but expected ", count.scalar_type());
  return Record<&Binomial>(RandomState(generator, count.device()), count, probability);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunByEvaluator<&Poisson>();
  RunByEvaluator<&StandardGamma>();
  RunByEvaluator<&Dirichlet>();
  RunByEvaluator<&Binomial>();
  m.impl("poisson", &PoissonLike);
  m.impl("_standard_gamma", &GammaLike);
  m.impl("_sample_dirichlet", &DirichletLike);
  m.impl("binomial", &BinomialLike);
}

}  // namespace torch_xla
