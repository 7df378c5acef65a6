// LAPACK's routines for least squares, as custom calls (hlo/lapack_call.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "cpu/library/lapack.h"
#include "cpu/library/lapack_item.h"

namespace cpu {

// What the routines for least squares take and give alike.
template <typename T>
struct LeastSquares {
  using R = typename RealOf<T>::Type;
  explicit LeastSquares(const Item& x)
      : item(x),
        m(x.rows(0)),
        n(x.columns(0)),
        columns(x.columns(1)),
        lda(std::max(1, m)),
        ldb(std::max(1, x.rows(1))),
        rcond(static_cast<R>(x.Real("rcond", -1))),
        a(x.Load<T>(0)),
        b(x.Load<T>(1)),
        rank(x.Out<int>(1)),
        s(x.Out<R>(2)),
        info(x.Out<int>(3)) {
    *rank = std::min(m, n);
    std::fill_n(s, x.ResultElements(2), R{});
  }
  ~LeastSquares() { item.Store(0, b.data(), ldb); }

  // Says of NaN in a matrix what LAPACK says of an argument that is wrong. Its iterations for
  // singular values may not end with it. `first_matrix`: that argument's number in the routine.
  bool RefusesNan(int first_matrix) {
    const auto is_nan = [](const T& number) { return number != number; };
    *info = 0;
    if (std::ranges::any_of(b, is_nan)) *info = -(first_matrix + 2);
    if (std::ranges::any_of(a, is_nan)) *info = -first_matrix;
    if (*info != 0) GiveNan();
    return *info != 0;
  }

  // The iterations may not end with these in the first matrix either.
  bool HasInfinity() const {
    return std::ranges::any_of(a, [](const T& number) {
      return std::isinf(std::real(number)) || std::isinf(std::imag(number));
    });
  }

  void GiveNan() {
    std::ranges::fill(b, T(std::numeric_limits<R>::quiet_NaN()));
    std::fill_n(s, item.ResultElements(2), std::numeric_limits<R>::quiet_NaN());
    *rank = 0;
  }

  const Item& item;
  int m, n, columns, lda, ldb;
  R rcond;
  std::vector<T> a, b;
  int* rank;
  R* s;
  int* info;
};

template <typename T>
void Gels(const Item& item) {
  LeastSquares<T> x(item);
  if (x.RefusesNan(5)) return;
  char transpose = 'N';
  WithWorkspace<T>([&](T* work, int* lwork) {
    lapack::gels<T>(&transpose, &x.m, &x.n, &x.columns, x.a.data(), &x.lda, x.b.data(), &x.ldb,
                    work, lwork, x.info);
  });
}

template <typename T>
void Gelsy(const Item& item) {
  using R = typename RealOf<T>::Type;
  LeastSquares<T> x(item);
  if (x.RefusesNan(4)) return;
  std::vector<int> pivots(std::max(1, x.n));
  std::vector<R> rwork(std::max<int64_t>(1, 2 * int64_t{x.n}));
  WithWorkspace<T>([&](T* work, int* lwork) {
    if constexpr (kComplex<T>) {
      lapack::gelsy<T>(&x.m, &x.n, &x.columns, x.a.data(), &x.lda, x.b.data(), &x.ldb,
                       pivots.data(), &x.rcond, x.rank, work, lwork, rwork.data(), x.info);
    } else {
      lapack::gelsy<T>(&x.m, &x.n, &x.columns, x.a.data(), &x.lda, x.b.data(), &x.ldb,
                       pivots.data(), &x.rcond, x.rank, work, lwork, x.info);
    }
  });
}

template <typename T>
void Gelsd(const Item& item) {
  using R = typename RealOf<T>::Type;
  LeastSquares<T> x(item);
  if (x.RefusesNan(4)) return;
  if (x.HasInfinity()) {
    *x.info = -4;
    return x.GiveNan();
  }
  // The query for the workspace tells the sizes of the others too.
  std::vector<int> iwork(1);
  std::vector<R> rwork(1);
  WithWorkspace<T>([&](T* work, int* lwork) {
    if constexpr (kComplex<T>) {
      lapack::gelsd<T>(&x.m, &x.n, &x.columns, x.a.data(), &x.lda, x.b.data(), &x.ldb, x.s,
                       &x.rcond, x.rank, work, lwork, rwork.data(), iwork.data(), x.info);
      rwork.resize(std::max<size_t>(rwork.size(), static_cast<size_t>(rwork[0])));
    } else {
      lapack::gelsd<T>(&x.m, &x.n, &x.columns, x.a.data(), &x.lda, x.b.data(), &x.ldb, x.s,
                       &x.rcond, x.rank, work, lwork, iwork.data(), x.info);
    }
    iwork.resize(std::max<size_t>(iwork.size(), static_cast<size_t>(std::max(1, iwork[0]))));
  });
}

template <typename T>
void Gelss(const Item& item) {
  using R = typename RealOf<T>::Type;
  LeastSquares<T> x(item);
  if (x.RefusesNan(4)) return;
  if (x.HasInfinity()) return x.GiveNan();
  std::vector<R> rwork(std::max(1, 5 * std::min(x.m, x.n)));
  WithWorkspace<T>([&](T* work, int* lwork) {
    if constexpr (kComplex<T>) {
      lapack::gelss<T>(&x.m, &x.n, &x.columns, x.a.data(), &x.lda, x.b.data(), &x.ldb, x.s,
                       &x.rcond, x.rank, work, lwork, rwork.data(), x.info);
    } else {
      lapack::gelss<T>(&x.m, &x.n, &x.columns, x.a.data(), &x.lda, x.b.data(), &x.ldb, x.s,
                       &x.rcond, x.rank, work, lwork, x.info);
    }
  });
}

}  // namespace cpu
