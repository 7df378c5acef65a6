// fft through Eigen's FFT (kissfft), one line at a time, parallel over lines.
#include <Eigen/Core>
#include <algorithm>
#include <complex>
#include <string>
#include <unsupported/Eigen/FFT>
#include <vector>

#include "cpu/library/bind.h"
#include "cpu/memory.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::Dimensions;

template <typename R>
class FftCall : public LibraryCall {
 public:
  using C = std::complex<R>;

  FftCall(const hlo::Instruction& fft)
      : type_(fft.as<hlo::FftAttributes>().type),
        length_(fft.as<hlo::FftAttributes>().length),
        input_(fft.operand(0)->shape()),
        output_(fft.shape()) {}

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    if (output_.num_elements() == 0) return;
    switch (type_) {
      case hlo::FftType::kFft:
      case hlo::FftType::kIfft: {
        auto* values = static_cast<C*>(results[0]);
        std::copy_n(static_cast<const C*>(operands[0]), output_.num_elements(), values);
        TransformFrom(context, values, output_.dimensions(), 0, type_ == hlo::FftType::kIfft);
        break;
      }
      case hlo::FftType::kRfft: {
        auto* values = static_cast<C*>(results[0]);
        RealToComplex(context, static_cast<const R*>(operands[0]), values);
        TransformFrom(context, values, output_.dimensions(), 1, false);
        break;
      }
      case hlo::FftType::kIrfft: {
        Block copy(input_.byte_size());
        auto* values = static_cast<C*>(copy.data());
        std::copy_n(static_cast<const C*>(operands[0]), input_.num_elements(), values);
        TransformFrom(context, values, input_.dimensions(), 1, true);
        ComplexToReal(context, values, static_cast<R*>(results[0]));
        break;
      }
    }
  }

  std::string Description() const override {
    return "kissfft of " + std::to_string(length_.size()) + " dimensions";
  }

 private:
  // Plans hold tables and scratch memory of their own: one per thread.
  static Eigen::FFT<R>& Plan() {
    thread_local Eigen::FFT<R> plan;
    return plan;
  }

  // Complex transforms of the innermost length_.size() dimensions, except the last `skip`.
  void TransformFrom(const CallContext& context, C* values, const Dimensions& sizes, int64_t skip,
                     bool inverse) const {
    int64_t rank = static_cast<int64_t>(sizes.size());
    for (int64_t d = rank - 1 - skip; d >= rank - static_cast<int64_t>(length_.size()); --d) {
      Transform(context, values, sizes, d, inverse);
    }
  }

  static void Transform(const CallContext& context, C* values, const Dimensions& sizes,
                        int64_t dimension, bool inverse) {
    int64_t n = sizes[dimension], inner = 1, lines = 1;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (static_cast<int64_t>(i) != dimension) lines *= sizes[i];
      if (static_cast<int64_t>(i) > dimension) inner *= sizes[i];
    }
    ForLines(context, lines, n, [&](int64_t line) {
      C* start = values + line / inner * inner * n + line % inner;
      std::vector<C> in(n), out(n);
      for (int64_t i = 0; i < n; ++i) in[i] = start[i * inner];
      Line(out.data(), in.data(), n, inverse);
      for (int64_t i = 0; i < n; ++i) start[i * inner] = out[i];
    });
  }

  static void Line(C* out, const C* in, int64_t n, bool inverse) {
    if (n == 1) {
      out[0] = in[0];
    } else if (inverse) {
      Plan().inv(out, in, n);
    } else {
      Plan().fwd(out, in, n);
    }
  }

  void RealToComplex(const CallContext& context, const R* in, C* out) const {
    int64_t n = length_.back(), half = n / 2 + 1;
    ForLines(context, input_.num_elements() / n, n, [&](int64_t line) {
      std::vector<C> full(n), spectrum(n);
      for (int64_t i = 0; i < n; ++i) full[i] = in[line * n + i];
      Line(spectrum.data(), full.data(), n, false);
      std::copy_n(spectrum.data(), half, out + line * half);
    });
  }

  void ComplexToReal(const CallContext& context, const C* in, R* out) const {
    int64_t n = length_.back(), half = n / 2 + 1;
    ForLines(context, output_.num_elements() / n, n, [&](int64_t line) {
      std::vector<C> spectrum(n), full(n);
      for (int64_t i = 0; i < half; ++i) spectrum[i] = in[line * half + i];
      for (int64_t i = half; i < n; ++i) spectrum[i] = std::conj(spectrum[n - i]);
      // The spectrum of a real signal: these two are real whatever is given.
      spectrum[0] = spectrum[0].real();
      if (n % 2 == 0) spectrum[n / 2] = spectrum[n / 2].real();
      Line(full.data(), spectrum.data(), n, true);
      for (int64_t i = 0; i < n; ++i) out[line * n + i] = full[i].real();
    });
  }

  template <typename F>
  static void ForLines(const CallContext& context, int64_t lines, int64_t n, const F& run) {
    int64_t per_chunk = std::max<int64_t>(1, 4096 / n);
    context.threads.ParallelFor(hlo::CeilDivide(lines, per_chunk), [&](int64_t chunk) {
      int64_t end = std::min(lines, (chunk + 1) * per_chunk);
      for (int64_t line = chunk * per_chunk; line < end; ++line) run(line);
    });
  }

  hlo::FftType type_;
  Dimensions length_;
  hlo::Shape input_, output_;
};

}  // namespace

std::unique_ptr<LibraryCall> BindFft(const hlo::Instruction& instruction) {
  hlo::ElementType real = hlo::RealType(instruction.operand(0)->element_type());
  if (real == hlo::ElementType::kF32) return std::make_unique<FftCall<float>>(instruction);
  if (real == hlo::ElementType::kF64) return std::make_unique<FftCall<double>>(instruction);
  return nullptr;
}

}  // namespace cpu
