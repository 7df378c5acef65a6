// Keeps NaN where OpenBLAS multiplies a vector by one. Its kernels of assembly code take NaN for
// zero, as they compare without asking whether the numbers compare at all, and fill the vector with
// zeros: factors of single-precision matrices lost the NaN that they have to show. The linker sends
// the tables of kernels here (--wrap in CMakeLists.txt). Source: OpenBLAS 0.3.21,
// kernel/x86_64/scal_sse.S, zscal_sse.S, zscal_sse2.S.
//
// All kernels fill with zeros where they multiply by zero, as a product's beta asks for. LAPACK,
// whose calls come by the BLAS's own names, asks for the product: zero is the reciprocal of an
// infinite norm, and infinity times zero is NaN.
#include <cmath>
#include <complex>
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
#undef CPU_KEEP_NAN

#define CPU_MULTIPLY_BY_ZERO(routine, Factor, Number)                                \
  extern "C" void __real_##routine(const int* count, const Factor* alpha, Number* x, \
                                   const int* step);                                 \
  extern "C" void __wrap_##routine(const int* count, const Factor* alpha, Number* x, \
                                   const int* step) {                                \
    if (*alpha != Factor(0)) return __real_##routine(count, alpha, x, step);         \
    for (long i = 0; *step > 0 && i < *count; ++i) x[i * *step] *= *alpha;           \
  }
CPU_MULTIPLY_BY_ZERO(sscal_, float, float)
CPU_MULTIPLY_BY_ZERO(dscal_, double, double)
CPU_MULTIPLY_BY_ZERO(cscal_, std::complex<float>, std::complex<float>)
CPU_MULTIPLY_BY_ZERO(zscal_, std::complex<double>, std::complex<double>)
CPU_MULTIPLY_BY_ZERO(csscal_, float, std::complex<float>)
CPU_MULTIPLY_BY_ZERO(zdscal_, double, std::complex<double>)
#undef CPU_MULTIPLY_BY_ZERO
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
