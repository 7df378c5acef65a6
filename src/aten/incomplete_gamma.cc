// The regularized incomplete gamma functions: below and up to a by the series of the lower one,
// above by the continued fraction of the upper one (DLMF 8.7.1 and 8.9.2), both in f64 until an
// element does not change any more by what its type shows. Of a large `a`, where they would take a
// step for each of its square root's units, by Temme's uniform expansion (DLMF 8.12).
#include <numbers>

#include "aten/elementwise.h"
#include "aten/iteration.h"
#include "aten/op.h"
#include "aten/polynomial.h"
#include "aten/special.h"

namespace torch_xla {
namespace {

// Then a loop ends, whatever still changes.
constexpr double kMostTerms = 4000;

// The change of a number, relative to it, that its type does not show.
double Unseen(ElementType type) { return type == ElementType::kF64 ? 1.11e-16 : 1e-11; }

// x^a exp(-x) / gamma(of).
Value Factor(Builder& b, Value a, Value x, Value of) {
  Value exponent = b.Subtract(b.Subtract(b.Multiply(a, b.Log(x)), x), Lgamma(b, of));
  return b.Exp(exponent);
}

// The sum of x^n / ((a + 1) … (a + n)), over a; where it is not wanted, anything. a gamma(a) is
// gamma(a + 1): of the smallest numbers gamma(a) is beyond all others.
Value LowerSeries(Builder& b, Value a, Value x, Value is_wanted, double unseen) {
  Value one = Like(b, x, 1), zero = Like(b, x, 0);
  Values sums = EachWhile(
      b, "lower_series", {zero, b.Select(is_wanted, one, zero), one, a, x},
      [=](Builder& r, const Values& p) {
        Value changes = r.Gt(p[1], r.Multiply(p[2], Like(r, p[2], unseen)));
        return r.And(changes, r.Lt(p[0], Like(r, p[0], kMostTerms)));
      },
      [](Builder& r, const Values& p) -> Values {
        Value k = r.Add(p[0], Like(r, p[0], 1));
        Value term = r.Divide(r.Multiply(p[1], p[4]), r.Add(p[3], k));
        return {k, term, r.Add(p[2], term), p[3], p[4]};
      });
  return b.Multiply(sums[2], Factor(b, a, x, b.Add(a, one)));
}

// Lentz' method for 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - …))); where
// it is not wanted, anything.
Value UpperFraction(Builder& b, Value a, Value x, Value is_wanted, double unseen) {
  constexpr double kTiny = 1e-300;
  Value one = Like(b, x, 1);
  Value d = b.Divide(one, b.Subtract(b.Add(x, one), a));
  // The last factor, which is far from one at first.
  Value delta = b.Select(is_wanted, Like(b, x, 2), one);
  Values state = EachWhile(
      b, "upper_fraction", {Like(b, x, 0), Like(b, x, 1 / kTiny), d, d, delta, a, x},
      [=](Builder& r, const Values& p) {
        Value error = r.Abs(r.Subtract(p[4], Like(r, p[4], 1)));
        Value changes = r.Gt(error, Like(r, error, 2 * unseen));
        return r.And(changes, r.Lt(p[0], Like(r, p[0], kMostTerms)));
      },
      [=](Builder& r, const Values& p) -> Values {
        Value unit = Like(r, p[0], 1), tiny = Like(r, p[0], kTiny);
        Value k = r.Add(p[0], unit);
        Value numerator = r.Multiply(k, r.Subtract(p[5], k));
        Value denominator = r.Add(r.Subtract(r.Add(p[6], unit), p[5]), r.Add(k, k));
        auto nonzero = [&](Value v) { return r.Select(r.Lt(r.Abs(v), tiny), tiny, v); };
        Value next_d = r.Divide(unit, nonzero(r.Add(r.Multiply(numerator, p[2]), denominator)));
        Value next_c = nonzero(r.Add(denominator, r.Divide(numerator, p[1])));
        Value factor = r.Multiply(next_c, next_d);
        return {k, next_c, next_d, r.Multiply(p[3], factor), factor, p[5], p[6]};
      });
  return b.Multiply(state[3], Factor(b, a, x, a));
}

// From here on two terms of the expansion are enough.
constexpr double kLargeA = 1e5;

// The upper function is erfc(eta sqrt(a / 2)) / 2 + R, the lower one erfc(-eta sqrt(a / 2)) / 2 -
// R, R = exp(-a eta² / 2) / sqrt(2 pi a) (c0 + c1 / a + …), with eta² / 2 = mu - log(1 + mu) for mu
// = x / a - 1, and c0 = 1 / mu - 1 / eta.
Value UniformExpansion(Builder& b, Value a, Value x, bool upper) {
  constexpr double kC1 = -1.0 / 540;  // for eta = 0: elsewhere the next digit is not seen
  // eta = mu ratio, ratio² = 1 + mu slope: the slope's series in mu has no difference of equals.
  constexpr double kSlope[] = {-2.0 / 3,  1.0 / 2,  -2.0 / 5, 1.0 / 3,   -2.0 / 7,
                               1.0 / 4,   -2.0 / 9, 1.0 / 5,  -2.0 / 11, 1.0 / 6,
                               -2.0 / 13, 1.0 / 7,  -2.0 / 15};
  Value one = Like(b, x, 1), two = Like(b, x, 2), half = Like(b, x, 0.5);
  // Beyond 1000 one of the functions is zero.
  Value mu = b.Minimum(b.Divide(b.Subtract(x, a), a), Like(b, x, 1000));
  Value is_near = b.Lt(b.Abs(mu), Like(b, x, 0.05));
  Value near_slope = Polynomial(b, mu, kSlope);
  Value near_ratio = b.Sqrt(b.Add(one, b.Multiply(mu, near_slope)));
  Value log = b.Unary(Opcode::kLogPlusOne, mu);
  Value far_eta = b.Sqrt(b.Multiply(two, b.Subtract(mu, log)));
  Value eta = b.Select(is_near, b.Multiply(mu, near_ratio), CopySignFrom(b, far_eta, mu));
  Value near_c0 = b.Divide(near_slope, b.Multiply(near_ratio, b.Add(near_ratio, one)));
  Value far_c0 = b.Subtract(b.Divide(one, mu), b.Divide(one, eta));
  Value series = b.Add(b.Select(is_near, near_c0, far_c0), b.Divide(Like(b, x, kC1), a));
  Value root = b.Multiply(eta, b.Sqrt(b.Multiply(half, a)));
  Value size = b.Divide(b.Exp(b.Negate(b.Multiply(root, root))),
                        b.Sqrt(b.Multiply(Like(b, x, 2 * std::numbers::pi), a)));
  Value rest = b.Multiply(size, series);
  Value main = b.Multiply(half, Erfc(b, upper ? root : b.Negate(root)));
  return upper ? b.Add(main, rest) : b.Subtract(main, rest);
}

// The lower function, or the upper one. They add up to 1; the smaller one is computed.
Value IncompleteGamma(Builder& b, Value a, Value x, bool upper) {
  ElementType type = a->element_type();
  a = b.Convert(a, ElementType::kF64), x = b.Convert(x, ElementType::kF64);
  Value zero = Like(b, x, 0), one = Like(b, x, 1), infinity = Like(b, x, kInfinity);
  Value is_inside =
      b.And(b.And(b.Gt(a, zero), b.Lt(a, infinity)), b.And(b.Gt(x, zero), b.Lt(x, infinity)));
  Value is_above = b.And(b.Gt(x, one), b.Gt(x, a));
  const double unseen = Unseen(type);
  Value is_large = b.Gt(a, Like(b, a, kLargeA));
  Value takes_loop = b.And(is_inside, b.Not(is_large));
  // Rounded it may be more than 1, and the upper function less than nothing.
  Value series = LowerSeries(b, a, x, b.And(takes_loop, b.Not(is_above)), unseen);
  Value low = b.Minimum(series, one);
  Value high = UpperFraction(b, a, x, b.And(takes_loop, is_above), unseen);
  Value result = upper ? b.Select(is_above, high, b.Subtract(one, low))
                       : b.Select(is_above, b.Subtract(one, high), low);
  result = b.Select(is_large, UniformExpansion(b, a, x, upper), result);
  // At the edges one function is 0 and the other 1; where both arguments are, neither is defined.
  Value is_all = b.Or(b.Eq(a, zero), b.Eq(x, infinity));
  Value edge = b.Convert(upper ? b.Not(is_all) : is_all, ElementType::kF64);
  Value is_undefined = b.Not(b.And(b.Ge(a, zero), b.Ge(x, zero)));
  is_undefined = b.Or(is_undefined, b.And(b.Eq(a, zero), b.Eq(x, zero)));
  is_undefined = b.Or(is_undefined, b.And(b.Eq(a, infinity), b.Eq(x, infinity)));
  result = b.Select(is_inside, result, edge);
  return b.Convert(b.Select(is_undefined, Like(b, x, kNaN), result), type);
}

template <bool upper>
Value IncompleteGammaOf(Builder& b, Value a, Value x) {
  return IncompleteGamma(b, a, x, upper);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RegisterElementwise<&IncompleteGammaOf<false>, Promotion::kToFloat>(m, "igamma");
  RegisterElementwise<&IncompleteGammaOf<true>, Promotion::kToFloat>(m, "igammac");
}

}  // namespace torch_xla
