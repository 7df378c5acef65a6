#include "cpu/library/fft_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#include "cpu/library/fft_lanes.h"
#include "cpu/library/vector_clones.h"
#include "cpu/memory.h"

namespace cpu {
namespace {

#define FFT_INLINE [[gnu::always_inline]] inline

constexpr int64_t kMostRadix = 64;

// exp(-2 pi i k / n).
template <typename R>
void WriteRoot(int64_t k, int64_t n, R* pair) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
  pair[0] = static_cast<R>(std::cos(angle));
  pair[1] = static_cast<R>(std::sin(angle));
}

template <typename N, typename R>
FFT_INLINE N Times(const N& a, const R* root) {
  return {a.real * root[0] - a.imaginary * root[1], a.real * root[1] + a.imaginary * root[0]};
}
template <typename N>
FFT_INLINE N Sum(const N& a, const N& b) {
  return {a.real + b.real, a.imaginary + b.imaginary};
}
template <typename N>
FFT_INLINE N Difference(const N& a, const N& b) {
  return {a.real - b.real, a.imaginary - b.imaginary};
}
// -i a.
template <typename N>
FFT_INLINE N TurnedBack(const N& a) {
  return {a.imaginary, -a.real};
}

// The transform of a[0], a[step], …, written to b, except for b[0] times the twiddles.
struct Two {
  template <typename N, typename R>
  FFT_INLINE static void Run(const N* a, int64_t step, N* b, int64_t out, const R* w, const R*,
                             int64_t) {
    const N first = a[0], second = a[step];
    b[0] = Sum(first, second);
    b[out] = Times(Difference(first, second), w);
  }
};

struct Four {
  template <typename N, typename R>
  FFT_INLINE static void Run(const N* a, int64_t step, N* b, int64_t out, const R* w, const R*,
                             int64_t) {
    const N even = Sum(a[0], a[2 * step]), even_rest = Difference(a[0], a[2 * step]);
    const N odd = Sum(a[step], a[3 * step]);
    const N odd_rest = TurnedBack(Difference(a[step], a[3 * step]));
    b[0] = Sum(even, odd);
    b[out] = Times(Sum(even_rest, odd_rest), w);
    b[2 * out] = Times(Difference(even, odd), w + 2);
    b[3 * out] = Times(Difference(even_rest, odd_rest), w + 4);
  }
};

// Elements as far from the first as from the end meet the same cosines, and sines of other signs.
// `fixed`: the radix, or 0 for any.
template <int64_t fixed>
struct Odd {
  template <typename N, typename R>
  FFT_INLINE static void Run(const N* a, int64_t step, N* b, int64_t out, const R* w,
                             const R* roots, int64_t any) {
    const int64_t radix = fixed != 0 ? fixed : any, half = radix / 2;
    constexpr int64_t kMost = (fixed != 0 ? fixed : kMostRadix) / 2;
    N sums[kMost], differences[kMost];
    N total = a[0];
    for (int64_t k = 1; k <= half; ++k) {
      sums[k - 1] = Sum(a[k * step], a[(radix - k) * step]);
      differences[k - 1] = Difference(a[k * step], a[(radix - k) * step]);
      total = Sum(total, sums[k - 1]);
    }
    for (int64_t j = 1; j <= half; ++j) {
      N even = a[0], odd{};
      int64_t root = 0;
      for (int64_t k = 0; k < half; ++k) {
        root += j;
        if (root >= radix) root -= radix;
        const R cosine = roots[2 * root], sine = -roots[2 * root + 1];
        even.real += sums[k].real * cosine, even.imaginary += sums[k].imaginary * cosine;
        odd.real += differences[k].real * sine, odd.imaginary += differences[k].imaginary * sine;
      }
      odd = TurnedBack(odd);
      b[j * out] = Times(Sum(even, odd), w + 2 * (j - 1));
      b[(radix - j) * out] = Times(Difference(even, odd), w + 2 * (radix - j - 1));
    }
    b[0] = total;
  }
};

template <typename Butterfly, typename R, typename N>
FFT_INLINE void RunStage(const FftStage<R>& stage, const N* from, N* to) {
  const int64_t stride = stage.stride, rest = stage.rest, radix = stage.radix;
  for (int64_t p = 0; p < rest; ++p) {
    const R* twiddles = stage.twiddles + 2 * (radix - 1) * p;
    for (int64_t q = 0; q < stride; ++q) {
      Butterfly::Run(from + stride * p + q, stride * rest, to + stride * radix * p + q, stride,
                     twiddles, stage.roots, radix);
    }
  }
}

template <typename R, typename N>
FFT_INLINE N* RunAll(const std::vector<FftStage<R>>& stages, N* data, N* scratch) {
  for (const auto& stage : stages) {
    switch (stage.radix) {
      case 2:
        RunStage<Two>(stage, data, scratch);
        break;
      case 3:
        RunStage<Odd<3>>(stage, data, scratch);
        break;
      case 4:
        RunStage<Four>(stage, data, scratch);
        break;
      case 5:
        RunStage<Odd<5>>(stage, data, scratch);
        break;
      case 7:
        RunStage<Odd<7>>(stage, data, scratch);
        break;
      default:
        RunStage<Odd<0>>(stage, data, scratch);
    }
    std::swap(data, scratch);
  }
  return data;
}

// Templates have no clones.
#define FFT_RUN_STAGES(R, lanes)                                                           \
  CPU_VECTOR_CLONES FftNumber<R, lanes>* RunStages(const std::vector<FftStage<R>>& stages, \
                                                   FftNumber<R, lanes>* data,              \
                                                   FftNumber<R, lanes>* scratch) {         \
    return RunAll(stages, data, scratch);                                                  \
  }
FFT_RUN_STAGES(float, kFftLanes<float>)
FFT_RUN_STAGES(float, 1)
FFT_RUN_STAGES(double, kFftLanes<double>)
FFT_RUN_STAGES(double, 1)
#undef FFT_RUN_STAGES

// Where the factors up to kMostRadix end; 1 if there are no others.
int64_t LargeFactor(int64_t n) {
  for (int64_t radix = 2; radix <= kMostRadix; ++radix) {
    while (n % radix == 0) n /= radix;
  }
  return n;
}

int64_t NextRadix(int64_t n) {
  if (n % 4 == 0) return 4;
  int64_t radix = 2;
  while (n % radix != 0) ++radix;
  return radix;
}

}  // namespace

template <typename R, int64_t lanes>
FftPlan<R, lanes>::FftPlan(int64_t length) : length_(length) {
  if (LargeFactor(length) > 1) {
    MakeConvolution();
    return;
  }
  int64_t stride = 1;
  for (int64_t rest = length; rest > 1;) {
    const int64_t radix = NextRadix(rest);
    rest /= radix;
    AddStage(radix, rest, stride);
    stride *= radix;
  }
}

template <typename R, int64_t lanes>
void FftPlan<R, lanes>::AddStage(int64_t radix, int64_t rest, int64_t stride) {
  auto& twiddles =
      tables_.emplace_back(std::make_unique_for_overwrite<R[]>(2 * (radix - 1) * rest));
  for (int64_t p = 0; p < rest; ++p) {
    for (int64_t j = 1; j < radix; ++j) {
      WriteRoot(p * j, radix * rest, &twiddles[2 * ((radix - 1) * p + j - 1)]);
    }
  }
  const R* made = twiddles.get();
  auto& roots = tables_.emplace_back(std::make_unique_for_overwrite<R[]>(2 * radix));
  for (int64_t k = 0; k < radix; ++k) WriteRoot(k, radix, &roots[2 * k]);
  stages_.push_back({radix, rest, stride, made, roots.get()});
}

// With jk = (j² + k² - (k - j)²) / 2 the transform is a convolution with a chirp.
template <typename R, int64_t lanes>
void FftPlan<R, lanes>::MakeConvolution() {
  const auto size = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * length_ - 1)));
  convolution_ = std::make_unique<FftPlan>(size);
  chirp_.resize(2 * length_);
  const Block memory(2 * size * sizeof(Number));
  auto* kernel = static_cast<Number*>(memory.data());
  std::fill_n(kernel, size, Number{});
  for (int64_t k = 0; k < length_; ++k) {
    R* root = &chirp_[2 * k];
    // The square, without more bits than there are.
    WriteRoot(static_cast<int64_t>(static_cast<unsigned __int128>(k) * k % (2 * length_)),
              2 * length_, root);
    Number& number = kernel[k];
    number.real[0] = root[0], number.imaginary[0] = -root[1];
    if (k > 0) kernel[size - k] = number;
  }
  const Number* transformed = convolution_->Run(kernel, kernel + size);
  for (int64_t k = 0; k < size; ++k) {
    kernel_.push_back(transformed[k].real[0] / static_cast<R>(size));
    kernel_.push_back(transformed[k].imaginary[0] / static_cast<R>(size));
  }
}

template <typename R, int64_t lanes>
auto FftPlan<R, lanes>::Convolve(Number* data, Number* scratch) const -> Number* {
  const int64_t size = this->size();
  MultiplyEach(data, length_, chirp_.data(), data);
  std::fill(data + length_, data + size, Number{});
  Number* transformed = convolution_->Run(data, scratch);
  // The inverse transform is the forward one of exchanged parts.
  MultiplyEach(transformed, size, kernel_.data(), transformed);
  ExchangeParts(transformed, size, R{1});
  Number* other = transformed == data ? scratch : data;
  Number* result = convolution_->Run(transformed, other);
  ExchangeParts(result, length_, R{1});
  MultiplyEach(result, length_, chirp_.data(), result);
  return result;
}

template <typename R, int64_t lanes>
auto FftPlan<R, lanes>::Run(Number* data, Number* scratch) const -> Number* {
  return convolution_ ? Convolve(data, scratch) : RunStages(stages_, data, scratch);
}

template class FftPlan<float, kFftLanes<float>>;
template class FftPlan<float, 1>;
template class FftPlan<double, kFftLanes<double>>;
template class FftPlan<double, 1>;

}  // namespace cpu
