// LAPACK's routines as custom calls, for engines that have them.
//
// The target is lapack_<t><routine>_ffi, where t is s, d, c or z for f32, f64, c64 or c128, and the
// api version is 4: attributes are a dictionary. Letters are u8. Matrices are the last two
// dimensions of an operand or result, row-major; dimensions before them are the batch, the same in
// all operands and results. `info` (s32, one for each matrix) is LAPACK's: 0 for success. The
// first group is what JAX lowers to on CPUs, in its form; the second is this project's own.
//
//   geqrf         a [m,n]                      → packed [m,n], tau [k]             k = min(m, n)
//   orgqr, ungqr  packed [m,n], tau [k]        → q [m,n]                           k <= n <= m
//   ormqr, unmqr  packed [r,k], tau [k],       → q·c, q*·c, c·q or c·q*
//                 c [m,n]                        left, transpose (bool)
//   potrf         a [n,n]                      → factor, info                      uplo: L, U
//   getrf         a [m,n]                      → lu [m,n], pivots s32 [k], info    pivots from 1
//   gesdd         a [m,n]                      → overwritten a, s [k], u, vh, info mode: A, S, N
//   syevd, heevd  a [n,n]                      → vectors [n,n], w [n], info        mode: V, N;
//                                                                                  uplo: L, U
//   geev          a [n,n]                      → w [n] (real: two, the real and the imaginary
//                                                part), left [n,n], right [n,n] (complex), info
//                                                compute_left, compute_right: V, N
//
//   sytrf, hetrf  a [n,n]                      → ld [n,n], pivots s32 [n], info    uplo: L, U
//   sytrs, hetrs  ld [n,n], pivots s32 [n],    → x [n,r]                           uplo: L, U
//                 b [n,r]
//   gels, gelsy,  a [m,n], b [max(m,n),r]      → x [max(m,n),r], rank s32, s [k], info
//   gelsd, gelss                                 rcond (f64; not gels). Where m > n, x's last m - n
//                                                rows tell the residuals, in LAPACK's way. gels
//                                                says k as the rank; gels and gelsy leave s zero.
//
// An engine says that it has them all by the plugin attribute below.
#pragma once

#include <string>

#include "hlo/builder.h"

namespace hlo::lapack {

// Attribute of the plugin (a number, the version of the list above).
inline constexpr char kPluginAttribute[] = "lapack_custom_calls";

// Each makes the call; where the first operand has no elements there is nothing to compute, and
// all results are zero. Results are those above, in that order.
std::vector<Value> Geqrf(Builder& b, Value a);
Value Orgqr(Builder& b, Value packed, Value tau);
Value Ormqr(Builder& b, Value packed, Value tau, Value c, bool left, bool transpose);
std::vector<Value> Potrf(Builder& b, Value a, bool lower);
std::vector<Value> Getrf(Builder& b, Value a);
enum class SingularVectors { kAll, kThin, kNone };
struct Svd {
  Value u, s, vh, info;
};
Svd Gesdd(Builder& b, Value a, SingularVectors vectors);
struct Eigen {
  Value values, vectors, info;
};
Eigen Syevd(Builder& b, Value a, bool lower, bool vectors);
// The values are complex, the vectors the right ones.
Eigen Geev(Builder& b, Value a, bool vectors);
// Real matrices are symmetric either way. Reads the lower triangle.
std::vector<Value> Sytrf(Builder& b, Value a, bool hermitian);
Value Sytrs(Builder& b, Value ld, Value pivots, Value rhs, bool hermitian);
// `driver`: gels, gelsy, gelsd or gelss.
std::vector<Value> LeastSquares(Builder& b, const std::string& driver, Value a, Value rhs,
                                double rcond);

}  // namespace hlo::lapack
