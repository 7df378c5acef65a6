// Loops over a block's numbers around its transform, in the widest vectors of the machine.
#pragma once

#include <complex>
#include <cstdint>

#include "cpu/library/fft_plan.h"

namespace cpu {

// For R in {float, double} and lanes in {kFftLanes<R>, 1}.
#define FFT_LANE_LOOPS(R, lanes)                                                                  \
  /* Exchanges the parts of `count` numbers, and multiplies both with `scale`. */                 \
  void ExchangeParts(FftNumber<R, lanes>* data, int64_t count, R scale);                          \
  /* out[k] = data[k] * factors[k], pairs. */                                                     \
  void MultiplyEach(const FftNumber<R, lanes>* data, int64_t count, const R* factors,             \
                    FftNumber<R, lanes>* out);                                                    \
  /* Of real lines of twice the length, whose neighbours were one complex number: their spectrum, \
     of length + 1 numbers, from the transform of these. `roots`: exp(-pi i k / length). */       \
  void SpectrumOfReal(const FftNumber<R, lanes>* data, int64_t length,                            \
                      const std::complex<R>* roots, FftNumber<R, lanes>* spectrum);               \
  /* The way back: the numbers whose inverse transform has real neighbours as its parts. What     \
     would be imaginary in the first and last number of such a spectrum is passed over. */        \
  void PairsOfReal(FftNumber<R, lanes>* spectrum, int64_t length, const std::complex<R>* roots,   \
                   FftNumber<R, lanes>* pairs);

FFT_LANE_LOOPS(float, kFftLanes<float>)
FFT_LANE_LOOPS(float, 1)
FFT_LANE_LOOPS(double, kFftLanes<double>)
FFT_LANE_LOOPS(double, 1)
#undef FFT_LANE_LOOPS

}  // namespace cpu
