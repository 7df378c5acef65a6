#include "cpu/library/fft_lanes.h"

#include "cpu/library/vector_clones.h"

namespace cpu {
namespace {

#define FFT_LANES_INLINE [[gnu::always_inline]] inline

template <typename N, typename R>
FFT_LANES_INLINE void Exchange(N* data, int64_t count, R scale) {
  for (int64_t i = 0; i < count; ++i) {
    data[i] = {data[i].imaginary * scale, data[i].real * scale};
  }
}

template <typename N, typename R>
FFT_LANES_INLINE void Multiply(const N* data, int64_t count, const R* factors, N* out) {
  for (int64_t k = 0; k < count; ++k) {
    const auto real = data[k].real, imaginary = data[k].imaginary;
    const R a = factors[2 * k], b = factors[2 * k + 1];
    out[k] = {real * a - imaginary * b, real * b + imaginary * a};
  }
}

// Number k of a spectrum, of that and the number as far from the end.
template <typename N, typename R>
FFT_LANES_INLINE N SpectrumAt(const N& a, const N& b, const std::complex<R>& root) {
  const R half{0.5}, c = root.real(), s = root.imag();
  const auto even_real = (a.real + b.real) * half;
  const auto even_imaginary = (a.imaginary - b.imaginary) * half;
  const auto odd_real = (a.imaginary + b.imaginary) * half;
  const auto odd_imaginary = (b.real - a.real) * half;
  return {even_real + odd_real * c - odd_imaginary * s,
          even_imaginary + odd_real * s + odd_imaginary * c};
}

template <typename N, typename R>
FFT_LANES_INLINE void ToSpectrum(const N* data, int64_t length, const std::complex<R>* roots,
                                 N* spectrum) {
  spectrum[0] = SpectrumAt(data[0], data[0], roots[0]);
  for (int64_t k = 1; k < length; ++k) {
    spectrum[k] = SpectrumAt(data[k], data[length - k], roots[k]);
  }
  spectrum[length] = SpectrumAt(data[0], data[0], roots[length]);
}

template <typename N, typename R>
FFT_LANES_INLINE void ToPairs(N* spectrum, int64_t length, const std::complex<R>* roots, N* pairs) {
  const R half{0.5};
  spectrum[0].imaginary = spectrum[length].imaginary = decltype(spectrum[0].imaginary){};
  for (int64_t k = 0; k < length; ++k) {
    const N &a = spectrum[k], &b = spectrum[length - k];
    const R c = roots[k].real(), s = -roots[k].imag();
    const auto even_real = (a.real + b.real) * half;
    const auto even_imaginary = (a.imaginary - b.imaginary) * half;
    const auto turned_real = (a.real - b.real) * half;
    const auto turned_imaginary = (a.imaginary + b.imaginary) * half;
    const auto odd_real = turned_real * c - turned_imaginary * s;
    const auto odd_imaginary = turned_real * s + turned_imaginary * c;
    pairs[k] = {even_real - odd_imaginary, even_imaginary + odd_real};
  }
}

}  // namespace

// Templates have no clones.
#define FFT_LANE_LOOPS(R, lanes)                                                                 \
  CPU_VECTOR_CLONES void ExchangeParts(FftNumber<R, lanes>* data, int64_t count, R scale) {      \
    Exchange(data, count, scale);                                                                \
  }                                                                                              \
  CPU_VECTOR_CLONES void MultiplyEach(const FftNumber<R, lanes>* data, int64_t count,            \
                                      const R* factors, FftNumber<R, lanes>* out) {              \
    Multiply(data, count, factors, out);                                                         \
  }                                                                                              \
  CPU_VECTOR_CLONES void SpectrumOfReal(const FftNumber<R, lanes>* data, int64_t length,         \
                                        const std::complex<R>* roots,                            \
                                        FftNumber<R, lanes>* spectrum) {                         \
    ToSpectrum(data, length, roots, spectrum);                                                   \
  }                                                                                              \
  CPU_VECTOR_CLONES void PairsOfReal(FftNumber<R, lanes>* spectrum, int64_t length,              \
                                     const std::complex<R>* roots, FftNumber<R, lanes>* pairs) { \
    ToPairs(spectrum, length, roots, pairs);                                                     \
  }

FFT_LANE_LOOPS(float, kFftLanes<float>)
FFT_LANE_LOOPS(float, 1)
FFT_LANE_LOOPS(double, kFftLanes<double>)
FFT_LANE_LOOPS(double, 1)
#undef FFT_LANE_LOOPS

}  // namespace cpu
