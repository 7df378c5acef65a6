// LAPACK's routines by name and number type. Fortran passes everything by pointer, so a routine is
// called with the pointers that its documentation lists.
#pragma once

#include <complex>
#include <type_traits>

#define CPU_LAPACK_ROUTINES(X) \
  X(potrf)                     \
  X(getrf)                     \
  X(geqrf)                     \
  X(geqp3)                     \
  X(gesdd)                     \
  X(gesvd) X(geev) X(gees) X(gehrd) X(gtsv) X(sytrf) X(sytrs) X(gels) X(gelsy) X(gelsd) X(gelss)
// Real and complex variants with different names.
#define CPU_LAPACK_PAIRS(X) X(orgqr, ungqr) X(ormqr, unmqr) X(syevd, heevd) X(sytrd, hetrd)
// For Hermitian matrices, which are symmetric where they are real.
#define CPU_LAPACK_HERMITIAN(X) X(sytrf, hetrf) X(sytrs, hetrs)

extern "C" {
#define CPU_DECLARE(name) void s##name##_(), d##name##_(), c##name##_(), z##name##_();
CPU_LAPACK_ROUTINES(CPU_DECLARE)
#undef CPU_DECLARE
#define CPU_DECLARE(real, complex) \
  void s##real##_(), d##real##_(), c##complex##_(), z##complex##_();
CPU_LAPACK_PAIRS(CPU_DECLARE)
CPU_LAPACK_HERMITIAN(CPU_DECLARE)
#undef CPU_DECLARE
}

namespace cpu::lapack {

template <typename T, typename... Arguments>
void Choose(void (*s)(), void (*d)(), void (*c)(), void (*z)(), Arguments*... arguments) {
  void (*routine)() = std::is_same_v<T, float>                 ? s
                      : std::is_same_v<T, double>              ? d
                      : std::is_same_v<T, std::complex<float>> ? c
                                                               : z;
  reinterpret_cast<void (*)(Arguments*...)>(routine)(arguments...);
}

#define CPU_DEFINE(name)                                                     \
  template <typename T, typename... Arguments>                               \
  void name(Arguments*... arguments) {                                       \
    Choose<T>(s##name##_, d##name##_, c##name##_, z##name##_, arguments...); \
  }
CPU_LAPACK_ROUTINES(CPU_DEFINE)
#undef CPU_DEFINE
#define CPU_DEFINE(real, complex)                                                  \
  template <typename T, typename... Arguments>                                     \
  void real(Arguments*... arguments) {                                             \
    Choose<T>(s##real##_, d##real##_, c##complex##_, z##complex##_, arguments...); \
  }
CPU_LAPACK_PAIRS(CPU_DEFINE)
#undef CPU_DEFINE

#define CPU_DEFINE(real, complex)                                                  \
  template <typename T, typename... Arguments>                                     \
  void complex(Arguments*... arguments) {                                          \
    Choose<T>(s##real##_, d##real##_, c##complex##_, z##complex##_, arguments...); \
  }
CPU_LAPACK_HERMITIAN(CPU_DEFINE)
#undef CPU_DEFINE

}  // namespace cpu::lapack
