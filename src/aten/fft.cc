// Discrete Fourier transforms: torch's normalisations and any set of dimensions
// over HLO's transform of the last ones.

#include <cmath>

#include "aten/dimension.h"
#include "aten/number_output.h"
#include "aten/op.h"

namespace torch_xla {
namespace {

// at::native::fft_norm_mode.
enum Normalization : int64_t { kNone = 0, kByRoot = 1, kByCount = 2 };

// What a sum over `count` elements is multiplied by; HLO's inverse has divided it by their number.
double SumFactor(int64_t normalization, int64_t count, bool is_divided) {
  const auto n = static_cast<double>(count);
  switch (normalization) {
    case kNone:
      return is_divided ? n : 1;
    case kByRoot:
      return is_divided ? std::sqrt(n) : 1 / std::sqrt(n);
    default:
      return is_divided ? 1 : 1 / n;
  }
}

// The parts are multiplied each for itself: a product of complex numbers makes NaN of infinities.
Value TimesFactor(Builder& b, Value x, double scale) {
  if (scale == 1) return x;
  const auto times = [&](Value part) { return b.Multiply(part, Like(b, part, scale)); };
  if (!hlo::IsComplex(x->element_type())) return times(x);
  return b.Complex(times(b.Real(x)), times(b.Imag(x)));
}

// The dimension at the end, where HLO transforms.
Value OnLast(Builder& b, Value x, int64_t dimension, hlo::FftType type, int64_t length) {
  int64_t rank = x->shape().rank();
  Value moved = b.Transpose(x, MoveDimensionPermutation(rank, dimension, rank - 1));
  Value transformed = b.Fft(moved, type, {length});
  return b.Transpose(transformed, MoveDimensionPermutation(rank, rank - 1, dimension));
}

Value AlongEach(Builder& b, Value x, const Dimensions& dimensions, bool forward) {
  for (int64_t d : dimensions) {
    int64_t length = x->shape().dimension(d);
    x = OnLast(b, x, d, forward ? hlo::FftType::kFft : hlo::FftType::kIfft, length);
  }
  return x;
}

Value ComplexToComplex(Builder& b, Value x, Dimensions dimensions, int64_t normalization,
                       bool forward) {
  Dimensions wrapped = WrapDimensions(dimensions, x->shape().rank());
  int64_t count = NumElements(x->dimensions(), wrapped);
  const double scale = SumFactor(normalization, count, /*is_divided=*/!forward);
  return TimesFactor(b, AlongEach(b, x, wrapped, forward), scale);
}

// The half that a symmetric spectrum leaves out: the conjugate of the kept
// half, backwards in all the transformed dimensions.
Value CompleteSpectrum(Builder& b, Value half, const Dimensions& dimensions, int64_t length) {
  int64_t last = dimensions.back(), kept = half->shape().dimension(last);
  if (length - kept <= 0) return half;
  Value mirrored = b.SliceInDim(half, last, 1, length - kept + 1);
  mirrored = b.Complex(b.Real(mirrored), b.Negate(b.Imag(mirrored)));
  mirrored = b.Reverse(mirrored, {last});
  for (size_t i = 0; i + 1 < dimensions.size(); ++i) {
    int64_t d = dimensions[i], size = mirrored->shape().dimension(d);
    // Frequency k is at -k: 0 stays and the rest turns around.
    Value rest = b.Reverse(b.SliceInDim(mirrored, d, 1, size), {d});
    mirrored = b.Concatenate({b.SliceInDim(mirrored, d, 0, 1), rest}, d);
  }
  return b.Concatenate({half, mirrored}, last);
}

Value RealToComplex(Builder& b, Value x, Dimensions dimensions, int64_t normalization,
                    bool one_sided) {
  Dimensions wrapped = WrapDimensions(dimensions, x->shape().rank());
  int64_t count = NumElements(x->dimensions(), wrapped), last = wrapped.back();
  int64_t length = x->shape().dimension(last);
  Value half = OnLast(b, x, last, hlo::FftType::kRfft, length);
  Dimensions others(wrapped.begin(), wrapped.end() - 1);
  Value spectrum = AlongEach(b, half, others, true);
  if (!one_sided) spectrum = CompleteSpectrum(b, spectrum, wrapped, length);
  return TimesFactor(b, spectrum, SumFactor(normalization, count, /*is_divided=*/false));
}

Value ComplexToReal(Builder& b, Value x, Dimensions dimensions, int64_t normalization,
                    int64_t last_size) {
  Dimensions wrapped = WrapDimensions(dimensions, x->shape().rank());
  int64_t last = wrapped.back();
  Dimensions others(wrapped.begin(), wrapped.end() - 1);
  int64_t count = NumElements(x->dimensions(), others) * last_size;
  Value partial = AlongEach(b, x, others, false);
  Value half = b.SliceInDim(partial, last, 0, last_size / 2 + 1);
  Value result = OnLast(b, half, last, hlo::FftType::kIrfft, last_size);
  return TimesFactor(b, result, SumFactor(normalization, count, /*is_divided=*/true));
}

// torch's own writes the negative half through an empty part of the result.
at::Tensor Frequencies(int64_t n, double d, std::optional<at::ScalarType> type,
                       std::optional<at::Layout> layout, std::optional<at::Device> device,
                       std::optional<bool> pin_memory) {
  auto options = at::TensorOptions()
                     .dtype(type.value_or(c10::get_default_dtype_as_scalartype()))
                     .layout(layout)
                     .device(device)
                     .pinned_memory(pin_memory);
  int64_t positive = (n + 1) / 2;
  at::Tensor halves[] = {at::arange(positive, options), at::arange(-(n / 2), 0, options)};
  return at::cat(halves).mul_(1.0 / (static_cast<double>(n) * d));
}

at::Tensor& FrequenciesInto(int64_t n, double d, at::Tensor& out) {
  return WriteRange(out, at::fft_fftfreq(n, d, out.options()));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("fft_fftfreq", &Frequencies);
  m.impl("fft_fftfreq.out", &FrequenciesInto);
  Register<&ComplexToComplex>(m, "_fft_c2c");
  Register<&RealToComplex>(m, "_fft_r2c");
  Register<&ComplexToReal>(m, "_fft_c2r");
}

}  // namespace torch_xla
