// Special functions that StableHLO does not have, as polynomials and rational functions of x. f16
// and bf16 are computed in f32. All take floating values.
#pragma once

#include "aten/lowering.h"

namespace torch_xla {

Value Erf(Builder& b, Value x);
Value Erfc(Builder& b, Value x);
// exp(x^2) erfc(x).
Value Erfcx(Builder& b, Value x);
Value ErfInv(Builder& b, Value x);
// The same of f32 or f64 values in (-1, 1), given 1 - |x| too (above 2^-32, or 2^-64 in f64), which
// near the ends says more than x.
Value ErfInvInside(Builder& b, Value x, Value complement);
Value Lgamma(Builder& b, Value x);
Value Digamma(Builder& b, Value x);
// Hurwitz' zeta function: the sum of (q + k)^-s over all k >= 0.
Value Zeta(Builder& b, Value s, Value q);
// The n-th derivative of digamma.
Value Polygamma(Builder& b, int64_t n, Value x);
Value BesselI0(Builder& b, Value x);   // modified, first kind, order 0
Value BesselI0e(Builder& b, Value x);  // scaled by exp(-|x|)
Value BesselI1(Builder& b, Value x);
Value BesselI1e(Builder& b, Value x);
// The inverse of the standard normal's cumulative distribution.
Value Ndtri(Builder& b, Value x);

}  // namespace torch_xla
