// cholesky, triangular_solve, and the custom calls lapack_<type><routine>_ffi (hlo/lapack_call.h).
// Buffers are row-major and LAPACK is column-major: matrices are transposed on the way in and out,
// where a routine cannot be asked for the other triangle instead. Parallel over the batch.
#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cpu/library/bind.h"
#include "cpu/library/lapack.h"
#include "cpu/library/lapack_form.h"
#include "cpu/library/lapack_item.h"
#include "cpu/library/lapack_least_squares.h"
#include "cpu/library/plain_factors.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

// --- routines: one function each, named as LAPACK's

template <typename T>
void Geqrf(const Item& x) {
  int m = x.rows(0), n = x.columns(0), lda = std::max(1, m), info = 0;
  auto a = x.Load<T>(0);
  WithWorkspace<T>([&](T* work, int* lwork) {
    lapack::geqrf<T>(&m, &n, a.data(), &lda, x.Out<T>(1), work, lwork, &info);
  });
  x.Store(0, a.data(), lda);
}

template <typename T>
void Geqp3(const Item& x) {
  using R = typename RealOf<T>::Type;
  int m = x.rows(0), n = x.columns(0), lda = std::max(1, m), info = 0;
  auto a = x.Load<T>(0);
  int* pivots = x.Out<int>(1);
  std::copy_n(x.In<int>(1), n, pivots);
  std::vector<R> rwork(std::max<int64_t>(1, 2 * int64_t{n}));
  WithWorkspace<T>([&](T* work, int* lwork) {
    if constexpr (kComplex<T>) {
      lapack::geqp3<T>(&m, &n, a.data(), &lda, pivots, x.Out<T>(2), work, lwork, rwork.data(),
                       &info);
    } else {
      lapack::geqp3<T>(&m, &n, a.data(), &lda, pivots, x.Out<T>(2), work, lwork, &info);
    }
  });
  x.Store(0, a.data(), lda);
}

template <typename T>
void Orgqr(const Item& x) {
  int m = x.rows(0), n = x.columns(0), k = x.columns(1), lda = std::max(1, m), info = 0;
  auto a = x.Load<T>(0);
  WithWorkspace<T>([&](T* work, int* lwork) {
    lapack::orgqr<T>(&m, &n, &k, a.data(), &lda, x.In<T>(1), work, lwork, &info);
  });
  x.Store(0, a.data(), lda);
}

template <typename T>
void Ormqr(const Item& x) {
  char side = x.Number("left", 1) != 0 ? 'L' : 'R';
  char transpose = x.Number("transpose", 0) == 0 ? 'N' : kComplex<T> ? 'C' : 'T';
  int m = x.rows(2), n = x.columns(2), k = x.columns(1);
  int lda = std::max(1, x.rows(0)), ldc = std::max(1, m), info = 0;
  auto a = x.Load<T>(0), c = x.Load<T>(2);
  WithWorkspace<T>([&](T* work, int* lwork) {
    lapack::ormqr<T>(&side, &transpose, &m, &n, &k, a.data(), &lda, x.In<T>(1), c.data(), &ldc,
                     work, lwork, &info);
  });
  x.Store(0, c.data(), ldc);
}

// LAPACK's potrf; returns its `info`. A pivot that is NaN is not positive, and OpenBLAS goes on.
template <typename T>
int FactorPositiveDefinite(char uplo, int n, T* a, int lda) {
  int info = 0;
  if (HasInfinityInTriangle(uplo, n, a, lda)) return PlainCholesky(uplo, n, a, lda);
  lapack::potrf<T>(&uplo, &n, a, &lda, &info);
  for (int i = 0; i < (info == 0 ? n : info - 1); ++i) {
    if (std::isnan(std::real(a[i * (int64_t{lda} + 1)]))) return i + 1;
  }
  return info;
}

template <typename T>
void Potrf(const Item& x) {
  const int n = x.rows(0), lda = std::max(1, n);
  auto a = x.Load<T>(0);
  *x.Out<int>(1) = FactorPositiveDefinite(x.Letter("uplo", 'L'), n, a.data(), lda);
  x.Store(0, a.data(), lda);
}

template <typename T>
void Getrf(const Item& x) {
  int m = x.rows(0), n = x.columns(0), lda = std::max(1, m);
  int* info = x.Out<int>(2);
  if (std::max(m, n) <= kSmallMatrix) {
    T small[kSmallMatrix * kSmallMatrix];
    x.LoadInto(0, small);
    if (IsSmallAndFinite(m, n, small, lda)) {
      *info = m != n ? PlainLu(m, n, small, lda, x.Out<int>(1)) : WithSize(n, [&](auto size) {
        return PlainLu<T>(size, size, small, size, x.Out<int>(1));
      });
      return x.Store(0, small, lda);
    }
  }
  auto a = x.Load<T>(0);
  if (HasInfinity(m, n, a.data(), lda)) {
    *info = PlainLu(m, n, a.data(), lda, x.Out<int>(1));
  } else {
    lapack::getrf<T>(&m, &n, a.data(), &lda, x.Out<int>(1), info);
  }
  x.Store(0, a.data(), lda);
}

template <typename T>
void SingularValuesAreUndefined(const Item& x) {
  using R = typename RealOf<T>::Type;
  constexpr R kNan = std::numeric_limits<R>::quiet_NaN();
  x.Store(0, x.Load<T>(0).data(), std::max(1, x.rows(0)));
  std::fill_n(x.Out<R>(1), x.ResultElements(1), kNan);
  std::fill_n(x.Out<T>(2), x.ResultElements(2), T(kNan));
  std::fill_n(x.Out<T>(3), x.ResultElements(3), T(kNan));
  *x.Out<int>(4) = 0;
}

// gesdd, and gesvd where `by_qr`.
template <typename T, bool by_qr>
void SingularValues(const Item& x) {
  using R = typename RealOf<T>::Type;
  char mode = x.Letter("mode", 'A');
  int m = x.rows(0), n = x.columns(0), k = std::min(m, n), lda = std::max(1, m);
  int u_columns = mode == 'A' ? m : k, vt_rows = mode == 'A' ? n : k;
  int ldu = std::max(1, m), ldvt = std::max(1, vt_rows);
  auto a = x.Load<T>(0);
  // LAPACK's iteration may never end there, or give numbers beside values that are NaN, of which a
  // pseudo-inverse of zeros would be made.
  if (HasInfinity(m, n, a.data(), lda)) return SingularValuesAreUndefined<T>(x);
  bool vectors = mode != 'N';
  std::vector<T> u(vectors ? int64_t{ldu} * std::max(1, u_columns) : 1);
  std::vector<T> vt(vectors ? int64_t{ldvt} * std::max(1, n) : 1);
  int* info = x.Out<int>(4);
  R* s = x.Out<R>(1);
  int64_t mx = std::max(m, n), mn = k;
  std::vector<R> rwork(std::max<int64_t>(
      1, by_qr ? 5 * mn : std::max(5 * mn * mn + 7 * mn, 2 * mx * mn + 2 * mn * mn + mn)));
  std::vector<int> iwork(std::max(1, 8 * k));
  WithWorkspace<T>([&](T* work, int* lwork) {
    if constexpr (by_qr && kComplex<T>) {
      lapack::gesvd<T>(&mode, &mode, &m, &n, a.data(), &lda, s, u.data(), &ldu, vt.data(), &ldvt,
                       work, lwork, rwork.data(), info);
    } else if constexpr (by_qr) {
      lapack::gesvd<T>(&mode, &mode, &m, &n, a.data(), &lda, s, u.data(), &ldu, vt.data(), &ldvt,
                       work, lwork, info);
    } else if constexpr (kComplex<T>) {
      lapack::gesdd<T>(&mode, &m, &n, a.data(), &lda, s, u.data(), &ldu, vt.data(), &ldvt, work,
                       lwork, rwork.data(), iwork.data(), info);
    } else {
      lapack::gesdd<T>(&mode, &m, &n, a.data(), &lda, s, u.data(), &ldu, vt.data(), &ldvt, work,
                       lwork, iwork.data(), info);
    }
  });
  x.Store(0, a.data(), lda);
  if (!vectors) {  // not computed: defined all the same
    std::fill_n(x.Out<T>(2), x.ResultElements(2), T{});
    std::fill_n(x.Out<T>(3), x.ResultElements(3), T{});
    return;
  }
  x.Store(2, u.data(), ldu);
  x.Store(3, vt.data(), ldvt);
}

template <typename T>
void Syevd(const Item& x) {
  using R = typename RealOf<T>::Type;
  char mode = x.Letter("mode", 'V'), uplo = x.Letter("uplo", 'L');
  int n = x.rows(0), lda = std::max(1, n);
  auto a = x.Load<T>(0);
  R* w = x.Out<R>(1);
  int* info = x.Out<int>(2);
  int64_t n64 = n;
  int liwork = static_cast<int>(mode == 'V' ? 3 + 5 * n64 : 1);
  int lrwork =
      static_cast<int>(mode == 'V' ? 1 + 5 * n64 + 2 * n64 * n64 : std::max<int64_t>(1, n64));
  std::vector<int> iwork(liwork);
  std::vector<R> rwork(lrwork);
  WithWorkspace<T>([&](T* work, int* lwork) {
    if constexpr (kComplex<T>) {
      lapack::syevd<T>(&mode, &uplo, &n, a.data(), &lda, w, work, lwork, rwork.data(), &lrwork,
                       iwork.data(), &liwork, info);
    } else {
      lapack::syevd<T>(&mode, &uplo, &n, a.data(), &lda, w, work, lwork, iwork.data(), &liwork,
                       info);
    }
  });
  x.Store(0, a.data(), lda);
}

// Eigenvectors of a real matrix: those of a conjugate pair of eigenvalues share two columns.
template <typename R>
std::vector<std::complex<R>> UnpackVectors(const std::vector<R>& packed, const R* imaginary,
                                           int n) {
  std::vector<std::complex<R>> vectors(packed.size());
  for (int j = 0; j < n; ++j) {
    const R* column = packed.data() + int64_t{j} * n;
    std::complex<R>* out = vectors.data() + int64_t{j} * n;
    if (imaginary[j] == 0 || j + 1 == n) {
      std::copy_n(column, n, out);
      continue;
    }
    for (int i = 0; i < n; ++i) {
      out[i] = {column[i], column[n + i]};
      out[n + i] = std::conj(out[i]);
    }
    ++j;
  }
  return vectors;
}

template <typename T>
void Geev(const Item& x) {
  using R = typename RealOf<T>::Type;
  char left = x.Letter("compute_left", 'N'), right = x.Letter("compute_right", 'V');
  int n = x.rows(0), lda = std::max(1, n);
  auto a = x.Load<T>(0);
  std::vector<T> vl(std::max<int64_t>(1, int64_t{n} * n)), vr(vl.size());
  constexpr int kVectors = kComplex<T> ? 1 : 2;
  using C = std::complex<R>;
  int* info = x.Out<int>(kVectors + 2);
  if constexpr (kComplex<T>) {
    std::vector<R> rwork(std::max(1, 2 * n));
    WithWorkspace<T>([&](T* work, int* lwork) {
      lapack::geev<T>(&left, &right, &n, a.data(), &lda, x.Out<T>(0), vl.data(), &lda, vr.data(),
                      &lda, work, lwork, rwork.data(), info);
    });
    x.Store(kVectors, vl.data(), lda);
    x.Store(kVectors + 1, vr.data(), lda);
  } else {
    R *real = x.Out<R>(0), *imaginary = x.Out<R>(1);
    WithWorkspace<T>([&](T* work, int* lwork) {
      lapack::geev<T>(&left, &right, &n, a.data(), &lda, real, imaginary, vl.data(), &lda,
                      vr.data(), &lda, work, lwork, info);
    });
    auto store = [&](int result, const std::vector<T>& packed) {
      std::vector<C> vectors = UnpackVectors(packed, imaginary, n);
      x.Store(result, vectors.data(), lda);
    };
    store(kVectors, vl);
    store(kVectors + 1, vr);
  }
}

template <typename T>
void Gees(const Item& x) {
  using R = typename RealOf<T>::Type;
  char mode = x.Letter("mode", 'V'), sort = 'N';
  int n = x.rows(0), lda = std::max(1, n);
  auto a = x.Load<T>(0);
  std::vector<T> vs(std::max<int64_t>(1, int64_t{n} * n));
  void* select = nullptr;
  int* no_flags = nullptr;
  constexpr int kSelected = kComplex<T> ? 3 : 4;
  int *selected = x.Out<int>(kSelected), *info = x.Out<int>(kSelected + 1);
  WithWorkspace<T>([&](T* work, int* lwork) {
    if constexpr (kComplex<T>) {
      std::vector<R> rwork(std::max(1, n));
      lapack::gees<T>(&mode, &sort, &select, &n, a.data(), &lda, selected, x.Out<T>(2), vs.data(),
                      &lda, work, lwork, rwork.data(), no_flags, info);
    } else {
      lapack::gees<T>(&mode, &sort, &select, &n, a.data(), &lda, selected, x.Out<R>(2), x.Out<R>(3),
                      vs.data(), &lda, work, lwork, no_flags, info);
    }
  });
  x.Store(0, a.data(), lda);
  x.Store(1, vs.data(), lda);
}

template <typename T>
void Gehrd(const Item& x) {
  int n = x.rows(0), lda = std::max(1, n);
  int low = static_cast<int>(x.Number("low", 1)), high = static_cast<int>(x.Number("high", n));
  auto a = x.Load<T>(0);
  WithWorkspace<T>([&](T* work, int* lwork) {
    lapack::gehrd<T>(&n, &low, &high, a.data(), &lda, x.Out<T>(1), work, lwork, x.Out<int>(2));
  });
  x.Store(0, a.data(), lda);
}

template <typename T>
void Sytrd(const Item& x) {
  using R = typename RealOf<T>::Type;
  char uplo = x.Letter("uplo", 'L');
  int n = x.rows(0), lda = std::max(1, n);
  auto a = x.Load<T>(0);
  WithWorkspace<T>([&](T* work, int* lwork) {
    lapack::sytrd<T>(&uplo, &n, a.data(), &lda, x.Out<R>(1), x.Out<R>(2), x.Out<T>(3), work, lwork,
                     x.Out<int>(4));
  });
  x.Store(0, a.data(), lda);
}

template <typename T>
void Gtsv(const Item& x) {
  int n = x.rows(3), columns = x.columns(3), ldb = std::max(1, n);
  // The off-diagonals may come with n elements; the first of the lower and the last of the upper
  // one are then not part of the matrix.
  int shift = x.columns(0) == n && n > 0 ? 1 : 0;
  for (int i = 0; i < 3; ++i) std::copy_n(x.In<T>(i), x.columns(i), x.Out<T>(i));
  auto b = x.Load<T>(3);
  T unused{};
  T* lower = n > 1 ? x.Out<T>(0) + shift : &unused;
  lapack::gtsv<T>(&n, &columns, lower, x.Out<T>(1), x.Out<T>(2), b.data(), &ldb, x.Out<int>(4));
  x.Store(3, b.data(), ldb);
}

// Symmetric indefinite matrices; hetrf and hetrs where `hermitian`.
template <typename T, bool hermitian>
void Sytrf(const Item& x) {
  char uplo = x.Letter("uplo", 'L');
  int n = x.rows(0), lda = std::max(1, n);
  auto a = x.Load<T>(0);
  int *pivots = x.Out<int>(1), *info = x.Out<int>(2);
  WithWorkspace<T>([&](T* work, int* lwork) {
    if constexpr (hermitian) {
      lapack::hetrf<T>(&uplo, &n, a.data(), &lda, pivots, work, lwork, info);
    } else {
      lapack::sytrf<T>(&uplo, &n, a.data(), &lda, pivots, work, lwork, info);
    }
  });
  x.Store(0, a.data(), lda);
}

// Whether sytrf may have given them: the number of a row for each block of one row, and its
// negative twice for a block of two. LAPACK reads rows by them without a look.
bool ArePivots(const int* pivots, int n) {
  for (int i = 0; i < n; ++i) {
    if (pivots[i] == 0 || pivots[i] < -n || pivots[i] > n) return false;
    if (pivots[i] < 0 && (++i == n || pivots[i] >= 0 || pivots[i] < -n)) return false;
  }
  return true;
}

template <typename T, bool hermitian>
void Sytrs(const Item& x) {
  char uplo = x.Letter("uplo", 'L');
  int n = x.rows(0), columns = x.columns(2), ld = std::max(1, n), info = 0;
  auto a = x.Load<T>(0), b = x.Load<T>(2);
  const int* pivots = x.In<int>(1);
  if (!ArePivots(pivots, n)) {
    std::fill_n(x.Out<T>(0), int64_t{n} * columns,
                std::numeric_limits<typename RealOf<T>::Type>::quiet_NaN());
    return;
  }
  if constexpr (hermitian) {
    lapack::hetrs<T>(&uplo, &n, &columns, a.data(), &ld, pivots, b.data(), &ld, &info);
  } else {
    lapack::sytrs<T>(&uplo, &n, &columns, a.data(), &ld, pivots, b.data(), &ld, &info);
  }
  x.Store(0, b.data(), ld);
}

// --- triangular solve and Cholesky on row-major memory

template <typename T>
void Trsm(CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_TRANSPOSE transpose, CBLAS_DIAG diagonal, int m,
          int n, const T* a, int lda, T* b, int ldb) {
  T one = 1;
  if constexpr (std::is_same_v<T, float>) {
    cblas_strsm(CblasRowMajor, side, uplo, transpose, diagonal, m, n, one, a, lda, b, ldb);
  } else if constexpr (std::is_same_v<T, double>) {
    cblas_dtrsm(CblasRowMajor, side, uplo, transpose, diagonal, m, n, one, a, lda, b, ldb);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    cblas_ctrsm(CblasRowMajor, side, uplo, transpose, diagonal, m, n, &one, a, lda, b, ldb);
  } else {
    cblas_ztrsm(CblasRowMajor, side, uplo, transpose, diagonal, m, n, &one, a, lda, b, ldb);
  }
}

struct TriangularForm {
  bool left, lower, unit;
  char transpose;  // N, T, C
};

// By substitution, one x after the other: op(A) y = x for each x that is a column of the right
// side, or a row of it where A stands on the right. `a` is `size` x `size` and real, `x` becomes y.
template <typename T>
[[gnu::always_inline]] inline void SubstituteSmall(const TriangularForm& form, int size, const T* a,
                                                   int count, T* x) {
  const bool is_turned = form.left == (form.transpose != 'N');
  const int64_t row = is_turned ? 1 : size, column = is_turned ? size : 1;
  const bool forward = form.lower != is_turned;
  const int64_t step = form.left ? count : 1, next = form.left ? 1 : size;
  for (int64_t j = 0; j < count; ++j, x += next) {
    for (int64_t turn = 0; turn < size; ++turn) {
      const int64_t i = forward ? turn : size - 1 - turn;
      T rest = x[i * step];
      const int64_t begin = forward ? 0 : i + 1, end = forward ? i : size;
      for (int64_t k = begin; k < end; ++k) rest -= a[i * row + k * column] * x[k * step];
      x[i * step] = form.unit ? rest : rest / a[i * row + i * column];
    }
  }
}

template <typename T>
void SolveTriangular(const Item& x, const TriangularForm& form) {
  int m = x.rows(1), n = x.columns(1);
  std::copy_n(x.In<T>(1), int64_t{m} * n, x.Out<T>(0));
  if (m == 0 || n == 0) return;
  const int size = form.left ? m : n, vectors = form.left ? n : m;
  if constexpr (!kComplex<T>) {
    if (size <= kSmallMatrix && vectors <= (size <= 3 ? 8 : 3)) {
      return WithSize(size, [&](auto known) {
        SubstituteSmall<T>(form, known, x.In<T>(0), vectors, x.Out<T>(0));
      });
    }
  }
  Trsm<T>(form.left ? CblasLeft : CblasRight, form.lower ? CblasLower : CblasUpper,
          form.transpose == 'C'   ? CblasConjTrans
          : form.transpose == 'T' ? CblasTrans
                                  : CblasNoTrans,
          form.unit ? CblasUnit : CblasNonUnit, m, n, x.In<T>(0), x.columns(0), x.Out<T>(0), n);
}

template <typename T>
void TrsmCall(const Item& x) {
  SolveTriangular<T>(x, {.left = x.Letter("side", 'L') == 'L',
                         .lower = x.Letter("uplo", 'L') == 'L',
                         .unit = x.Letter("diag", 'N') == 'U',
                         .transpose = x.Letter("trans_x", 'N')});
}

// Read column by column, row-major memory is the transposed matrix: its upper factor is the lower
// one wanted.
template <typename T>
void FactorCholesky(const Item& x, bool lower) {
  const int n = x.rows(0), lda = std::max(1, n);
  T* out = x.Out<T>(0);
  std::copy_n(x.In<T>(0), int64_t{n} * n, out);
  const int info = FactorPositiveDefinite(lower ? 'U' : 'L', n, out, lda);
  using R = typename RealOf<T>::Type;
  for (int r = 0; r < n; ++r) {
    for (int c = 0; c < n; ++c) {
      T& value = out[int64_t{r} * n + c];
      if (info != 0) {
        value = T(std::numeric_limits<R>::quiet_NaN());
      } else if (lower ? c > r : c < r) {
        value = T{};
      }
    }
  }
}

// --- binding

class LinearAlgebraCall : public LibraryCall {
 public:
  using Routine = std::function<void(const Item&)>;
  // The call keeps the instruction's shapes and attributes by reference to `instruction`'s copy.
  LinearAlgebraCall(const hlo::Instruction& instruction, std::string name, int64_t matrix_rank,
                    Routine routine)
      : name_(std::move(name)), routine_(std::move(routine)) {
    // A module of its own: the program's may be gone when this runs.
    module_ = std::make_unique<hlo::Module>();
    hlo::Computation* computation = module_->AddComputation("call");
    module_->set_entry(computation);
    std::vector<hlo::Instruction*> operands;
    for (size_t i = 0; i < instruction.operand_count(); ++i) {
      operands.push_back(computation->Add(hlo::Opcode::kParameter, instruction.operand(i)->shape(),
                                          {}, hlo::ParameterAttributes{static_cast<int64_t>(i)}));
    }
    const hlo::Instruction* call = computation->Add(instruction.opcode(), instruction.shape(),
                                                    operands, instruction.attributes());
    const hlo::Shape& shape = instruction.operand(0)->shape();
    for (int64_t i = 0; i < shape.rank() - matrix_rank; ++i) batch_ *= shape.dimension(i);
    work_ = batch_ == 0 ? 0 : shape.num_elements() / batch_;
    form_.emplace(*call, batch_);
  }

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    // Small matrices are handed out several at a time.
    int64_t per_chunk = std::max<int64_t>(1, 1024 / std::max<int64_t>(1, work_));
    context.threads.ParallelFor(hlo::CeilDivide(batch_, per_chunk), [&](int64_t chunk) {
      int64_t end = std::min(batch_, (chunk + 1) * per_chunk);
      for (int64_t i = chunk * per_chunk; i < end; ++i) {
        routine_(Item(*form_, operands, results, i));
      }
    });
  }
  std::string Description() const override {
    return "LAPACK " + name_ + " x " + std::to_string(batch_);
  }

 private:
  std::string name_;
  Routine routine_;
  std::unique_ptr<hlo::Module> module_;
  std::optional<ItemForm> form_;
  int64_t batch_ = 1, work_ = 0;
};

// One entry per routine: what it does to one batch element, and the rank of its first operand's
// part.
template <typename T>
const std::map<std::string, void (*)(const Item&)>& Routines() {
  static const auto* routines =
      new std::map<std::string, void (*)(const Item&)>{{"geqrf", Geqrf<T>},
                                                       {"geqp3", Geqp3<T>},
                                                       {kComplex<T> ? "ungqr" : "orgqr", Orgqr<T>},
                                                       {kComplex<T> ? "unmqr" : "ormqr", Ormqr<T>},
                                                       {"potrf", Potrf<T>},
                                                       {"getrf", Getrf<T>},
                                                       {"gesdd", SingularValues<T, false>},
                                                       {"gesvd", SingularValues<T, true>},
                                                       {kComplex<T> ? "heevd" : "syevd", Syevd<T>},
                                                       {"geev", Geev<T>},
                                                       {"gees", Gees<T>},
                                                       {"gehrd", Gehrd<T>},
                                                       {kComplex<T> ? "hetrd" : "sytrd", Sytrd<T>},
                                                       {"gtsv", Gtsv<T>},
                                                       {"sytrf", Sytrf<T, false>},
                                                       {"sytrs", Sytrs<T, false>},
                                                       {"hetrf", Sytrf<T, true>},
                                                       {"hetrs", Sytrs<T, true>},
                                                       {"gels", Gels<T>},
                                                       {"gelsy", Gelsy<T>},
                                                       {"gelsd", Gelsd<T>},
                                                       {"gelss", Gelss<T>},
                                                       {"trsm", TrsmCall<T>}};
  return *routines;
}

// Calls f with the C++ type; null for types that LAPACK does not have.
template <typename F>
std::unique_ptr<LibraryCall> WithType(hlo::ElementType type, const F& f) {
  switch (type) {
    case hlo::ElementType::kF32:
      return f.template operator()<float>();
    case hlo::ElementType::kF64:
      return f.template operator()<double>();
    case hlo::ElementType::kC64:
      return f.template operator()<std::complex<float>>();
    case hlo::ElementType::kC128:
      return f.template operator()<std::complex<double>>();
    default:
      return nullptr;
  }
}

std::unique_ptr<LibraryCall> BindCustomCall(const hlo::Instruction& call) {
  constexpr std::string_view kPrefix = "lapack_", kSuffix = "_ffi";
  std::string_view target = call.as<hlo::CustomCallAttributes>().target;
  if (!target.starts_with(kPrefix) || !target.ends_with(kSuffix) || call.operand_count() == 0) {
    return nullptr;
  }
  target = target.substr(kPrefix.size(), target.size() - kPrefix.size() - kSuffix.size());
  if (target.empty()) return nullptr;
  std::string name(target.substr(1));
  hlo::ElementType type = call.operand(0)->element_type();
  return WithType(type, [&]<typename T>() -> std::unique_ptr<LibraryCall> {
    constexpr char kLetter = std::is_same_v<T, float>                 ? 's'
                             : std::is_same_v<T, double>              ? 'd'
                             : std::is_same_v<T, std::complex<float>> ? 'c'
                                                                      : 'z';
    auto found = Routines<T>().find(name);
    if (target[0] != kLetter || found == Routines<T>().end()) return nullptr;
    CheckLapackForm(call, name);
    int64_t rank = name == "gtsv" ? 1 : 2;
    return std::make_unique<LinearAlgebraCall>(call, std::string(target), rank, found->second);
  });
}

}  // namespace

std::unique_ptr<LibraryCall> BindLinearAlgebra(const hlo::Instruction& instruction) {
  if (instruction.opcode() == hlo::Opcode::kCustomCall) return BindCustomCall(instruction);
  return WithType(instruction.element_type(), [&]<typename T>() -> std::unique_ptr<LibraryCall> {
    if (instruction.opcode() == hlo::Opcode::kCholesky) {
      bool lower = instruction.as<hlo::CholeskyAttributes>().lower;
      return std::make_unique<LinearAlgebraCall>(
          instruction, "potrf", 2, [lower](const Item& x) { FactorCholesky<T>(x, lower); });
    }
    const auto& attributes = instruction.as<hlo::TriangularSolveAttributes>();
    TriangularForm form{attributes.left_side, attributes.lower, attributes.unit_diagonal,
                        attributes.transpose_a == hlo::Transpose::kNoTranspose ? 'N'
                        : attributes.transpose_a == hlo::Transpose::kTranspose ? 'T'
                                                                               : 'C'};
    return std::make_unique<LinearAlgebraCall>(
        instruction, "trsm", 2, [form](const Item& x) { SolveTriangular<T>(x, form); });
  });
}

}  // namespace cpu
