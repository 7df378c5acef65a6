#include "aten/special.h"

#include <cmath>
#include <numbers>
#include <optional>
#include <span>

#include "aten/iteration.h"
#include "aten/polynomial.h"

namespace torch_xla {
namespace {

// Coefficients of Chebyshev series (first kind, c0 not doubled) and rational functions, fitted in
// 40-digit arithmetic.
//
// (exp(x^2) erfc(x) (1 + 2x) - 1) / (1 + t), x >= 0, in t = (x - 3) / (x + 3).
constexpr double kErfcx[] = {
    0.45798474089045353,     -0.56084433338778697,    0.21642699407389823,
    -0.059560661605693673,   0.011427380252375556,    -0.0012472923147478535,
    -2.5943499954425574e-5,  3.2072972546075263e-5,   -2.8790060913817684e-6,
    -6.3189463519838463e-7,  1.2833822996655474e-7,   1.3713617182307737e-8,
    -4.7688974546683546e-9,  -4.044852252938217e-10,  1.7882980565927002e-10,
    1.7624031576499554e-11,  -6.8457198928793354e-12, -9.8115983749393675e-13,
    2.5335943907338728e-13,  5.8595973627564199e-14,  -7.8613462649764282e-15,
    -3.4047696067165654e-15, 9.4998003224212662e-17,  1.8079786222251691e-16};
// erf(x) / x - 1, |x| <= 1, in x^2, by minimax: to 7e-18.
constexpr double kErfSmall[] = {
    0.12837916709551256,   -0.3761263890318352,    0.11283791670944184,    -0.026866170643111226,
    0.005223977606116573,  -0.0008548325929227223, 0.00012055293574398284, -1.4924712255869537e-05,
    1.644713102415044e-06, -1.620630972606518e-07, 1.3710963588728287e-08, -7.779438207878922e-10};
// exp(x^2) erfc(x), 1 <= x <= 6, in (x - 2) / (x + 2), by minimax: erfc(x) to 2e-17.
constexpr double kErfcTail[] = {
    0.255395676310507,     -0.4271858474139427,   0.24165819424108084,   -0.07897858103669966,
    0.0037328924994126226, 0.006997464509681881,  -0.000847135085323245, -0.000982054476720365,
    4.304485768034592e-05, 0.0001740702854196385, 3.270576576789563e-05, -1.1969067245795526e-05};
// exp(-x) I0(x), 0 <= x <= 8, in t = x / 4 - 1; and times sqrt(x), x >= 8, in t = 16 / x - 1.
constexpr double kI0Small[] = {
    0.33839763720473804,     -0.3046826723431984,     0.17162090152220878,
    -0.094901097048047644,   0.049305284239670708,    -0.023737414805899469,
    0.010546460394594998,    -0.0043243099950505759,  0.0016394756169413358,
    -0.00057637557453858237, 0.00018850288509584166,  -5.7541950100821037e-5,
    1.6448448070728897e-5,   -4.4167383584587506e-6,  1.1173875391201037e-6,
    -2.6707938539406117e-7,  6.0469950225419189e-8,   -1.300025009986248e-8,
    2.6598237246823867e-9,   -5.1897956016352629e-10, 9.6758090353732369e-11,
    -1.7268262914415557e-11, 2.9550526631296398e-12,  -4.8564467831119295e-13,
    7.6761854986049356e-14,  -1.1685332877993452e-14, 1.715391285555133e-15,
    -2.4312798465479547e-16, 3.3307945188222381e-17};
constexpr double kI0Large[] = {
    0.40224520550705442,     0.0033691164782556941,   6.889758346916824e-5,
    2.8913705208347565e-6,   2.0489185894690637e-7,   2.2666689904981781e-8,
    3.3962320257083863e-9,   4.9406023882249696e-10,  1.1889147107846438e-11,
    -3.1499165279632414e-11, -1.3215811840447713e-11, -1.7941785315068061e-12,
    7.1801244513836662e-13,  3.8527783827421427e-13,  1.5400862175214098e-14,
    -4.1505693472872221e-14, -9.5548466988283076e-15, 3.8116806693526224e-15,
    1.7725601330565264e-15,  -3.4254856196772191e-16, -2.8276239805165835e-16,
    3.4612228676974611e-17,  4.46562142029676e-17};
// exp(-x) I1(x) / x and exp(-x) I1(x) sqrt(x), on the same intervals.
constexpr double kI1Small[] = {
    0.12629359322181683,     -0.17641651835783406,    0.1026436586898471,
    -0.052945981208094991,   0.024726449030626517,    -0.010564084894626198,
    0.0041564229443128882,   -0.0015135724506312531,  0.00051228595616857577,
    -0.00016176081582589675, 4.7815651075500542e-5,   -1.3273163656039436e-5,
    3.4702513081376785e-6,   -8.5687202646954547e-7,  2.0032947535521353e-7,
    -4.4450591287963281e-8,  9.3815373864957718e-9,   -1.8872497517228293e-9,
    3.625590281552117e-10,   -6.6634897235020277e-11, 1.1736186298890902e-11,
    -1.9839743977649437e-12, 3.2237933659455747e-13,  -5.0421855047279117e-14,
    7.6006842947354069e-15,  -1.1055969477353863e-15, 1.5536319577362005e-16,
    -2.1114212143581661e-17};
constexpr double kI1Large[] = {
    0.38928811750914006,     -0.0097610974913614684,  -0.00011058893876262372,
    -3.8825648088776904e-6,  -2.5122362378702089e-7,  -2.6314688468895195e-8,
    -3.835380385964237e-9,   -5.5897434621965838e-10, -1.8974958123505412e-11,
    3.2526035830154882e-11,  1.4125807436613781e-11,  2.0356285441470895e-12,
    -7.1985517762459085e-13, -4.0835511110921973e-13, -2.1015418427726643e-14,
    4.2724400167119514e-14,  1.0420276984128803e-14,  -3.8144030724370078e-15,
    -1.8803547755107824e-15, 3.3082023109209283e-16,  2.9626289976459501e-16,
    -3.209525921993424e-17,  -4.6503053684893583e-17};
// erf(x) / x as a rational function of x^2, |x| <= 3.92, to 2e-8: enough for f32.
constexpr double kErf32P[] = {1.1283791461629537,   0.19040217121138226,    0.052748155844700528,
                              0.003765435391228693, 0.00028487914682889784, 2.0501254503519755e-6};
constexpr double kErf32Q[] = {1.0,
                              0.50207227226954593,
                              0.11410733776453589,
                              0.014968849361035535,
                              0.0011624926162196247,
                              3.8091926405522268e-5};
// Lanczos' approximation of the gamma function with g = 7.
constexpr double kLanczos[] = {0.99999999999980993,  676.5203681218851,     -1259.1392167224028,
                               771.32342877765313,   -176.61502916214059,   12.507343278686905,
                               -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
// log(gamma(x)) / ((x - 1) (x - 2)), 0.75 <= x <= 2.5, in t = (x - 1.625) / 0.875.
constexpr double kLgammaNearZeros[] = {
    0.48915941315815784,     -0.12977554826486654,    0.0245354612663626,
    -0.0053539884831720559,  0.0012591174147457092,   -0.00030963225697398395,
    7.8392123306451535e-5,   -2.0254130269358165e-5,  5.3116574381184833e-6,
    -1.408992458253985e-6,   3.771574253839643e-7,    -1.017058277228891e-7,
    2.7595971567540685e-8,   -7.5269540574313326e-9,  2.0623067439794527e-9,
    -5.6728113307484815e-10, 1.565857021462794e-10,   -4.3355828925842587e-11,
    1.2037731393275986e-11,  -3.3506191164439387e-12, 9.347323828257433e-13,
    -2.6130258986614766e-13, 7.3184327408056293e-14,  -2.0532583042329678e-14,
    5.7698074601408302e-15,  -1.6237496932194589e-15, 4.5758352320861805e-16,
    -1.2911408288161564e-16};
// The asymptotic series of digamma: B(2k) / 2k.
constexpr double kDigamma[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                               1.0 / 132, -691.0 / 32760, 1.0 / 12};
// erfinv(x) / x, in w = -log(1 - x^2). Below w = 5 by Giles' approximation.
constexpr double kErfInvCentral[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                     -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                     -0.00417768164,  0.246640727,    1.50140941};
// Above it, in sqrt(w) - 3.5: to 1e-7, up to w = 21.6, which is 1 - |x| = 2^-32.
constexpr double kErfInvTail[] = {
    4.416378556e-05, 2.201908368e-05, -0.0003208069324, 0.0004987061244, -0.0006016756181,
    0.001061246153,  -0.002088654554, 0.003282102571,   1.007371117,     3.335485585};
// In sqrt(w) - 4.5: to 3e-6, up to w = 43.8, which is 1 - |x| = 2^-64.
constexpr double kErfInvFarTail[] = {1.230399701e-05, -2.561228313e-05, -4.446987966e-05,
                                     4.129405717e-05, 0.0002644678233,  -0.0005323961606,
                                     0.0002406825978, 1.010264938,      4.344764412};
// erfinv(x) / x in x^2, |x| < 2^-7: its Taylor series.
constexpr double kErfInvSmall[] = {0.8862269254527579, 0.23201366653465444, 0.12755617530559793,
                                   0.08655212924154751, 0.0649596177453854};
// (-ndtri(p) - r + log(r) / r) r, r = sqrt(-2 log(p)), 6 <= r <= 39, in t = (156 / r - 15) / 11.
constexpr double kNdtriTail[] = {
    -0.94855403271240347,    -0.026347610356443069,   -0.00093286516651030615,
    0.00027682827870638316,  -6.0902123863673755e-5,  1.371580130103377e-5,
    -3.367548173378703e-6,   9.0179736339003902e-7,   -2.5868812023787505e-7,
    7.8216836295382417e-8,   -2.4645641904940789e-8,  8.0275272307330705e-9,
    -2.6867016452686853e-9,  9.1975886177888589e-10,  -3.209346813352291e-10,
    1.1382730446042795e-10,  -4.0945301257986943e-11, 1.4911166120551026e-11,
    -5.4894625051655041e-12, 2.0404558396378245e-12,  -7.6499243195138669e-13,
    2.8902861417818804e-13,  -1.0996495058086826e-13, 4.2103497131454025e-14,
    -1.6213996503494865e-14, 6.2770883142141372e-15,  -2.4419491164279081e-15,
    9.5424707400904658e-16,  -3.7444232508725513e-16, 1.4749526964760837e-16};

Value CopySign(Builder& b, Value magnitude, Value sign_of) {
  return b.Select(b.Lt(sign_of, Like(b, sign_of, 0)), b.Negate(magnitude), magnitude);
}

// exp(x^2) erfc(x) of finite x >= 0; exactly 1 at 0.
Value ScaledErfcOfFinite(Builder& b, Value x) {
  Value one = Like(b, x, 1);
  Value t = b.Divide(b.Subtract(x, Like(b, x, 3)), b.Add(x, Like(b, x, 3)));
  Value beyond = b.Multiply(b.Add(t, one), ChebyshevSeries(b, t, kErfcx));
  return b.Divide(b.Add(one, beyond), b.Add(b.Add(x, x), one));
}

// The same of x >= 0. Infinity would make t a NaN.
Value ScaledErfcOfPositive(Builder& b, Value x) {
  Value far = b.Divide(Like(b, x, std::numbers::inv_sqrtpi), x);
  return b.Select(b.Gt(x, Like(b, x, 5e7)), far, ScaledErfcOfFinite(b, x));
}

// erfc of x >= 0. From 30 on it is 0 in any type.
Value ErfcOfPositive(Builder& b, Value x) {
  Value near = b.Minimum(x, Like(b, x, 30));
  return b.Multiply(b.Exp(b.Negate(b.Multiply(near, near))), ScaledErfcOfFinite(b, near));
}

Value ErfDouble(Builder& b, Value x) {
  Value magnitude = b.Abs(x), one = Like(b, x, 1), two = Like(b, x, 2);
  Value small = b.Add(x, b.Multiply(x, Polynomial(b, b.Multiply(x, x), kErfSmall)));
  Value near = b.Minimum(magnitude, Like(b, x, 6));  // beyond it is 1
  Value tail = Polynomial(b, b.Divide(b.Subtract(near, two), b.Add(near, two)), kErfcTail);
  Value e = b.Exp(b.Negate(b.Multiply(near, near)));
  Value large = CopySign(b, b.Subtract(one, b.Multiply(e, tail)), x);
  return b.Select(b.Le(magnitude, one), small, large);
}

Value ErfSingle(Builder& b, Value x) {
  Value bounded = b.Clamp(ScalarLike(b, x, -3.92), x, ScalarLike(b, x, 3.92));
  Value square = b.Multiply(bounded, bounded);
  Value quotient =
      b.Divide(b.Multiply(bounded, Polynomial(b, square, kErf32P)), Polynomial(b, square, kErf32Q));
  // Rounding must not take it beyond its limits.
  return b.Clamp(ScalarLike(b, x, -1), quotient, ScalarLike(b, x, 1));
}

// To single precision, which f64 refines.
Value EstimateErfInv(Builder& b, Value x, Value complement) {
  Value rest = b.Subtract(Like(b, x, 2), complement);
  Value w = b.Negate(b.Log(b.Multiply(complement, rest)));
  Value central = Horner(b, b.Subtract(w, Like(b, x, 2.5)), kErfInvCentral);
  Value root = b.Sqrt(w);
  Value tail = x->element_type() == ElementType::kF64
                   ? Horner(b, b.Subtract(root, Like(b, x, 4.5)), kErfInvFarTail)
                   : Horner(b, b.Subtract(root, Like(b, x, 3.5)), kErfInvTail);
  return b.Multiply(x, b.Select(b.Lt(w, Like(b, x, 5)), central, tail));
}

// One step of Halley's iteration for erfc(r) = complement, which keeps its accuracy in the tails.
Value RefineErfInv(Builder& b, Value complement, Value root) {
  Value slope = b.Multiply(Like(b, root, -2 * std::numbers::inv_sqrtpi),
                           b.Exp(b.Negate(b.Multiply(root, root))));
  Value step = b.Divide(b.Subtract(ErfcOfPositive(b, root), complement), slope);
  return b.Subtract(root, b.Divide(step, b.Add(Like(b, root, 1), b.Multiply(root, step))));
}

Value ErfInvDouble(Builder& b, Value x, Value complement) {
  Value magnitude = b.Abs(x);
  Value root = EstimateErfInv(b, magnitude, complement);
  for (int step = 0; step < 2; ++step) root = RefineErfInv(b, complement, root);
  // Where 1 - |x| rounds, x itself says more.
  Value small = b.Multiply(x, Polynomial(b, b.Multiply(x, x), kErfInvSmall));
  return b.Select(b.Lt(magnitude, Like(b, x, 0x1p-7)), small, CopySign(b, root, x));
}

// ndtri of 0 <= p <= exp(-18), in f32 or f64.
Value NdtriTail(Builder& b, Value p) {
  Value r = b.Sqrt(b.Multiply(Like(b, p, -2), b.Log(p)));
  Value inverse = b.Divide(Like(b, p, 1), r);
  Value t = b.Subtract(b.Multiply(inverse, Like(b, p, 156.0 / 11)), Like(b, p, 15.0 / 11));
  std::span<const double> series = kNdtriTail;
  if (p->element_type() != ElementType::kF64) series = series.first(10);
  Value correction = b.Multiply(inverse, b.Subtract(ChebyshevSeries(b, t, series), b.Log(r)));
  // Of infinity the correction is a NaN.
  Value is_end = b.Eq(r, Like(b, p, kInfinity));
  return b.Negate(b.Select(is_end, r, b.Add(r, correction)));
}

// log(gamma(x)) by Lanczos' approximation for x >= 1/2.
Value LgammaByLanczos(Builder& b, Value x) {
  Value z = b.Subtract(x, Like(b, x, 1));
  Value sum = Like(b, x, kLanczos[0]);
  for (int k = 1; k < 9; ++k) {
    sum = b.Add(sum, b.Divide(Like(b, x, kLanczos[k]), b.Add(z, Like(b, x, k))));
  }
  Value t = b.Add(z, Like(b, x, 7.5));
  // log(t) through log1p(z / 7.5), and both large terms together: they cancel near 1 and 2.
  Value log_t =
      b.Add(Like(b, x, std::log(7.5)), b.Unary(Opcode::kLogPlusOne, b.Divide(z, Like(b, x, 7.5))));
  Value power = b.Multiply(b.Subtract(b.Add(z, Like(b, x, 0.5)), b.Divide(t, log_t)), log_t);
  return b.Add(b.Add(Like(b, x, 0.5 * std::log(2 * std::numbers::pi)), power), b.Log(sum));
}

// log(gamma(x)) for x >= 1/2: exact where it is zero, and near there as near as the type allows.
Value LgammaOfPositive(Builder& b, Value x) {
  Value t = b.Divide(b.Subtract(x, Like(b, x, 1.625)), Like(b, x, 0.875));
  std::span<const double> series = kLgammaNearZeros;
  if (x->element_type() != ElementType::kF64) series = series.first(14);
  Value zeros = b.Multiply(b.Subtract(x, Like(b, x, 1)), b.Subtract(x, Like(b, x, 2)));
  // -0 becomes 0, as torch has it.
  Value near_zeros = b.Add(b.Multiply(zeros, ChebyshevSeries(b, t, series)), Like(b, x, 0));
  Value is_near = b.Le(b.Abs(t), Like(b, x, 1));
  return b.Select(is_near, near_zeros, LgammaByLanczos(b, x));
}

// sin(pi x) with the integer part taken off first.
Value AbsSinPi(Builder& b, Value x) {
  Value fraction = b.Subtract(b.Abs(x), b.Unary(Opcode::kFloor, b.Abs(x)));
  Value folded = b.Minimum(fraction, b.Subtract(Like(b, x, 1), fraction));
  return b.Unary(Opcode::kSine, b.Multiply(folded, Like(b, x, std::numbers::pi)));
}

Value LgammaFloat(Builder& b, Value x) {
  Value reflect = b.Lt(x, Like(b, x, 0.5));
  Value positive = b.Select(reflect, b.Subtract(Like(b, x, 1), x), x);
  Value log_gamma = LgammaOfPositive(b, positive);
  // -log|x| next to zero, where the product with pi would be a rounded denormal number.
  Value magnitude = b.Abs(x);
  Value is_tiny = b.Lt(magnitude, Like(b, x, 0x1p-60));
  Value log = b.Log(b.Select(is_tiny, magnitude, AbsSinPi(b, x)));
  Value rest = b.Subtract(Like(b, x, std::log(std::numbers::pi)), log_gamma);
  Value reflected = b.Subtract(b.Select(is_tiny, Like(b, x, 0), rest), log);
  Value result = b.Select(reflect, reflected, log_gamma);
  // At a pole log_gamma may be infinite, too.
  Value is_pole = b.And(reflect, b.Eq(x, b.Unary(Opcode::kFloor, x)));
  Value is_infinite = b.Or(is_pole, b.Eq(magnitude, Like(b, x, kInfinity)));
  return b.Select(is_infinite, Like(b, x, kInfinity), result);
}

// digamma of x > 0: ten steps of its recurrence where the asymptotic series is not good yet. Their
// sum of 1 / (x + k) is taken in pairs of equal sums, k and 9 - k, with one division for each.
Value DigammaOfPositive(Builder& b, Value x) {
  Value is_small = b.Lt(x, Like(b, x, 10));
  Value nine = Like(b, x, 9);
  Value sum = b.Add(b.Add(x, x), nine), product = b.Multiply(x, b.Add(x, nine));
  Value correction = b.Divide(sum, product);
  for (int k = 1; k < 5; ++k) {
    Value both = b.Add(product, Like(b, x, k * (9 - k)));
    correction = b.Add(correction, b.Divide(sum, both));
  }
  Value z = b.Select(is_small, b.Add(x, Like(b, x, 10)), x);
  Value inverse = b.Divide(Like(b, x, 1), z);
  Value square = b.Multiply(inverse, inverse);
  Value series = b.Multiply(square, Polynomial(b, square, kDigamma));
  Value result = b.Subtract(b.Subtract(b.Log(z), b.Multiply(Like(b, x, 0.5), inverse)), series);
  return b.Select(is_small, b.Subtract(result, correction), result);
}

Value DigammaFloat(Builder& b, Value x) {
  Value zero = Like(b, x, 0);
  Value reflect = b.Lt(x, Like(b, x, 0));
  Value positive = DigammaOfPositive(b, b.Select(reflect, b.Subtract(Like(b, x, 1), x), x));
  Value pi = Like(b, x, std::numbers::pi);
  // From the nearest whole number: near a pole a remainder next to 1 would have lost its digits.
  Value remainder = b.Subtract(x, b.Unary(Opcode::kRoundNearestEven, x));
  Value cotangent = b.Divide(pi, b.Unary(Opcode::kTan, b.Multiply(pi, remainder)));
  Value result = b.Select(reflect, b.Subtract(positive, cotangent), positive);
  Value is_pole = b.And(reflect, b.Eq(remainder, zero));
  result = b.Select(is_pole, Like(b, x, kNaN), result);
  // -1/x is minus infinity at 0 and plus infinity at -0.
  return b.Select(b.Eq(x, zero), b.Divide(Like(b, x, -1), x), result);
}

// The Euler-Maclaurin series' coefficients B(2k) / (2k)!.
constexpr double kEulerMaclaurin[] = {1.0 / 12,          -1.0 / 720,
                                      1.0 / 30240,       -1.0 / 1209600,
                                      1.0 / 47900160,    -691.0 / 1307674368000,
                                      1.0 / 74724249600, -3617.0 / 10670622842880000};

// base^-s, or base^(1 - s) where that is the sum's integral, which is a number longer. Small whole
// exponents that are known take multiplications, of the reciprocal: a large base's powers overflow.
struct NegativePower {
  std::optional<int64_t> known = std::nullopt;

  Value operator()(Builder& b, Value base, Value s) const {
    constexpr int64_t kMost = 8;
    return known && *known <= kMost ? Reciprocals(b, base, *known) : b.Power(base, b.Negate(s));
  }
  // `power`: of the same.
  Value Integral(Builder& b, Value base, Value power) const {
    return known == 2 ? Reciprocals(b, base, 1) : b.Multiply(power, base);
  }

 private:
  static Value Reciprocals(Builder& b, Value base, int64_t count) {
    Value reciprocal = b.Divide(Like(b, base, 1), base), power = reciprocal;
    for (int64_t i = 1; i < count; ++i) power = b.Multiply(power, reciprocal);
    return power;
  }
};

// The sum of (q + k)^-s over all k >= 0 with q + k <= 9 that are left after the first nine: only
// where q is negative. Adds to `sum` and moves `last`, the last base.
void SumFromNegative(Builder& b, Value s, const NegativePower& power, Value& last, Value& sum) {
  Value nine = Like(b, last, 9), one = Like(b, last, 1);
  Value steps =
      b.Maximum(b.Add(b.Unary(Opcode::kFloor, b.Subtract(nine, last)), one), Like(b, last, 0));
  sum = EachWhile(
      b, "zeta", {last, sum, s},
      [](Builder& r, const Values& p) { return r.Le(p[0], Like(r, p[0], 9)); },
      [&](Builder& r, const Values& p) -> Values {
        Value base = r.Add(p[0], Like(r, p[0], 1));
        return {base, r.Add(p[1], power(r, base, p[2])), p[2]};
      })[1];
  last = b.Add(last, steps);
}

// Hurwitz' zeta function: some terms, then the Euler-Maclaurin series.
Value HurwitzZeta(Builder& b, Value s, Value q, const NegativePower& power, bool may_be_negative) {
  Value one = Like(b, q, 1);
  Value sum = power(b, q, s), last = q;
  for (int k = 1; k <= 9; ++k) {
    last = b.Add(q, Like(b, q, k));
    sum = b.Add(sum, power(b, last, s));
  }
  if (may_be_negative) SumFromNegative(b, s, power, last, sum);
  Value term = power(b, last, s);
  sum = b.Add(sum, b.Divide(power.Integral(b, last, term), b.Subtract(s, one)));
  sum = b.Subtract(sum, b.Multiply(term, Like(b, q, 0.5)));
  // Beyond this `term` is zero, of which infinity times would be none.
  Value bounded = b.Minimum(s, Like(b, s, 1e4));
  Value rising = bounded;
  Value inverse = b.Divide(one, last);
  Value rest = b.Multiply(term, inverse);
  Value square = b.Multiply(inverse, inverse);
  for (int k = 0; k < static_cast<int>(std::size(kEulerMaclaurin)); ++k) {
    sum = b.Add(sum, b.Multiply(b.Multiply(rest, rising), Like(b, q, kEulerMaclaurin[k])));
    rising = b.Multiply(rising, b.Multiply(b.Add(bounded, Like(b, s, 2 * k + 1)),
                                           b.Add(bounded, Like(b, s, 2 * k + 2))));
    rest = b.Multiply(rest, square);
  }
  // The first terms alone where the others are too small to be numbers.
  return sum;
}

// pi^2 / sin^2(pi x) - trigamma(1 - x) left of 1/2.
Value Trigamma(Builder& b, Value x) {
  Value reflect = b.Lt(x, Like(b, x, 0.5));
  Value bounded = b.Select(reflect, b.Subtract(Like(b, x, 1), x), x);
  Value positive = HurwitzZeta(b, Like(b, x, 2), bounded, NegativePower{2}, false);
  Value sine = AbsSinPi(b, x);
  Value pole = b.Divide(Like(b, x, std::numbers::pi * std::numbers::pi), b.Multiply(sine, sine));
  Value result = b.Select(reflect, b.Subtract(pole, positive), positive);
  return b.Select(b.Eq(x, Like(b, x, kInfinity)), Like(b, x, 0), result);
}

// A series on [0, 8] and one of the reciprocal beyond, of |x|.
Value ScaledBessel(Builder& b, Value magnitude, std::span<const double> small,
                   std::span<const double> large, bool times_x) {
  Value one = Like(b, magnitude, 1);
  Value near = b.Subtract(b.Multiply(magnitude, Like(b, magnitude, 0.25)), one);
  Value central = ChebyshevSeries(b, near, small);
  if (times_x) central = b.Multiply(central, magnitude);
  Value far = b.Subtract(b.Divide(Like(b, magnitude, 16), magnitude), one);
  Value tail = b.Divide(ChebyshevSeries(b, far, large), b.Sqrt(magnitude));
  return b.Select(b.Le(magnitude, Like(b, magnitude, 8)), central, tail);
}

}  // namespace

Value Erf(Builder& b, Value x) {
  if (x->element_type() == ElementType::kF64) return ErfDouble(b, x);
  return InAccumulationType(b, x, [&](Value v) { return ErfSingle(b, v); });
}

Value Erfc(Builder& b, Value x) {
  return InAccumulationType(b, x, [&](Value v) {
    Value positive = ErfcOfPositive(b, b.Abs(v));
    Value reflected = b.Subtract(Like(b, v, 2), positive);
    return b.Select(b.Lt(v, Like(b, v, 0)), reflected, positive);
  });
}

Value Erfcx(Builder& b, Value x) {
  return InAccumulationType(b, x, [&](Value v) {
    Value magnitude = b.Abs(v);
    Value positive = ScaledErfcOfPositive(b, magnitude);
    Value square = b.Exp(b.Multiply(v, v));
    Value reflected = b.Subtract(b.Add(square, square), positive);
    return b.Select(b.Lt(v, Like(b, v, 0)), reflected, positive);
  });
}

Value ErfInvInside(Builder& b, Value x, Value complement) {
  return x->element_type() == ElementType::kF64 ? ErfInvDouble(b, x, complement)
                                                : EstimateErfInv(b, x, complement);
}

Value ErfInv(Builder& b, Value x) {
  return InAccumulationType(b, x, [&](Value v) {
    Value complement = b.Subtract(Like(b, v, 1), b.Abs(v));
    Value is_end = b.Eq(complement, Like(b, v, 0));
    return b.Select(is_end, b.Multiply(v, Like(b, v, kInfinity)), ErfInvInside(b, v, complement));
  });
}

Value Lgamma(Builder& b, Value x) {
  return InAccumulationType(b, x, [&](Value v) { return LgammaFloat(b, v); });
}

Value Digamma(Builder& b, Value x) {
  return InAccumulationType(b, x, [&](Value v) { return DigammaFloat(b, v); });
}

namespace {

Value ZetaBy(Builder& b, Value s, Value q, const NegativePower& power) {
  ElementType type = q->element_type();
  s = b.Convert(s, ElementType::kF64), q = b.Convert(q, ElementType::kF64);
  auto is_whole = [&](Value v) { return b.Eq(v, b.Unary(Opcode::kFloor, v)); };
  Value one = Like(b, s, 1);
  Value not_positive = b.Le(q, Like(b, q, 0));
  Value is_pole = b.Or(b.Eq(s, one), b.And(not_positive, is_whole(q)));
  Value is_undefined =
      b.Or(b.Lt(s, one), b.And(not_positive, b.And(b.Not(is_whole(q)), b.Not(is_whole(s)))));
  // Where there is nothing to sum, nothing is.
  Value excluded = b.Or(is_pole, is_undefined);
  Value sum = HurwitzZeta(b, s, b.Select(excluded, one, q), power, true);
  sum = b.Select(is_pole, Like(b, sum, kInfinity), sum);
  sum = b.Select(is_undefined, Like(b, sum, kNaN), sum);
  sum = b.Select(b.And(b.Eq(s, one), b.Not(is_undefined)), Like(b, sum, kInfinity), sum);
  return b.Convert(sum, type);
}

}  // namespace

Value Zeta(Builder& b, Value s, Value q) { return ZetaBy(b, s, q, {}); }

Value Polygamma(Builder& b, int64_t n, Value x) {
  if (n == 0) return Digamma(b, x);
  return InAccumulationType(b, x, [&](Value v) {
    if (n == 1) return Trigamma(b, v);
    double factor = std::tgamma(static_cast<double>(n) + 1) * (n % 2 == 0 ? -1 : 1);
    Value zeta = ZetaBy(b, Like(b, v, static_cast<double>(n) + 1), v, NegativePower{n + 1});
    return b.Multiply(zeta, Like(b, v, factor));
  });
}

Value BesselI0e(Builder& b, Value x) {
  return InAccumulationType(b, x, [&](Value v) {
    Value result = ScaledBessel(b, b.Abs(v), kI0Small, kI0Large, false);
    // Near 1 the series is a rounding away.
    double small = v->element_type() == ElementType::kF64 ? 0x1p-27 : 0x1p-13;
    Value is_small = b.Lt(b.Abs(v), Like(b, v, small));
    return b.Select(is_small, b.Subtract(Like(b, v, 1), b.Abs(v)), result);
  });
}

Value BesselI0(Builder& b, Value x) {
  return InAccumulationType(b, x,
                            [&](Value v) { return b.Multiply(b.Exp(b.Abs(v)), BesselI0e(b, v)); });
}

Value BesselI1e(Builder& b, Value x) {
  return InAccumulationType(b, x, [&](Value v) {
    return CopySign(b, ScaledBessel(b, b.Abs(v), kI1Small, kI1Large, true), v);
  });
}

Value BesselI1(Builder& b, Value x) {
  return InAccumulationType(b, x,
                            [&](Value v) { return b.Multiply(b.Exp(b.Abs(v)), BesselI1e(b, v)); });
}

Value Ndtri(Builder& b, Value x) {
  return InAccumulationType(b, x, [&](Value v) {
    Value one = Like(b, v, 1);
    Value nearest = b.Minimum(v, b.Subtract(one, v));
    Value centered = b.Subtract(b.Add(v, v), one);
    Value inside = ErfInvInside(b, centered, b.Add(nearest, nearest));
    Value result = b.Multiply(Like(b, v, std::numbers::sqrt2), inside);
    result = b.Select(b.Eq(v, one), Like(b, v, kInfinity), result);
    // The tail of a negative number is a NaN.
    return b.Select(b.Lt(v, Like(b, v, 0x1p-26)), NdtriTail(b, v), result);
  });
}

}  // namespace torch_xla
