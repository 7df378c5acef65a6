// Factors of matrices that hold infinities, and of small ones, by the steps of LAPACK's unblocked
// algorithms (potf2, getf2). OpenBLAS's own take a product with zero for zero, and the reciprocal
// of an infinite pivot is zero: what is to be NaN would be a number. And of a few elements they
// take several times as long. Matrices are column-major, T is real or complex.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace cpu {

template <typename T>
using RealPart = decltype(std::real(T()));

template <typename T>
bool IsInfinite(const T& x) {
  return std::isinf(std::real(x)) || std::isinf(std::imag(x));
}

template <typename T>
bool HasInfinity(int m, int n, const T* a, int64_t lda) {
  for (int64_t c = 0; c < n; ++c) {
    if (std::any_of(a + c * lda, a + c * lda + m, IsInfinite<T>)) return true;
  }
  return false;
}

// Up to this size they are small.
constexpr int kSmallMatrix = 8;

// Calls f with a size of loops, as a constant where the compiler can unroll them.
template <typename F>
auto WithSize(int size, const F& f) {
  switch (size) {
    case 2:
      return f(std::integral_constant<int, 2>());
    case 3:
      return f(std::integral_constant<int, 3>());
    case 4:
      return f(std::integral_constant<int, 4>());
    default:
      return f(size);
  }
}

template <typename T>
bool IsSmallAndFinite(int m, int n, const T* a, int64_t lda) {
  if (std::max(m, n) > kSmallMatrix) return false;
  for (int64_t c = 0; c < n; ++c) {
    for (int64_t r = 0; r < m; ++r) {
      const T& x = a[r + c * lda];
      if (!std::isfinite(std::real(x)) || !std::isfinite(std::imag(x))) return false;
    }
  }
  return true;
}

// In the triangle that `uplo` names, 'L' or 'U'.
template <typename T>
bool HasInfinityInTriangle(char uplo, int n, const T* a, int64_t lda) {
  for (int64_t c = 0; c < n; ++c) {
    const T* column = a + c * lda;
    const int64_t first = uplo == 'L' ? c : 0, last = uplo == 'L' ? n : c + 1;
    if (std::any_of(column + first, column + last, IsInfinite<T>)) return true;
  }
  return false;
}

// potf2: of the triangle that `uplo` names, 'L' or 'U'; returns LAPACK's `info`.
template <typename T>
int PlainCholesky(char uplo, int n, T* a, int64_t lda) {
  // An element of L, or of the transpose of U, which is the factor of the transpose.
  const auto at = [&](int64_t row, int64_t column) -> T& {
    return uplo == 'L' ? a[row + column * lda] : a[column + row * lda];
  };
  const auto conjugate = [](const T& x) {
    if constexpr (std::is_floating_point_v<T>)
      return x;
    else
      return std::conj(x);
  };
  for (int64_t j = 0; j < n; ++j) {
    auto pivot = std::real(at(j, j));
    for (int64_t k = 0; k < j; ++k) pivot -= std::real(at(j, k) * conjugate(at(j, k)));
    if (!(pivot > 0)) {
      at(j, j) = pivot;
      return static_cast<int>(j) + 1;
    }
    pivot = std::sqrt(pivot);
    at(j, j) = pivot;
    // The same sums either way, along what is contiguous: columns of L, or of U.
    if (uplo == 'L') {
      for (int64_t k = 0; k < j; ++k) {
        const T factor = conjugate(at(j, k));
        for (int64_t i = j + 1; i < n; ++i) at(i, j) -= at(i, k) * factor;
      }
    } else {
      for (int64_t i = j + 1; i < n; ++i) {
        for (int64_t k = 0; k < j; ++k) at(i, j) -= at(i, k) * conjugate(at(j, k));
      }
    }
    for (int64_t i = j + 1; i < n; ++i) at(i, j) *= 1 / pivot;
  }
  return 0;
}

// getf2: L below the diagonal, U on it and above; pivots count from 1. Returns LAPACK's `info`.
template <typename T>
[[gnu::always_inline]] inline int PlainLu(int m, int n, T* a, int64_t lda, int* pivots) {
  const auto size = [](const T& x) { return std::abs(std::real(x)) + std::abs(std::imag(x)); };
  int info = 0;
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    T* column = a + j * lda;
    int64_t pivot = j;
    for (int64_t i = j + 1; i < m; ++i) {
      if (size(column[i]) > size(column[pivot])) pivot = i;
    }
    pivots[j] = static_cast<int>(pivot) + 1;
    if (column[pivot] == T(0)) {
      if (info == 0) info = static_cast<int>(j) + 1;
      continue;
    }
    for (int64_t c = 0; pivot != j && c < n; ++c) std::swap(a[j + c * lda], a[pivot + c * lda]);
    // The reciprocal of a number below the least normal one may be infinite.
    const bool is_normal = std::abs(column[j]) >= std::numeric_limits<RealPart<T>>::min();
    const T divisor = column[j], reciprocal = T(1) / divisor;
    for (int64_t i = j + 1; i < m; ++i) {
      column[i] = is_normal ? column[i] * reciprocal : column[i] / divisor;
    }
    for (int64_t c = j + 1; c < n; ++c) {
      for (int64_t i = j + 1; i < m; ++i) a[i + c * lda] -= column[i] * a[j + c * lda];
    }
  }
  return info;
}

}  // namespace cpu
