// Keeps NaN where OpenBLAS multiplies a vector by one. Its kernels of assembly code take NaN for
// zero, as they compare without asking whether the numbers compare at all, and fill the vector with
// zeros: factors of single-precision matrices lost the NaN that they have to show. The linker sends
// the tables of kernels here (--wrap in CMakeLists.txt). Source: OpenBLAS 0.3.21,
// kernel/x86_64/scal_sse.S, zscal_sse.S, zscal_sse2.S.
#include <cmath>
#include <limits>

namespace {

// A kernel's `count` numbers, of `parts` real ones each, are `step` numbers apart.
template <typename Real>
void FillWithNan(long count, int parts, Real* x, long step) {
  for (long i = 0; i < count; ++i) {
    for (int p = 0; p < parts; ++p) {
      x[i * step * parts + p] = std::numeric_limits<Real>::quiet_NaN();
    }
  }
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
#define CPU_KEEP_NAN(kernel)                                                                       \
  extern "C" int __real_##kernel(long count, long, long, float alpha, float* x, long step, float*, \
                                 long, float*, long);                                              \
  extern "C" int __wrap_##kernel(long count, long a, long b, float alpha, float* x, long step,     \
                                 float* y, long y_step, float* c, long d) {                        \
    if (!std::isnan(alpha)) {                                                                      \
      return __real_##kernel(count, a, b, alpha, x, step, y, y_step, c, d);                        \
    }                                                                                              \
    FillWithNan(count, 1, x, step);                                                                \
    return 0;                                                                                      \
  }
CPU_KEEP_NAN(sscal_k_PRESCOTT)
CPU_KEEP_NAN(sscal_k_SANDYBRIDGE)
CPU_KEEP_NAN(sscal_k_HASWELL)
CPU_KEEP_NAN(sscal_k_SKYLAKEX)
#undef CPU_KEEP_NAN

#define CPU_KEEP_NAN(kernel, Real)                                                               \
  extern "C" int __real_##kernel(long count, long, long, Real real, Real imaginary, Real* x,     \
                                 long step, Real*, long, Real*, long);                           \
  extern "C" int __wrap_##kernel(long count, long a, long b, Real real, Real imaginary, Real* x, \
                                 long step, Real* y, long y_step, Real* c, long d) {             \
    if (!std::isnan(real) && !std::isnan(imaginary)) {                                           \
      return __real_##kernel(count, a, b, real, imaginary, x, step, y, y_step, c, d);            \
    }                                                                                            \
    FillWithNan(count, 2, x, step);                                                              \
    return 0;                                                                                    \
  }
CPU_KEEP_NAN(cscal_k_PRESCOTT, float)
CPU_KEEP_NAN(zscal_k_PRESCOTT, double)
CPU_KEEP_NAN(zscal_k_SANDYBRIDGE, double)
#undef CPU_KEEP_NAN
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
