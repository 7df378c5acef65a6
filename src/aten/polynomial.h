// Polynomials and Chebyshev series of a value, with coefficients known while the graph is made.
#pragma once

#include <span>

#include "aten/promotion.h"

namespace torch_xla {

// Highest power first.
Value Horner(Builder& b, Value x, std::span<const double> coefficients);
// Lowest power first.
Value Polynomial(Builder& b, Value x, std::span<const double> coefficients);
// The sum of c[k] T_k(t).
Value ChebyshevSeries(Builder& b, Value t, std::span<const double> coefficients);

// Runs a function of f32 or f64 values on any floating type.
template <typename F>
Value InAccumulationType(Builder& b, Value x, F&& function) {
  return b.Convert(function(ToAccumulation(b, x)), x->element_type());
}

}  // namespace torch_xla
