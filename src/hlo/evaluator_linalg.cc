// cholesky and triangular_solve, matrix by matrix, in double or complex<double>.
#include <cmath>
#include <limits>

#include "hlo/evaluation.h"

namespace hlo::evaluation {
namespace {

double Conjugate(double x) { return x; }
std::complex<double> Conjugate(std::complex<double> x) { return std::conj(x); }
double RealPart(double x) { return x; }
double RealPart(std::complex<double> x) { return x.real(); }

// The lower factor L of a = L * L^H, reading the lower triangle of `a`. All NaN when `a` is not
// positive definite.
template <typename T>
std::vector<T> LowerFactor(const std::vector<T>& a, int64_t n) {
  std::vector<T> factor(a.size(), T(0));
  for (int64_t j = 0; j < n; ++j) {
    double pivot = RealPart(a[j * n + j]);
    for (int64_t k = 0; k < j; ++k) {
      pivot -= RealPart(factor[j * n + k] * Conjugate(factor[j * n + k]));
    }
    if (!(pivot > 0)) {
      return std::vector<T>(a.size(), T(std::numeric_limits<double>::quiet_NaN()));
    }
    double diagonal = std::sqrt(pivot);
    factor[j * n + j] = diagonal;
    for (int64_t i = j + 1; i < n; ++i) {
      T sum = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) sum -= factor[i * n + k] * Conjugate(factor[j * n + k]);
      factor[i * n + j] = sum / diagonal;
    }
  }
  return factor;
}

template <typename T>
std::vector<T> ConjugateTranspose(const std::vector<T>& a, int64_t n) {
  std::vector<T> result(a.size());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) result[j * n + i] = Conjugate(a[i * n + j]);
  }
  return result;
}

// Calls f(first element) for each matrix of `size` elements.
template <typename F>
void ForEachMatrix(size_t total, int64_t size, F&& f) {
  for (size_t first = 0; first < total; first += size) f(first);
}

Literal Cholesky(const Instruction& instruction, const Literal& operand) {
  bool lower = instruction.as<CholeskyAttributes>().lower;
  int64_t n = instruction.dimensions().back();
  return DispatchAccumulator(instruction.element_type(), [&]<typename T>() {
    auto values = ReadAs<T>(operand);
    ForEachMatrix(values.size(), n * n, [&](size_t first) {
      std::vector<T> a(values.begin() + first, values.begin() + first + n * n);
      if (!lower) a = ConjugateTranspose(a, n);
      a = LowerFactor(a, n);
      if (!lower) a = ConjugateTranspose(a, n);
      std::copy(a.begin(), a.end(), values.begin() + first);
    });
    return WriteAs(instruction.shape(), values);
  });
}

// The square matrix that multiplies x from the left: op(a), or its transpose when x stands on the
// left.
template <typename T>
struct Triangle {
  const T* a;
  int64_t n;
  bool transposed, conjugated, unit_diagonal;

  T At(int64_t i, int64_t j) const {
    if (i == j && unit_diagonal) return T(1);
    T value = transposed ? a[j * n + i] : a[i * n + j];
    return conjugated ? T(Conjugate(value)) : value;
  }
};

Literal TriangularSolve(const Instruction& instruction, const Leaves& operands) {
  const auto& solve = instruction.as<TriangularSolveAttributes>();
  int64_t n = operands[0].shape().dimensions().back();
  int64_t rank = instruction.shape().rank();
  int64_t rows = instruction.dimensions()[rank - 2], columns = instruction.dimensions()[rank - 1];
  // x op(a) = b is op(a)^T x^T = b^T, so only how x and b are addressed changes.
  int64_t along = solve.left_side ? columns : 1, across = solve.left_side ? 1 : columns;
  int64_t systems = solve.left_side ? columns : rows;
  bool transposed = (solve.transpose_a != Transpose::kNoTranspose) == solve.left_side;
  bool forward = solve.lower != transposed;
  return DispatchAccumulator(instruction.element_type(), [&]<typename T>() {
    auto a = ReadAs<T>(operands[0]), x = ReadAs<T>(operands[1]);
    ForEachMatrix(x.size(), rows * columns, [&](size_t first) {
      size_t matrix = first / (rows * columns);
      Triangle<T> triangle{a.data() + matrix * n * n, n, transposed,
                           solve.transpose_a == Transpose::kAdjoint, solve.unit_diagonal};
      for (int64_t system = 0; system < systems; ++system) {
        T* column = x.data() + first + system * across;
        for (int64_t step = 0; step < n; ++step) {
          int64_t i = forward ? step : n - 1 - step;
          T sum = column[i * along];
          for (int64_t done = 0; done < step; ++done) {
            int64_t j = forward ? done : n - 1 - done;
            sum -= triangle.At(i, j) * column[j * along];
          }
          column[i * along] = sum / triangle.At(i, i);
        }
      }
    });
    return WriteAs(instruction.shape(), x);
  });
}

}  // namespace

Leaves EvaluateLinearAlgebra(const Instruction& instruction, const Leaves& operands) {
  if (instruction.opcode() == Opcode::kCholesky) return {Cholesky(instruction, operands[0])};
  return {TriangularSolve(instruction, operands)};
}

}  // namespace hlo::evaluation
