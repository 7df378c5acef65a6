// Orthogonal polynomials of x and degree n, both tensors, by their recurrences of three terms. The
// degree is rounded towards zero; below 0 the polynomial is 0. Chebyshev's have a closed form
// inside (-1, 1), which higher degrees take as in eager.

#include "aten/elementwise.h"
#include "aten/iteration.h"
#include "aten/op.h"

namespace torch_xla {
namespace {

// Degree k + 1 from degrees k - 1 and k; k has x's shape.
using Step = Value (*)(Builder& b, Value x, Value k, Value before, Value last);

// From degree 0, which is 1, and degree 1 up to n, of each element.
Value Recur(Builder& b, Value x, Value n, Value first, Step step) {
  Value one = Like(b, x, 1);
  Values state = EachWhile(
      b, "degrees", {one, one, first, x, n},
      [](Builder& r, const Values& p) { return r.Lt(p[0], p[4]); },
      [=](Builder& r, const Values& p) -> Values {
        Value next = step(r, p[3], p[0], p[1], p[2]);
        return {r.Add(p[0], Like(r, p[0], 1)), p[2], next, p[3], p[4]};
      });
  return b.Select(b.Eq(n, Like(b, n, 0)), one, state[2]);
}

Value WithoutNegativeDegrees(Builder& b, Value n, Value result) {
  return ZeroUnless(b, b.Ge(n, Like(b, n, 0)), result);
}

Value Twice(Builder& b, Value x) { return b.Add(x, x); }
Value IsEven(Builder& b, Value n) { return b.Eq(b.Remainder(n, Like(b, n, 2)), Like(b, n, 0)); }

// --- Chebyshev

enum class ChebyshevKind { kT, kU, kV, kW };

Value ChebyshevStep(Builder& b, Value x, Value k, Value before, Value last) {
  return b.Subtract(b.Multiply(Twice(b, x), last), before);
}

Value ChebyshevFirst(Builder& b, ChebyshevKind kind, Value x) {
  Value one = Like(b, x, 1);
  switch (kind) {
    case ChebyshevKind::kT:
      return x;
    case ChebyshevKind::kU:
      return Twice(b, x);
    case ChebyshevKind::kV:
      return b.Subtract(Twice(b, x), one);
    default:
      return b.Add(Twice(b, x), one);
  }
}

// At x = 1, in magnitude at -1 for kU (where the other edge has another value for kV and kW).
Value ChebyshevAtEdge(Builder& b, ChebyshevKind kind, Value n, bool right) {
  Value one = Like(b, n, 1);
  if (kind == ChebyshevKind::kT) return one;
  if (kind == ChebyshevKind::kU) return b.Add(n, one);
  bool is_odd_number = (kind == ChebyshevKind::kW) == right;
  return is_odd_number ? b.Add(Twice(b, n), one) : one;
}

// Inside (-1, 1), by the angle.
Value ChebyshevClosed(Builder& b, ChebyshevKind kind, Value x, Value n) {
  Value angle = Acos(b, x), half = Like(b, x, 0.5);
  auto sine = [&](Value v) { return b.Unary(Opcode::kSine, v); };
  auto cosine = [&](Value v) { return b.Unary(Opcode::kCosine, v); };
  Value half_angle = b.Multiply(angle, half);
  Value between = b.Multiply(b.Add(n, half), angle);
  switch (kind) {
    case ChebyshevKind::kT:
      return cosine(b.Multiply(n, angle));
    case ChebyshevKind::kU:
      return b.Divide(sine(b.Multiply(b.Add(n, Like(b, n, 1)), angle)), sine(angle));
    case ChebyshevKind::kV:
      return b.Divide(cosine(between), cosine(half_angle));
    default:
      return b.Divide(sine(between), sine(half_angle));
  }
}

Value Chebyshev(Builder& b, ChebyshevKind kind, Value x, Value n, double closed_from) {
  n = Truncate(b, n);
  Value one = Like(b, x, 1);
  Value magnitude = b.Abs(x);
  Value is_edge = b.Eq(magnitude, one);
  Value is_closed = b.And(b.Gt(n, Like(b, n, closed_from)), b.Lt(magnitude, one));
  Value known = b.Or(is_edge, is_closed);
  Value steps = ZeroUnless(b, b.Not(known), n);
  Value result = Recur(b, x, steps, ChebyshevFirst(b, kind, x), &ChebyshevStep);
  result = b.Select(is_closed, ChebyshevClosed(b, kind, x, n), result);
  Value left = ChebyshevAtEdge(b, kind, n, false);
  left = b.Select(IsEven(b, n), left, b.Negate(left));
  Value edge = b.Select(b.Gt(x, Like(b, x, 0)), ChebyshevAtEdge(b, kind, n, true), left);
  return WithoutNegativeDegrees(b, n, b.Select(is_edge, edge, result));
}

template <ChebyshevKind kind>
Value ChebyshevOf(Builder& b, Value x, Value n) {
  return Chebyshev(b, kind, x, n, kind == ChebyshevKind::kT ? 6 : 8);
}
// Of 2x - 1.
template <ChebyshevKind kind>
Value ShiftedChebyshev(Builder& b, Value x, Value n) {
  Value shifted = b.Subtract(Twice(b, x), Like(b, x, 1));
  return Chebyshev(b, kind, shifted, n, kind == ChebyshevKind::kW ? 4 : 6);
}

// --- Others

// Beyond this degree Hermite's polynomials are NaN, as in eager.
Value WithinHermiteLimit(Builder& b, Value n, Value result) {
  double limit = n->element_type() == ElementType::kF64 ? 512 : 128;
  return b.Select(b.Gt(n, Like(b, n, limit)), Like(b, n, kNaN), result);
}

// With the highest degree that is computed, so that the loop ends.
Value HermiteSteps(Builder& b, Value n) {
  double limit = n->element_type() == ElementType::kF64 ? 512 : 128;
  return b.Minimum(n, Like(b, n, limit));
}

Value HermiteH(Builder& b, Value x, Value n) {
  n = Truncate(b, n);
  Step step = [](Builder& r, Value v, Value k, Value before, Value last) {
    return r.Subtract(r.Multiply(Twice(r, v), last), r.Multiply(Twice(r, k), before));
  };
  Value result = Recur(b, x, HermiteSteps(b, n), Twice(b, x), step);
  return WithoutNegativeDegrees(b, n, WithinHermiteLimit(b, n, result));
}

Value HermiteHe(Builder& b, Value x, Value n) {
  n = Truncate(b, n);
  Step step = [](Builder& r, Value v, Value k, Value before, Value last) {
    return r.Subtract(r.Multiply(v, last), r.Multiply(k, before));
  };
  Value result = Recur(b, x, HermiteSteps(b, n), x, step);
  return WithoutNegativeDegrees(b, n, WithinHermiteLimit(b, n, result));
}

Value Laguerre(Builder& b, Value x, Value n) {
  n = Truncate(b, n);
  Step step = [](Builder& r, Value v, Value k, Value before, Value last) {
    Value next = r.Add(k, Like(r, k, 1));
    Value factor = r.Subtract(r.Add(k, next), v);
    return r.Divide(r.Subtract(r.Multiply(factor, last), r.Multiply(k, before)), next);
  };
  Value result = Recur(b, x, n, b.Subtract(Like(b, x, 1), x), step);
  return WithoutNegativeDegrees(b, n, result);
}

Value Legendre(Builder& b, Value x, Value n) {
  n = Truncate(b, n);
  Step step = [](Builder& r, Value v, Value k, Value before, Value last) {
    Value next = r.Add(k, Like(r, k, 1));
    Value factor = r.Multiply(r.Add(k, next), v);
    return r.Divide(r.Subtract(r.Multiply(factor, last), r.Multiply(k, before)), next);
  };
  return WithoutNegativeDegrees(b, n, Recur(b, x, n, x, step));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  constexpr Promotion kToFloat = Promotion::kToFloat;
  RegisterElementwise<&ChebyshevOf<ChebyshevKind::kT>, kToFloat>(m,
                                                                 "special_chebyshev_polynomial_t");
  RegisterElementwise<&ChebyshevOf<ChebyshevKind::kU>, kToFloat>(m,
                                                                 "special_chebyshev_polynomial_u");
  RegisterElementwise<&ChebyshevOf<ChebyshevKind::kV>, kToFloat>(m,
                                                                 "special_chebyshev_polynomial_v");
  RegisterElementwise<&ChebyshevOf<ChebyshevKind::kW>, kToFloat>(m,
                                                                 "special_chebyshev_polynomial_w");
  RegisterElementwise<&ShiftedChebyshev<ChebyshevKind::kT>, kToFloat>(
      m, "special_shifted_chebyshev_polynomial_t");
  RegisterElementwise<&ShiftedChebyshev<ChebyshevKind::kU>, kToFloat>(
      m, "special_shifted_chebyshev_polynomial_u");
  RegisterElementwise<&ShiftedChebyshev<ChebyshevKind::kV>, kToFloat>(
      m, "special_shifted_chebyshev_polynomial_v");
  RegisterElementwise<&ShiftedChebyshev<ChebyshevKind::kW>, kToFloat>(
      m, "special_shifted_chebyshev_polynomial_w");
  RegisterElementwise<&HermiteH, kToFloat>(m, "special_hermite_polynomial_h");
  RegisterElementwise<&HermiteHe, kToFloat>(m, "special_hermite_polynomial_he");
  RegisterElementwise<&Laguerre, kToFloat>(m, "special_laguerre_polynomial_l");
  RegisterElementwise<&Legendre, kToFloat>(m, "special_legendre_polynomial_p");
}

}  // namespace torch_xla
