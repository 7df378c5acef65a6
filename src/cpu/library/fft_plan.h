// Complex Fourier transforms of many lines at a time, one in each lane of the machine's vectors, or
// of one line.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace cpu {

// Of the vectors that many lines are transformed in.
template <typename R>
inline constexpr int64_t kFftLanes = 64 / sizeof(R);

// An element of each of `lanes` lines: kFftLanes, or one.
template <typename R, int64_t lanes>
struct FftNumber {
  using Vector [[gnu::vector_size(lanes * sizeof(R))]] = R;

  Vector real, imaginary;
};

// Divides transforms of radix * rest elements into ones of `rest`.
template <typename R>
struct FftStage {
  int64_t radix, rest;
  int64_t stride;     // the product of the radices before
  const R* twiddles;  // radix - 1 pairs for each number below `rest`
  const R* roots;     // of unity: `radix` pairs
};

// How to transform lines of one length; immutable. By the factors of the length (Stockham's order,
// which needs no reversal of digits); where one of them is large, by a convolution of the next
// power of two (Bluestein).
template <typename R, int64_t lanes>
class FftPlan {
 public:
  using Number = FftNumber<R, lanes>;

  explicit FftPlan(int64_t length);

  // How many numbers `data` and `scratch` have each: the length or more.
  int64_t size() const { return convolution_ ? convolution_->size() : length_; }

  // The forward transform of the first `length` numbers, in order; it lies where the result says,
  // in one of the two. The inverse, times the length, is this of numbers whose parts are exchanged,
  // before and after.
  Number* Run(Number* data, Number* scratch) const;

 private:
  void AddStage(int64_t radix, int64_t rest, int64_t stride);
  void MakeConvolution();
  Number* Convolve(Number* data, Number* scratch) const;

  int64_t length_;
  std::vector<FftStage<R>> stages_;
  std::vector<std::unique_ptr<R[]>> tables_;
  std::unique_ptr<FftPlan> convolution_;  // of Bluestein's method
  std::vector<R> chirp_, kernel_;         // pairs
};

extern template class FftPlan<float, kFftLanes<float>>;
extern template class FftPlan<float, 1>;
extern template class FftPlan<double, kFftLanes<double>>;
extern template class FftPlan<double, 1>;

}  // namespace cpu
