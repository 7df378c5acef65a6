#include "aten/complex_functions.h"

#include <numbers>

#include "aten/elementwise.h"

namespace torch_xla {
namespace {

using std::numbers::ln2;
using std::numbers::pi;

// iz and -iz without a product, which would make NaN of infinities.
Value TimesI(Builder& b, Value z) { return b.Complex(b.Negate(b.Imag(z)), b.Real(z)); }
Value OverI(Builder& b, Value z) { return b.Complex(b.Imag(z), b.Negate(b.Real(z))); }

// Beyond this a number and its neighbours at distance one are the same.
double LargeMagnitude(Value x) { return x->element_type() == ElementType::kF64 ? 1e17 : 1e9; }

Value Atan2(Builder& b, Value y, Value x) { return b.Binary(Opcode::kAtan2, y, x); }
Value Log1p(Builder& b, Value x) { return b.Unary(Opcode::kLogPlusOne, x); }

// What the inverse functions of x + iy are made of, for x and y that are not negative:
// asin = atan2(x, adjacent) + i log, acos = atan2(adjacent, x) - i log.
struct InverseParts {
  Value adjacent;
  Value log;
};

// With a = (|z + 1| + |z - 1|) / 2 it is adjacent = sqrt((a - x)(a + x)) and
// log = log(a + sqrt(a² - 1)): see Hull, Fairgrieve and Tang, "Implementing the complex arcsine and
// arccosine functions using exception handling", 1997. a - 1 and a - x are sums of what is not
// negative: of y times `slope`, and of how far x is from one.
InverseParts InverseFunctionParts(Builder& b, Value x, Value y) {
  Value one = Like(b, x, 1), two = Like(b, x, 2), zero = Like(b, x, 0);
  Value limit = Like(b, x, LargeMagnitude(x));
  Value is_large = b.Or(b.Gt(x, limit), b.Gt(y, limit));
  // A quarter of a large number, whose magnitude may be none.
  Value scale = b.Select(is_large, Like(b, x, 0.25), one);
  Value to_minus_one = b.Abs(b.Complex(b.Add(b.Multiply(x, scale), one), b.Multiply(y, scale)));
  Value offset = b.Subtract(x, one);
  Value to_one = b.Abs(b.Complex(offset, y));
  Value slope = b.Multiply(Like(b, x, 0.5), b.Add(b.Divide(y, b.Add(to_minus_one, b.Add(x, one))),
                                                  b.Divide(y, b.Add(to_one, b.Abs(offset)))));
  slope = b.Select(b.Eq(y, zero), y, slope);
  Value rise = b.Multiply(y, slope);
  Value inside = b.Lt(x, one);
  Value a_minus_one = b.Select(inside, rise, b.Add(rise, offset));
  Value a_minus_x = b.Select(inside, b.Subtract(rise, offset), rise);
  Value a_plus_one = b.Add(a_minus_one, two);
  Value a_plus_x = b.Add(a_minus_x, b.Multiply(two, x));
  // Of the two roots, that of y · slope · (…), which may be smaller than numbers are, by factors.
  Value small_root =
      b.Multiply(b.Sqrt(y), b.Sqrt(b.Multiply(slope, b.Select(inside, a_plus_one, a_plus_x))));
  Value root = b.Sqrt(
      b.Select(inside, b.Multiply(a_minus_x, a_plus_x), b.Multiply(a_minus_one, a_plus_one)));
  Value adjacent = b.Select(is_large, y, b.Select(inside, root, small_root));
  // At 1 itself both are the same, but the product under `root` may be smaller than numbers are.
  Value above_one = b.Add(a_minus_one, b.Select(b.Le(x, one), small_root, root));
  Value log = b.Add(Log1p(b, b.Select(is_large, to_minus_one, above_one)),
                    b.Select(is_large, Like(b, x, 3 * ln2), zero));
  // Of x = 0 the angle is known whatever y is.
  return {b.Select(b.Eq(x, zero), one, adjacent), log};
}

}  // namespace

Value ComplexExp2(Builder& b, Value z) {
  Value real = b.Real(z), factor = Like(b, real, ln2);
  return b.Exp(b.Complex(b.Multiply(real, factor), b.Multiply(b.Imag(z), factor)));
}

Value ComplexSinh(Builder& b, Value z) { return OverI(b, b.Unary(Opcode::kSine, TimesI(b, z))); }

Value ComplexCosh(Builder& b, Value z) { return b.Unary(Opcode::kCosine, TimesI(b, z)); }

Value ComplexAsin(Builder& b, Value z) {
  Value x = b.Abs(b.Real(z));
  const InverseParts parts = InverseFunctionParts(b, x, b.Abs(b.Imag(z)));
  return b.Complex(CopySignFrom(b, Atan2(b, x, parts.adjacent), b.Real(z)),
                   CopySignFrom(b, parts.log, b.Imag(z)));
}

Value ComplexAcos(Builder& b, Value z) {
  const InverseParts parts = InverseFunctionParts(b, b.Abs(b.Real(z)), b.Abs(b.Imag(z)));
  return b.Complex(Atan2(b, parts.adjacent, b.Real(z)),
                   CopySignFrom(b, parts.log, b.Negate(b.Imag(z))));
}

Value ComplexAsinh(Builder& b, Value z) { return OverI(b, ComplexAsin(b, TimesI(b, z))); }

Value ComplexAcosh(Builder& b, Value z) {
  Value acos = ComplexAcos(b, z);
  return b.Complex(b.Abs(b.Imag(acos)), CopySignFrom(b, b.Real(acos), b.Imag(z)));
}

// atanh(x + iy) = log(1 + 4x / |1 - z|²) / 4 + i atan2(2y, 1 - |z|²) / 2.
Value ComplexAtanh(Builder& b, Value z) {
  Value x = b.Abs(b.Real(z)), y = b.Imag(z);
  Value one = Like(b, x, 1), zero = Like(b, x, 0);
  Value rest = b.Subtract(one, x);
  Value distance = b.Abs(b.Complex(rest, y));
  // Next to 1, where the square may be smaller than numbers are, it is log(2 / |1 - z|) / 2.
  Value is_near = b.Lt(distance, Like(b, x, 1 / LargeMagnitude(x)));
  Value near = b.Multiply(Like(b, x, 0.5), b.Subtract(Like(b, x, ln2), b.Log(distance)));
  Value excess = b.Multiply(Like(b, x, 4), b.Divide(b.Divide(x, distance), distance));
  Value real = b.Select(is_near, near, b.Multiply(Like(b, x, 0.25), Log1p(b, excess)));
  Value is_far = b.Gt(distance, Like(b, x, LargeMagnitude(x)));
  Value vanishes = b.Or(b.Eq(x, zero), b.Eq(distance, Like(b, x, kInfinity)));
  real = b.Select(vanishes, zero, real);
  // Far away the angle is a right one, but of NaN.
  Value angle =
      Atan2(b, b.Add(y, y), b.Subtract(b.Multiply(rest, b.Add(one, x)), b.Multiply(y, y)));
  Value right = b.Select(IsNan(b, y), y, Like(b, x, pi));
  angle = b.Multiply(Like(b, x, 0.5), b.Select(is_far, CopySignFrom(b, right, y), angle));
  return b.Complex(CopySignFrom(b, real, b.Real(z)), angle);
}

Value ComplexAtan(Builder& b, Value z) { return OverI(b, ComplexAtanh(b, TimesI(b, z))); }

}  // namespace torch_xla
