// Bessel and Airy functions, by the approximations of the Cephes library (S. Moshier, "Methods and
// Programs for Mathematical Functions", 1989): rational functions and Chebyshev series.
#include <cmath>
#include <numbers>
#include <span>

#include "aten/elementwise.h"
#include "aten/op.h"
#include "aten/polynomial.h"
#include "aten/special.h"
#include "aten/twin.h"

namespace torch_xla {
namespace {

// Highest power first. Cephes' divisors have a leading coefficient of 1 besides these, which eager
// leaves out, as we do.
//
// Order 0: amplitudes P and Q beyond 5, J below 5 (its zeros apart), Y less its logarithm.
constexpr double kP0[] = {0.0007969367292973471,
                          0.08283523921074408,
                          1.239533716464143,
                          5.447250030587687,
                          8.74716500199817,
                          5.303240382353949,
                          1.0};
constexpr double kPDivisor0[] = {0.0009244088105588637,
                                 0.08562884743544745,
                                 1.2535274390105895,
                                 5.470977403304171,
                                 8.761908832370695,
                                 5.306052882353947,
                                 1.0};
constexpr double kQ0[] = {-0.011366383889846916, -1.2825271867050931, -19.553954425773597,
                          -93.20601521237683,    -177.68116798048806, -147.07750515495118,
                          -51.41053267665993,    -6.050143506007285};
constexpr double kQDivisor0[] = {64.3178256118178,  856.4300259769806, 3882.4018360540163,
                                 7240.467741956525, 5930.727011873169, 2062.0933166032783,
                                 242.0057402402914};
constexpr double kJ0[] = {-4794432209.782018, 1956174919465.5657, -249248344360967.72,
                          9708622510473064.0};
constexpr double kJ0Divisor[] = {499.563147152651,       173785.4016763747,     48440965.83399621,
                                 11185553704.535683,     2112775201154.892,     310518229857422.56,
                                 3.1812195594320496e+16, 1.7108629408104315e+18};
constexpr double kY0[] = {15592.436785523574,     -14663929.59039716,     5435264770.518765,
                          -982136065717.9115,     87590639439536.7,       -3466283033847297.0,
                          4.4273326857256984e+16, -1.8495080043698668e+16};
constexpr double kY0Divisor[] = {1041.2835366425984,    626107.330137135,   268919633.39381415,
                                 86400248710.3935,      20297961275010.555, 3171577528429750.5,
                                 2.5059625617265306e+17};
// Order 1: amplitudes P and Q beyond 5, J below 5 (its zeros apart), Y less its logarithm.
constexpr double kP1[] = {0.0007621256162081731,
                          0.07313970569409176,
                          1.1271960812968493,
                          5.112079511468076,
                          8.424045901417724,
                          5.214515986823615,
                          1.0};
constexpr double kPDivisor1[] = {0.0005713231280725487,
                                 0.06884559087544954,
                                 1.105142326340617,
                                 5.073863861286015,
                                 8.399855543276042,
                                 5.209828486823619,
                                 1.0};
constexpr double kQ1[] = {0.05108625947501766, 4.982138729512334, 75.82382841325453,
                          366.7796093601508,   710.8563049989261, 597.4896124006136,
                          211.68875710057213,  25.207020585802372};
constexpr double kQDivisor1[] = {74.23732770356752, 1056.4488603826283, 4986.410583376536,
                                 9562.318924047562, 7997.041604473507,  2826.1927851763908,
                                 336.0936078106983};
constexpr double kJ1[] = {-899971225.7055594, 452228297998.19403, -72749424522181.83,
                          3682957328638529.0};
constexpr double kJ1Divisor[] = {620.8364781180543,     256987.25675774884,   83514679.14319493,
                                 22151159547.97925,     4749141220799.914,    784369607876235.9,
                                 8.952223361846274e+16, 5.322786203326801e+18};
constexpr double kY1[] = {1263204747.9017804,  -647355876379.1603,    114509511541823.73,
                          -8127702555013251.0, 2.024394757135949e+17, -7.788771962659501e+17};
constexpr double kY1Divisor[] = {594.3015923461282,     235564.09294306856,    73481194.44597217,
                                 18760131610.870617,    3882312774962.3857,    620557727146953.8,
                                 6.871410873553005e+16, 3.9727060811656064e+18};
// exp(x) K0(x) sqrt(x) and the like, as Chebyshev series.
constexpr double kK0Small[] = {
    -0.2676636966169514,   0.3442898999246285,     0.0359799365153615,    0.001264615411446926,
    2.286212103119452e-05, 2.5347910790261494e-07, 1.904516377220209e-09, 1.0349695257633842e-11,
    4.25981614279661e-14,  1.374465435613523e-16};
constexpr double kK0Large[] = {
    1.2201515410329777,      -0.0314481013119645,    0.0015698838857300533,
    -0.00012849549581627802, 1.39498137188765e-05,   -1.8317555227191195e-06,
    2.766813639445015e-07,   -4.660489897687948e-08, 8.574034017414225e-09,
    -1.69753450938906e-09,   3.577397281400301e-10,  -7.957489244477107e-11,
    1.8559491149547177e-11,  -4.514597883373944e-12, 1.140340588208475e-12,
    -2.9800969231727303e-13, 8.032890775363575e-14,  -2.2275133269916698e-14,
    6.3400764774050706e-15,  -1.848593377343779e-15, 5.512055978524319e-16,
    -1.678231096805412e-16,  5.2103915050390274e-17, -1.6475804301524212e-17,
    5.300433772686263e-18};
constexpr double kK1Small[] = {
    0.7626501136694739,     -0.3531559607765449,     -0.12261118082265715,
    -0.006975723859639864,  -0.0001730288957513052,  -2.4334061415659684e-06,
    -2.213387630734726e-08, -1.4114883926335278e-10, -6.666901694199329e-13,
    -2.427449850519366e-15, -7.023863479386288e-18};
constexpr double kK1Large[] = {
    1.3603130952422213,      0.10392373657681724,     -0.002857816859622779,
    0.00019521551847135162,  -1.936197974166083e-05,  2.406484947837217e-06,
    -3.5019606030878126e-07, 5.7410841254500495e-08,  -1.0345762465678097e-08,
    2.015049755197033e-09,   -4.1903547593418965e-10, 9.218315187605006e-11,
    -2.1299678384275683e-11, 5.13963967348173e-12,    -1.2891739609510289e-12,
    3.3484196660784293e-13,  -8.976705182324994e-14,  2.4771544244813043e-14,
    -7.019837090418314e-15,  2.038703165624334e-15,   -6.057047248373319e-16,
    1.838093544366639e-16,   -5.689462558442859e-17,  1.7940508731475592e-17,
    -5.756744483665017e-18};
constexpr double kAiry[] = {
    0.346538101525629,  12.007595273964581, 76.27960536152345,  168.08922493463058,
    159.75639135016442, 70.53609068404442,  14.026469116338967, 1.0};
constexpr double kAiryDivisor[] = {
    0.5675945326387702, 14.75625625848472, 84.51389701414746,  177.31808814540045,
    164.2346928715297,  71.47784008255756, 14.095913560783403, 1.0};
constexpr double kAiryF[] = {
    -0.1316963234183318,    -0.6264565444319123,    -0.6931580360369335,
    -0.2797799815451191,    -0.04919001326095003,   -0.004062659235948854,
    -0.0001592764962392621, -2.776491081552329e-06, -1.6778769848911465e-08};
constexpr double kAiryFDivisor[] = {
    13.356042070655324,   32.682503279522464,    26.736704094149957,
    9.187074029072596,    1.4752914677166642,    0.11568717379518804,
    0.004402916416152112, 7.547203482874142e-05, 4.5185009297058035e-07};
constexpr double kAiryG[] = {0.01973399320916857,   0.39110302961568827,  1.0657989759959559,
                             0.9391692298166502,    0.35146565610554764,  0.06338889196289255,
                             0.005858041130483885,  0.000282851600836737, 6.98793669997261e-06,
                             8.117892395543892e-08, 3.415517847659236e-10};
constexpr double kAiryGDivisor[] = {
    9.30892908077442,       19.835292871831214,  15.564662893286462,   5.476860694229755,
    0.9542936116189619,     0.08645808263523921, 0.004126565238242226, 0.00010125908511650914,
    1.1716673321441352e-06, 4.9183457006293e-09};

constexpr double kTwoOverPi = 2 * std::numbers::inv_pi;

using Coefficients = std::span<const double>;

Value Ratio(Builder& b, Value x, Coefficients numerator, Coefficients divisor) {
  return b.Divide(Horner(b, x, numerator), Horner(b, x, divisor));
}

Value Scaled(Builder& b, Value x, double factor) { return b.Multiply(x, Like(b, x, factor)); }

// --- Orders 0 and 1 of both kinds

struct Order {
  double phase;
  Coefficients p, p_divisor, q, q_divisor, j, j_divisor, y, y_divisor;
  double first_zero, second_zero;  // squared, of J
};
constexpr Order kOrder0 = {std::numbers::pi / 4,
                           kP0,
                           kPDivisor0,
                           kQ0,
                           kQDivisor0,
                           kJ0,
                           kJ0Divisor,
                           kY0,
                           kY0Divisor,
                           5.78318596294678452118,
                           30.4712623436620863991};
constexpr Order kOrder1 = {3 * std::numbers::pi / 4,
                           kP1,
                           kPDivisor1,
                           kQ1,
                           kQDivisor1,
                           kJ1,
                           kJ1Divisor,
                           kY1,
                           kY1Divisor,
                           14.6819706421238932572,
                           49.2184563216946036703};

// Beyond 5: a wave of slowly changing amplitudes; the second kind is a quarter behind.
Value Wave(Builder& b, Value x, const Order& order, bool second_kind) {
  Value inverse = b.Divide(Like(b, x, 5), x);
  Value square = b.Multiply(inverse, inverse);
  Value p = Ratio(b, square, order.p, order.p_divisor);
  Value q = b.Multiply(inverse, Ratio(b, square, order.q, order.q_divisor));
  Value angle = b.Subtract(x, Like(b, x, order.phase));
  Value sine = b.Unary(Opcode::kSine, angle), cosine = b.Unary(Opcode::kCosine, angle);
  Value sum = second_kind ? b.Add(b.Multiply(p, sine), b.Multiply(q, cosine))
                          : b.Subtract(b.Multiply(p, cosine), b.Multiply(q, sine));
  return b.Divide(Scaled(b, sum, std::sqrt(kTwoOverPi)), b.Sqrt(x));
}

// J below 5, of x squared; order 1 is this times x.
Value NearZero(Builder& b, Value square, const Order& order) {
  Value ratio = Ratio(b, square, order.j, order.j_divisor);
  Value first = b.Subtract(square, Like(b, square, order.first_zero));
  Value second = b.Subtract(square, Like(b, square, order.second_zero));
  return b.Multiply(b.Multiply(first, second), ratio);
}

Value IsNear(Builder& b, Value x) { return b.Le(x, Like(b, x, 5)); }

Value J0(Builder& b, Value x) {
  Value magnitude = b.Abs(x);
  Value near = NearZero(b, b.Multiply(x, x), kOrder0);
  return b.Select(IsNear(b, magnitude), near, Wave(b, magnitude, kOrder0, false));
}

Value J1(Builder& b, Value x) {
  Value magnitude = b.Abs(x);
  Value near = b.Multiply(magnitude, NearZero(b, b.Multiply(x, x), kOrder1));
  Value result = b.Select(IsNear(b, magnitude), near, Wave(b, magnitude, kOrder1, false));
  return b.Select(SignBit(b, x), b.Negate(result), result);
}

// What has a pole at 0 and is real right of it only.
Value RightOfPole(Builder& b, Value x, Value result, double pole) {
  Value zero = Like(b, x, 0);
  result = b.Select(b.Lt(x, zero), Like(b, x, kNaN), result);
  return b.Select(b.Eq(x, zero), Like(b, x, pole), result);
}

Value Y0(Builder& b, Value x) {
  Value near = b.Add(Ratio(b, b.Multiply(x, x), kOrder0.y, kOrder0.y_divisor),
                     Scaled(b, b.Multiply(b.Log(x), J0(b, x)), kTwoOverPi));
  Value result = b.Select(IsNear(b, x), near, Wave(b, x, kOrder0, true));
  return RightOfPole(b, x, result, -kInfinity);
}

Value Y1(Builder& b, Value x) {
  Value regular = b.Multiply(x, Ratio(b, b.Multiply(x, x), kOrder1.y, kOrder1.y_divisor));
  Value singular = b.Subtract(b.Multiply(J1(b, x), b.Log(x)), b.Divide(Like(b, x, 1), x));
  Value near = b.Add(regular, Scaled(b, singular, kTwoOverPi));
  Value result = b.Select(IsNear(b, x), near, Wave(b, x, kOrder1, true));
  return RightOfPole(b, x, result, -kInfinity);
}

// --- Modified, second kind

// exp(x) K(x): up to 2 with the logarithm of the first kind, beyond 2 a series of the reciprocal.
template <int order>
Value ScaledK(Builder& b, Value x) {
  Value half = Scaled(b, x, 0.5), one = Like(b, x, 1);
  Value t = b.Subtract(Scaled(b, b.Multiply(x, x), 0.5), one);
  Value log = b.Log(half);
  Value near =
      order == 0
          ? b.Subtract(ChebyshevSeries(b, t, kK0Small), b.Multiply(log, BesselI0(b, x)))
          : b.Add(b.Multiply(log, BesselI1(b, x)), b.Divide(ChebyshevSeries(b, t, kK1Small), x));
  Value inverse = b.Subtract(b.Divide(Like(b, x, 4), x), one);
  Value far = b.Divide(ChebyshevSeries(b, inverse, order == 0 ? Coefficients(kK0Large) : kK1Large),
                       b.Sqrt(x));
  Value result = b.Select(b.Le(x, Like(b, x, 2)), b.Multiply(near, b.Exp(x)), far);
  return RightOfPole(b, x, result, kInfinity);
}

template <int order>
Value K(Builder& b, Value x) {
  Value result = b.Multiply(ScaledK<order>(b, x), b.Exp(b.Negate(x)));
  return RightOfPole(b, x, result, kInfinity);
}

// --- Others

Value SphericalJ0(Builder& b, Value x) {
  constexpr double kSeries[] = {1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040,
                                1.0 / 120,        -1.0 / 6,        1.0};
  Value near = Horner(b, b.Multiply(x, x), kSeries);
  Value far = b.Divide(b.Unary(Opcode::kSine, x), x);
  Value magnitude = b.Abs(x);
  Value result = b.Select(b.Lt(magnitude, Like(b, x, 0.5)), near, far);
  return b.Select(b.Eq(magnitude, Like(b, x, kInfinity)), Like(b, x, 0), result);
}

// Taylor's series, good below 2.09 in magnitude.
Value AiryNearZero(Builder& b, Value x) {
  constexpr double kValue = 0.355028053887817239260, kSlope = 0.258819403792806798405;
  constexpr int kTerms = 16;
  double f[kTerms], g[kTerms];
  f[0] = g[0] = 1;
  for (int k = 1; k < kTerms; ++k) {
    f[k] = f[k - 1] / ((3.0 * k - 1) * (3.0 * k));
    g[k] = g[k - 1] / ((3.0 * k) * (3.0 * k + 1));
  }
  Value cube = b.Multiply(b.Multiply(x, x), x);
  Value even = Polynomial(b, cube, f);
  Value odd = b.Multiply(x, Polynomial(b, cube, g));
  return b.Subtract(Scaled(b, even, kValue), Scaled(b, odd, kSlope));
}

Value AiryAi(Builder& b, Value x) {
  Value magnitude = b.Abs(x);
  Value root = b.Sqrt(magnitude), one = Like(b, x, 1);
  Value zeta = Scaled(b, b.Multiply(magnitude, root), 2.0 / 3);
  Value inverse = b.Divide(one, zeta);
  Value amplitude = b.Divide(Like(b, x, std::numbers::inv_sqrtpi), b.Sqrt(root));
  Value decay = b.Divide(b.Multiply(amplitude, Ratio(b, inverse, kAiry, kAiryDivisor)),
                         Scaled(b, b.Exp(zeta), 2));
  Value square = b.Multiply(inverse, inverse);
  Value f = b.Add(one, b.Multiply(square, Ratio(b, square, kAiryF, kAiryFDivisor)));
  Value g = b.Multiply(inverse, Ratio(b, square, kAiryG, kAiryGDivisor));
  Value angle = b.Add(zeta, Like(b, x, std::numbers::pi / 4));
  Value wave = b.Multiply(amplitude, b.Subtract(b.Multiply(b.Unary(Opcode::kSine, angle), f),
                                                b.Multiply(b.Unary(Opcode::kCosine, angle), g)));
  Value edge = Like(b, x, 2.09);
  Value result = b.Select(b.Lt(x, b.Negate(edge)), wave, AiryNearZero(b, x));
  result = b.Select(b.Ge(x, edge), decay, result);
  result = b.Select(b.Gt(x, Like(b, x, 103.892)), Like(b, x, 0), result);
  return b.Select(b.Eq(magnitude, Like(b, x, kInfinity)), Like(b, x, kNaN), result);
}

template <Value (*function)(Builder&, Value)>
Value Computed(Builder& b, Value x) {
  return InAccumulationType(b, x, [&](Value v) { return function(b, v); });
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  constexpr Promotion kToFloat = Promotion::kToFloat;
  RegisterElementwise<&Computed<J0>, kToFloat>(m, "special_bessel_j0");
  RegisterElementwise<&Computed<J1>, kToFloat>(m, "special_bessel_j1");
  RegisterElementwise<&Computed<Y0>, kToFloat>(m, "special_bessel_y0");
  RegisterElementwise<&Computed<Y1>, kToFloat>(m, "special_bessel_y1");
  RegisterElementwise<&Twin<0, &BesselI0>::Lower, kToFloat>(m, "special_modified_bessel_i0");
  RegisterElementwise<&Twin<0, &BesselI1>::Lower, kToFloat>(m, "special_modified_bessel_i1");
  RegisterElementwise<&Computed<K<0>>, kToFloat>(m, "special_modified_bessel_k0");
  RegisterElementwise<&Computed<K<1>>, kToFloat>(m, "special_modified_bessel_k1");
  RegisterElementwise<&Computed<ScaledK<0>>, kToFloat>(m, "special_scaled_modified_bessel_k0");
  RegisterElementwise<&Computed<ScaledK<1>>, kToFloat>(m, "special_scaled_modified_bessel_k1");
  RegisterElementwise<&Computed<SphericalJ0>, kToFloat>(m, "special_spherical_bessel_j0");
  RegisterElementwise<&Computed<AiryAi>, kToFloat>(m, "special_airy_ai");
}

}  // namespace torch_xla
