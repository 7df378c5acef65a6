#include "cpu/library/depthwise_convolution.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "cpu/isa.h"
#include "cpu/library/onednn.h"
#include "cpu/library/vector_clones.h"
#include "hlo/float16.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::ElementType;
using Kind = ConvolutionProblem::Kind;

// Lines begin where a cache line does: a vector that lies in two is read at a third of the speed.
constexpr int64_t kAligned = 16, kMostVectors = 8;

// Along one of two spatial dimensions. Result i reads input i * stride + k * dilation - padding for
// each k of the kernel.
struct Axis {
  int64_t input = 1, kernel = 1, result = 1;
  int64_t stride = 1, dilation = 1, padding = 0;

  // How far beyond its own phase's element a window reaches.
  int64_t reach() const { return (kernel - 1) * dilation / stride; }
};

// A plane of which every stride-th row and column is taken is one of stride x stride dense planes,
// its phases. In lines that are as long as a result's and its window's, zeros where the padding is,
// every element of a result is the same sum of neighbours in them, whichever its row. For each
// column of the window there is a copy of its phase that begins there.
struct StagedPlane {
  Axis y, x;
  int64_t line = 0;   // elements in a row of a phase
  int64_t phase = 0;  // elements in a phase, with what the last column reads beyond it

  int64_t phases() const { return y.stride * x.stride; }
  int64_t rows(int64_t band) const { return band + y.reach(); }
  int64_t planes() const { return y.stride * (x.stride + x.kernel); }
  // Of the window's column k: how far from the beginning of its phase.
  int64_t ShiftOf(int64_t k) const { return k * x.dilation / x.stride; }
  int64_t PhaseOf(int64_t phase_y, int64_t k) const {
    return phase_y * x.stride + k * x.dilation % x.stride;
  }
  // Which plane begins there.
  int64_t PlaneOf(int64_t phase_y, int64_t k) const {
    return ShiftOf(k) == 0 ? PhaseOf(phase_y, k) : phases() + phase_y * x.kernel + k;
  }
};

// The rows of a result that are computed at a time, from `first`.
struct Band {
  int64_t first, rows;
};

// A phase: elements from, from + stride, … of rows of the input, which may begin and end beyond it.
template <typename T>
[[gnu::always_inline]] inline void StagePhase(const StagedPlane& s, Band band, const T* plane,
                                              int64_t row_stride, int64_t phase, float* to) {
  const int64_t stride = s.x.stride, from = phase % stride - s.x.padding;
  const int64_t begin =
      std::clamp<int64_t>(from >= 0 ? 0 : (stride - 1 - from) / stride, 0, s.line);
  const int64_t end = std::clamp<int64_t>(
      from >= s.x.input ? 0 : (s.x.input - 1 - from) / stride + 1, begin, s.line);
  std::fill_n(to, s.phase, 0.0F);
  for (int64_t i = 0; i < s.rows(band.rows); ++i, to += s.line) {
    const int64_t at = (band.first + i) * s.y.stride + phase / stride - s.y.padding;
    if (at < 0 || at >= s.y.input) continue;
    const T* row = plane + at * row_stride + from;
    if (stride == 1) {
      for (int64_t j = begin; j < end; ++j) to[j] = static_cast<float>(row[j]);
    } else if (stride == 2) {
      for (int64_t j = begin; j < end; ++j) to[j] = static_cast<float>(row[2 * j]);
    } else {
      for (int64_t j = begin; j < end; ++j) to[j] = static_cast<float>(row[stride * j]);
    }
  }
}

template <typename T>
[[gnu::always_inline]] inline void StagePlanes(const StagedPlane& s, Band band, const T* plane,
                                               int64_t row_stride, float* staged) {
  for (int64_t phase = 0; phase < s.phases(); ++phase) {
    StagePhase(s, band, plane, row_stride, phase, staged + phase * s.phase);
  }
  for (int64_t phase_y = 0; phase_y < s.y.stride; ++phase_y) {
    for (int64_t k = 0; k < s.x.kernel; ++k) {
      if (s.ShiftOf(k) == 0) continue;
      std::memcpy(staged + s.PlaneOf(phase_y, k) * s.phase,
                  staged + s.PhaseOf(phase_y, k) * s.phase + s.ShiftOf(k),
                  s.rows(band.rows) * s.line * sizeof(float));
    }
  }
}

// Templates have no clones.
CPU_VECTOR_CLONES void StageBand(const StagedPlane& s, Band band, const float* plane,
                                 int64_t row_stride, float* staged) {
  StagePlanes(s, band, plane, row_stride, staged);
}
CPU_VECTOR_CLONES void StageBand(const StagedPlane& s, Band band, const hlo::BFloat16* plane,
                                 int64_t row_stride, float* staged) {
  StagePlanes(s, band, plane, row_stride, staged);
}

CPU_VECTOR_CLONES void Round(const float* values, int64_t count, hlo::BFloat16* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = hlo::BFloat16(values[i]);
}

// out[i] = sum over the taps of weights[t] * staged[places[t] + i], for some vectors of elements.
template <typename Vector, int64_t vectors>
[[gnu::always_inline]] inline void SumVectors(const float* staged, const int64_t* places,
                                              const float* weights, int64_t taps, float* out) {
  Vector sums[vectors] = {};
  for (int64_t t = 0; t < taps; ++t) {
    const auto* from = reinterpret_cast<const Vector*>(staged + places[t]);
    for (int64_t v = 0; v < vectors; ++v) sums[v] += from[v] * weights[t];
  }
  for (int64_t v = 0; v < vectors; ++v) reinterpret_cast<Vector*>(out)[v] = sums[v];
}

template <int64_t bytes>
struct FloatsOf {
  using Vector [[gnu::vector_size(bytes), gnu::may_alias]] = float;
};

template <int64_t bytes>
[[gnu::always_inline]] inline void SumAll(const float* staged, const int64_t* places,
                                          const float* weights, int64_t taps, float* out,
                                          int64_t count) {
  using Vector = typename FloatsOf<bytes>::Vector;
  static_assert(sizeof(Vector) == bytes);
  constexpr int64_t kLanes = bytes / sizeof(float);
  int64_t i = 0;
  for (; i + kMostVectors * kLanes <= count; i += kMostVectors * kLanes) {
    SumVectors<Vector, kMostVectors>(staged + i, places, weights, taps, out + i);
  }
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    SumVectors<Vector, 4>(staged + i, places, weights, taps, out + i);
  }
  for (; i < count; i += kLanes) {
    SumVectors<Vector, 1>(staged + i, places, weights, taps, out + i);
  }
}

using SumFunction = void (*)(const float* staged, const int64_t* places, const float* weights,
                             int64_t taps, float* out, int64_t count);

void SumInShortVectors(const float* staged, const int64_t* places, const float* weights,
                       int64_t taps, float* out, int64_t count) {
  SumAll<16>(staged, places, weights, taps, out, count);
}
#if defined(__x86_64__)
// (A compiler's clones for AVX2 keep vectors of AVX-512 in memory.)
__attribute__((target("avx2,fma"))) void SumInAvx2(const float* staged, const int64_t* places,
                                                   const float* weights, int64_t taps, float* out,
                                                   int64_t count) {
  SumAll<32>(staged, places, weights, taps, out, count);
}
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma"))) void SumInAvx512(
    const float* staged, const int64_t* places, const float* weights, int64_t taps, float* out,
    int64_t count) {
  SumAll<64>(staged, places, weights, taps, out, count);
}
#endif

// For a count that is a multiple of kAligned, as the places are.
SumFunction SumOfTaps() {
#if defined(__x86_64__)
  if (KernelIsa() >= Isa::kAvx512) return SumInAvx512;
  if (KernelIsa() >= Isa::kAvx2) return SumInAvx2;
#endif
  return SumInShortVectors;
}

// Where zeros of the padding would become NaN.
template <typename T>
void SumWithoutPadding(const Axis& y, const Axis& x, Band band, const T* plane, int64_t row_stride,
                       const float* weights, float* out) {
  for (int64_t i = 0; i < band.rows * x.result; ++i) {
    const int64_t row = (band.first + i / x.result) * y.stride - y.padding;
    const int64_t column = i % x.result * x.stride - x.padding;
    float sum = 0;
    for (int64_t t = 0; t < y.kernel * x.kernel; ++t) {
      const int64_t at_y = row + t / x.kernel * y.dilation;
      const int64_t at_x = column + t % x.kernel * x.dilation;
      if (at_y < 0 || at_y >= y.input || at_x < 0 || at_x >= x.input) continue;
      sum += static_cast<float>(plane[at_y * row_stride + at_x]) * weights[t];
    }
    out[i] = sum;
  }
}

// The distance of rows; lines are images of one row.
int64_t RowStride(const StridedView& view) { return view.strides[view.strides.size() - 2]; }

// T: of the operands and the result.
template <typename T>
class DepthwiseConvolution : public LibraryCall {
 public:
  DepthwiseConvolution(const hlo::Instruction& convolution, const ConvolutionProblem& p,
                       const Epilogue* epilogue)
      : is_forward_(p.kind == Kind::kForward),
        batch_(p.batch),
        groups_(p.groups),
        multiplier_(p.outputs / p.groups),
        in_(is_forward_ ? p.x_view : p.y_view),
        out_(is_forward_ ? p.y_view : p.x_view),
        weight_(p.w_view) {
    if (epilogue != nullptr) {
      if (!epilogue->empty()) epilogue_ = *epilogue;
      image_operand_ = static_cast<int>(convolution.operand(0)->parameter_number());
      weight_operand_ = static_cast<int>(convolution.operand(1)->parameter_number());
    }
    s_.x = AxisOf(p, p.rank() - 1);
    if (p.rank() == 2) s_.y = AxisOf(p, 0);
    PlanBands();
    PlanTaps();
  }

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    const auto* images = static_cast<const T*>(operands[image_operand_]) + in_.offset;
    const auto* weights = static_cast<const T*>(operands[weight_operand_]);
    const int64_t bands = hlo::CeilDivide(s_.y.result, band_), tasks = batch_ * groups_ * bands;
    context.threads.ParallelFor(hlo::CeilDivide(tasks, tasks_in_chunk_), [&](int64_t chunk) {
      const int64_t end = std::min(tasks, (chunk + 1) * tasks_in_chunk_);
      for (int64_t i = chunk * tasks_in_chunk_; i < end; ++i) {
        const int64_t first = i % bands * band_, plane = i / bands;
        RunBand(plane / groups_, plane % groups_, {first, std::min(band_, s_.y.result - first)},
                images, weights, static_cast<T*>(results[0]), operands);
      }
    });
  }

  // That each thread keeps.
  int64_t kept_bytes() const {
    return (s_.planes() * s_.phase + band_ * s_.line + static_cast<int64_t>(places_.size())) *
           static_cast<int64_t>(sizeof(float));
  }

  std::string Description() const override {
    std::string text = "convolution of each channel";
    if (!is_forward_) text.append(", input gradient");
    if (epilogue_) text.append(epilogue_->Description());
    return text;
  }

 private:
  Axis AxisOf(const ConvolutionProblem& p, int64_t d) const {
    if (is_forward_) return {p.x[d], p.w[d], p.y[d], p.stride[d], p.dilation[d], p.padding_low[d]};
    // The kernel turned round, over the gradient and what padding makes it the input's size.
    return {p.y[d], p.w[d],        p.x[d],
            1,      p.dilation[d], (p.w[d] - 1) * p.dilation[d] - p.padding_low[d]};
  }

  // As many rows as stay in the cache.
  void PlanBands() {
    constexpr int64_t kCachedElements = (96 << 10) / sizeof(float), kWorthAThread = 1 << 19;
    s_.line = hlo::RoundUp(s_.x.result + s_.x.reach(), kAligned);
    const int64_t fitting = kCachedElements / (s_.planes() * s_.line) - s_.y.reach();
    band_ = std::clamp<int64_t>(fitting, std::min<int64_t>(s_.y.result, 4), s_.y.result);
    s_.phase = s_.rows(band_) * s_.line + hlo::RoundUp(s_.x.reach(), kAligned);
    const int64_t work = multiplier_ * band_ * s_.line * s_.y.kernel * s_.x.kernel;
    tasks_in_chunk_ = std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(work, 1));
  }

  void PlanTaps() {
    const int64_t taps = s_.y.kernel * s_.x.kernel;
    for (int64_t t = 0; t < taps; ++t) {
      const int64_t down = t / s_.x.kernel * s_.y.dilation, right = t % s_.x.kernel;
      places_.push_back(s_.PlaneOf(down % s_.y.stride, right) * s_.phase +
                        down / s_.y.stride * s_.line);
      const int64_t k = is_forward_ ? t : taps - 1 - t;
      weight_places_.push_back(weight_.offset + k / s_.x.kernel * RowStride(weight_) +
                               k % s_.x.kernel * weight_.strides.back());
    }
  }

  // The kernel of an output channel, in the order of the taps. True if all of it is finite.
  bool ReadWeights(const T* weights, int64_t group, int64_t output, float* to) const {
    const T* kernel = weights + group * weight_.strides[0] + output * weight_.strides[1];
    float zero = 0;
    for (size_t t = 0; t < weight_places_.size(); ++t) {
      to[t] = static_cast<float>(kernel[weight_places_[t]]);
      zero += to[t] * 0;
    }
    return zero == 0;
  }

  void RunBand(int64_t image, int64_t group, Band band, const T* images, const T* weights, T* out,
               const void* const* operands) const {
    auto* staged = static_cast<float*>(ThreadScratch(kept_bytes()));
    float* sums = staged + s_.planes() * s_.phase;
    float* kernel = sums + band_ * s_.line;
    const T* plane = images + image * in_.strides[0] + group * in_.strides[1];
    const int64_t count = band.rows * s_.x.result;
    StageBand(s_, band, plane, RowStride(in_), staged);
    for (int64_t output = 0; output < multiplier_; ++output) {
      const int64_t channel = group * multiplier_ + output;
      const int64_t position =
          image * out_.strides[0] + channel * out_.strides[1] + band.first * s_.x.result;
      float* rows = sums;
      if constexpr (std::is_same_v<T, float>) rows = out + position;
      if (ReadWeights(weights, group, output, kernel)) {
        sum_(staged, places_.data(), kernel, static_cast<int64_t>(places_.size()), sums,
             band.rows * s_.line);
        for (int64_t row = 0; row < band.rows; ++row) {
          std::memmove(rows + row * s_.x.result, sums + row * s_.line, s_.x.result * sizeof(float));
        }
      } else {
        SumWithoutPadding(s_.y, s_.x, band, plane, RowStride(in_), kernel, rows);
      }
      if (epilogue_) epilogue_->Apply(rows, position, count, operands);
      if constexpr (!std::is_same_v<T, float>) Round(rows, count, out + position);
    }
  }

  bool is_forward_;
  int64_t batch_, groups_, multiplier_;  // outputs of a group
  StridedView in_, out_, weight_;
  StagedPlane s_;
  int64_t band_ = 1, tasks_in_chunk_ = 1;        // rows; bands of planes
  std::vector<int64_t> places_, weight_places_;  // of the taps: in what is staged, in a kernel
  SumFunction sum_ = SumOfTaps();
  std::optional<Epilogue> epilogue_;
  int image_operand_ = 0, weight_operand_ = 1;
};

// Of [batch, channels, spatial...]: rows of neighbours.
bool HasDenseRows(const StridedView& view) {
  return view.dimensions.back() == 1 || view.strides.back() == 1;
}

// One input to each group, which may be the only one. With many outputs of large windows a library
// that sums several outputs for each number it reads is quicker.
bool IsDepthwise(const ConvolutionProblem& p) {
  constexpr int64_t kMostTaps = 128, kMostTapsOfMany = 32, kMany = 4;
  if (p.groups != p.inputs || p.rank() > 2) return false;
  const int64_t taps = hlo::Product(p.w);
  if (taps > (p.outputs / p.groups >= kMany ? kMostTapsOfMany : kMostTaps)) return false;
  if (p.kind == Kind::kForward) return true;
  return p.kind == Kind::kInputGradient && p.outputs == p.groups &&
         std::ranges::all_of(p.stride, [](int64_t stride) { return stride == 1; });
}

template <typename T>
std::unique_ptr<LibraryCall> UnlessLarge(const hlo::Instruction& convolution,
                                         const ConvolutionProblem& problem,
                                         const Epilogue* epilogue) {
  constexpr int64_t kMostKeptBytes = 4 << 20;
  auto call = std::make_unique<DepthwiseConvolution<T>>(convolution, problem, epilogue);
  if (call->kept_bytes() > kMostKeptBytes) return nullptr;
  return call;
}

}  // namespace

std::unique_ptr<LibraryCall> MakeDepthwiseConvolution(const hlo::Instruction& convolution,
                                                      const ConvolutionProblem& problem,
                                                      const Epilogue* epilogue,
                                                      const hlo::Shape& result_shape) {
  // Lines of fewer elements leave most of a vector empty.
  constexpr int64_t kMostStride = 8, kLeastPixels = 96, kLeastLine = 8;
  const bool serves =
      IsDepthwise(problem) && hlo::Product(problem.y) >= kLeastPixels &&
      problem.y.back() >= kLeastLine && HasDenseRows(problem.x_view) &&
      HasDenseRows(problem.y_view) &&
      HasDensePixels(problem.kind == Kind::kForward ? problem.y_view : problem.x_view) &&
      std::ranges::all_of(problem.stride, [](int64_t stride) { return stride <= kMostStride; });
  if (serves && IsAllOf(ElementType::kF32, convolution, result_shape)) {
    return UnlessLarge<float>(convolution, problem, epilogue);
  }
  if (serves && IsAllOf(ElementType::kBF16, convolution, result_shape)) {
    return UnlessLarge<hlo::BFloat16>(convolution, problem, epilogue);
  }
  return nullptr;
}

}  // namespace cpu
