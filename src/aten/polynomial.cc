#include "aten/polynomial.h"

#include <cmath>
#include <vector>

namespace torch_xla {
namespace {

// The same polynomial by powers of t, lowest first.
std::vector<double> PowersOf(std::span<const double> chebyshev) {
  const size_t n = chebyshev.size();
  std::vector<double> powers(n), current(n), before(n);
  current[0] = 1;  // the polynomial of degree k, and the one before it
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i <= k; ++i) powers[i] += chebyshev[k] * current[i];
    std::vector<double> next(n);
    for (size_t i = 0; i + 1 < n; ++i) next[i + 1] = (k == 0 ? 1 : 2) * current[i];
    for (size_t i = 0; i < n; ++i) next[i] -= before[i];
    before = current;
    current = next;
  }
  return powers;
}

double SumOfMagnitudes(std::span<const double> numbers) {
  double sum = 0;
  for (double number : numbers) sum += std::abs(number);
  return sum;
}

}  // namespace

Value Horner(Builder& b, Value x, std::span<const double> coefficients) {
  Value sum = Like(b, x, coefficients[0]);
  for (double c : coefficients.subspan(1)) sum = b.Add(b.Multiply(sum, x), Like(b, x, c));
  return sum;
}

Value Polynomial(Builder& b, Value x, std::span<const double> coefficients) {
  return Horner(b, x, std::vector<double>(coefficients.rbegin(), coefficients.rend()));
}

// Terms that t's type cannot see are left out. Powers take two operations each, Clenshaw's
// recurrence three, but powers that cancel would lose digits.
Value ChebyshevSeries(Builder& b, Value t, std::span<const double> coefficients) {
  const bool is_double = t->element_type() == ElementType::kF64;
  size_t n = coefficients.size();
  while (n > 2 && !is_double && std::abs(coefficients[n - 1]) < 1e-9) --n;
  coefficients = coefficients.first(n);
  const std::vector<double> powers = PowersOf(coefficients);
  if (SumOfMagnitudes(powers) <= 2 * SumOfMagnitudes(coefficients)) {
    return Polynomial(b, t, powers);
  }
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
