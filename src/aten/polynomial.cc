#include "aten/polynomial.h"

#include <cmath>

namespace torch_xla {

Value Horner(Builder& b, Value x, std::span<const double> coefficients) {
  Value sum = Like(b, x, coefficients[0]);
  for (double c : coefficients.subspan(1)) sum = b.Add(b.Multiply(sum, x), Like(b, x, c));
  return sum;
}

Value Polynomial(Builder& b, Value x, std::span<const double> coefficients) {
  return Horner(b, x, std::vector<double>(coefficients.rbegin(), coefficients.rend()));
}

// Clenshaw's recurrence; terms that t's type cannot see are left out.
Value ChebyshevSeries(Builder& b, Value t, std::span<const double> coefficients) {
  double smallest = t->element_type() == ElementType::kF64 ? 0 : 1e-9;
  size_t n = coefficients.size();
  while (n > 2 && std::abs(coefficients[n - 1]) < smallest) --n;
  Value twice = b.Add(t, t);
  Value next = Like(b, t, coefficients[n - 1]), after = Like(b, t, 0);
  for (size_t k = n - 2; k > 0; --k) {
    Value current = b.Add(b.Subtract(b.Multiply(twice, next), after), Like(b, t, coefficients[k]));
    after = next;
    next = current;
  }
  return b.Add(b.Subtract(b.Multiply(t, next), after), Like(b, t, coefficients[0]));
}

}  // namespace torch_xla
