#include "cpu/library/convolution_routines.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "cpu/library/onednn.h"
#include "cpu/library/tap_columns.h"
#include "cpu/library/vector_clones.h"
#include "hlo/float16.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::ElementType;
using Kind = ConvolutionProblem::Kind;

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
// every element of a result is the same sum of neighbours in them, whichever its row.
struct StagedPlane {
  Axis y, x;
  int64_t line = 0;   // elements in a row of a phase
  int64_t phase = 0;  // elements in a phase, with what the last column reads beyond it

  int64_t phases() const { return y.stride * x.stride; }
  int64_t rows(int64_t band) const { return band + y.reach(); }
  // Where the window's tap of this row and column is, for the first element.
  int64_t PlaceOf(int64_t row, int64_t column) const {
    const int64_t down = row * y.dilation, right = column * x.dilation;
    return (down % y.stride * x.stride + right % x.stride) * phase + down / y.stride * line +
           right / x.stride;
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

// Rows of `length`, one after the other, of lines that are longer; also in place. What a vector
// brings along of a line's rest is overwritten by the next row.
void JoinLines(const float* lines, int64_t line, int64_t rows, int64_t length, float* to) {
  for (int64_t row = 0; row < rows; ++row, lines += line, to += length) {
    if ((rows - row) * length < hlo::RoundUp(length, kTapAlignment)) {
      std::memmove(to, lines, length * sizeof(float));
      continue;
    }
    for (int64_t i = 0; i < length; i += kTapAlignment) {
      float vector[kTapAlignment];  // in between, as in place the two overlap
      std::memcpy(vector, lines + i, sizeof vector);
      std::memcpy(to + i, vector, sizeof vector);
    }
  }
}

// A place in the window.
struct Tap {
  int64_t row, column;
};

// Where zeros of the padding would become NaN.
template <typename T>
void SumWithoutPadding(const Axis& y, const Axis& x, std::span<const Tap> taps, Band band,
                       const T* plane, int64_t row_stride, const float* weights, float* out) {
  for (int64_t i = 0; i < band.rows * x.result; ++i) {
    const int64_t row = (band.first + i / x.result) * y.stride - y.padding;
    const int64_t column = i % x.result * x.stride - x.padding;
    float sum = 0;
    for (size_t t = 0; t < taps.size(); ++t) {
      const int64_t at_y = row + taps[t].row * y.dilation;
      const int64_t at_x = column + taps[t].column * x.dilation;
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
    return (s_.phases() * s_.phase + band_ * s_.line +
            static_cast<int64_t>(weight_places_.size())) *
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
    constexpr int64_t kCachedElements = (32 << 10) / sizeof(float), kWorthAThread = 1 << 19;
    s_.line = hlo::RoundUp(s_.x.result + s_.x.reach(), kTapAlignment);
    const int64_t fitting =
        (kCachedElements / s_.line - s_.phases() * s_.y.reach()) / (s_.phases() + 1);
    band_ = std::clamp<int64_t>(fitting, std::min<int64_t>(s_.y.result, 8), s_.y.result);
    s_.phase = s_.rows(band_) * s_.line + hlo::RoundUp(s_.x.reach(), kTapAlignment);
    const int64_t work = multiplier_ * band_ * s_.line * s_.y.kernel * s_.x.kernel;
    tasks_in_chunk_ = std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(work, 1));
  }

  // Of a column of the window, the taps that stand in one phase below each other, if they are
  // neighbours among the rows of their class. With strides, dilated ones stand by themselves.
  void PlanTaps() {
    const int64_t stride = s_.y.stride;
    const bool share = stride == 1 || s_.y.dilation == 1;
    classes_ = stride == 1 ? s_.y.dilation : 1;
    const int64_t most = share ? kMostTapsInColumn : 1;
    for (int64_t column = 0; column < s_.x.kernel; ++column) {
      for (int64_t phase = 0; phase < std::min(stride, s_.y.kernel); ++phase) {
        for (int64_t row = phase; row < s_.y.kernel; row += stride * most) {
          const int64_t taps = std::min(most, hlo::CeilDivide(s_.y.kernel - row, stride));
          columns_.push_back({s_.PlaceOf(row, column), taps});
          for (int64_t i = 0; i < taps; ++i) AddTap({row + i * stride, column});
        }
      }
    }
  }

  void AddTap(Tap tap) {
    taps_.push_back(tap);
    if (!is_forward_) tap = {s_.y.kernel - 1 - tap.row, s_.x.kernel - 1 - tap.column};
    weight_places_.push_back(weight_.offset + tap.row * RowStride(weight_) +
                             tap.column * weight_.strides.back());
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
    float* sums = staged + s_.phases() * s_.phase;
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
        SumTaps({columns_, s_.line, classes_}, staged, kernel, band.rows, s_.x.result, sums);
        JoinLines(sums, s_.line, band.rows, s_.x.result, rows);
      } else {
        SumWithoutPadding(s_.y, s_.x, taps_, band, plane, RowStride(in_), kernel, rows);
      }
      if (epilogue_) epilogue_->Apply(rows, position, count, operands);
      if constexpr (!std::is_same_v<T, float>) Round(rows, count, out + position);
    }
  }

  bool is_forward_;
  int64_t batch_, groups_, multiplier_;  // outputs of a group
  StridedView in_, out_, weight_;
  StagedPlane s_;
  int64_t band_ = 1, tasks_in_chunk_ = 1;  // rows; bands of planes
  std::vector<TapColumn> columns_;
  int64_t classes_ = 1;                 // of rows that have their taps in common
  std::vector<Tap> taps_;               // in the order of the columns
  std::vector<int64_t> weight_places_;  // of each, in a kernel
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
