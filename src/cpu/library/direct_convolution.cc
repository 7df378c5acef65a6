#include "cpu/library/convolution_routines.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "cpu/library/strided_copy.h"
#include "cpu/library/vector_clones.h"
#include "cpu/memory.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::ElementType;

// accumulators[j] += x * w[j]; integers wrap.
template <typename T>
inline void MultiplyAddRow(T* sum, T x, const T* w, int64_t n) {
  using Wide = std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4, uint32_t, T>;
  for (int64_t j = 0; j < n; ++j) sum[j] = static_cast<T>(Wide{sum[j]} + Wide{x} * Wide{w[j]});
}
template <>
inline void MultiplyAddRow(bool* sum, bool x, const bool* w, int64_t n) {
  if (!x) return;
  for (int64_t j = 0; j < n; ++j) sum[j] |= w[j];
}

// sum[j] += x[j] * w[j]: one input and one output per group.
template <typename T>
inline void MultiplyAddEach(T* sum, const T* x, const T* w, int64_t n) {
  using Wide = std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4, uint32_t, T>;
  for (int64_t j = 0; j < n; ++j) sum[j] = static_cast<T>(Wide{sum[j]} + Wide{x[j]} * Wide{w[j]});
}
template <>
inline void MultiplyAddEach(bool* sum, const bool* x, const bool* w, int64_t n) {
  for (int64_t j = 0; j < n; ++j) sum[j] |= x[j] && w[j];
}

// One kernel position of one result pixel: x is [groups, inputs], w [inputs, groups, outputs], sum
// [groups, outputs].
template <typename T>
inline void MultiplyTap(T* sum, const T* x, const T* w, int64_t groups, int64_t inputs,
                        int64_t outputs) {
  if (inputs == 1 && outputs == 1) return MultiplyAddEach(sum, x, w, groups);
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t i = 0; i < inputs; ++i) {
      MultiplyAddRow(sum + g * outputs, x[g * inputs + i], w + (i * groups + g) * outputs, outputs);
    }
  }
}

#define CPU_TAP(T)                                                                              \
  CPU_VECTOR_CLONES void RunTap(T* sum, const T* x, const T* w, int64_t groups, int64_t inputs, \
                                int64_t outputs) {                                              \
    MultiplyTap(sum, x, w, groups, inputs, outputs);                                            \
  }
CPU_TAP(bool)
CPU_TAP(uint8_t)
CPU_TAP(uint16_t)
CPU_TAP(uint32_t)
CPU_TAP(uint64_t)
CPU_TAP(float)
CPU_TAP(double)
#undef CPU_TAP

template <typename T>
void RunTap(std::complex<T>* sum, const std::complex<T>* x, const std::complex<T>* w,
            int64_t groups, int64_t inputs, int64_t outputs) {
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t i = 0; i < inputs; ++i) {
      T a = x[g * inputs + i].real(), b = x[g * inputs + i].imag();
      const std::complex<T>* row = w + (i * groups + g) * outputs;
      for (int64_t j = 0; j < outputs; ++j) {
        T c = row[j].real(), d = row[j].imag();
        sum[g * outputs + j] += std::complex<T>(a * c - b * d, a * d + b * c);
      }
    }
  }
}

class DirectConvolution : public LibraryCall {
 public:
  DirectConvolution(const hlo::Instruction& convolution, const Epilogue* epilogue,
                    const hlo::Shape& result_shape)
      : attributes_(convolution.as<hlo::ConvolutionAttributes>()),
        lhs_(convolution.operand(0)->shape()),
        rhs_(convolution.operand(1)->shape()),
        out_(result_shape) {
    if (epilogue != nullptr) {
      epilogue_ = *epilogue;
      lhs_operand_ = static_cast<int>(convolution.operand(0)->parameter_number());
      rhs_operand_ = static_cast<int>(convolution.operand(1)->parameter_number());
    }
    ElementType type = convolution.element_type();
    bool narrow = type == ElementType::kF16 || type == ElementType::kBF16;
    type_ = narrow ? ElementType::kF32 : type;
    width_ = static_cast<int64_t>(hlo::ByteWidth(type_));
    Layout();
  }

  int64_t scratch_bytes() const override { return lhs_bytes_ + rhs_bytes_ + out_bytes_; }

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    if (out_.num_elements() == 0) return;
    auto* x = static_cast<std::byte*>(context.scratch);
    auto* w = x + lhs_bytes_;
    auto* y = w + rhs_bytes_;
    PackStrided(context.threads, x_sizes_, x_strides_, operands[lhs_operand_], lhs_.element_type(),
                x, type_);
    auto* kernel = static_cast<const std::byte*>(operands[rhs_operand_]);
    PackStrided(context.threads, w_sizes_, w_strides_,
                kernel + w_offset_ * static_cast<int64_t>(hlo::ByteWidth(rhs_.element_type())),
                rhs_.element_type(), w, type_);
    int64_t pixels = y_batch_;
    for (int64_t size : y_spatial_) pixels *= size;
    int64_t per_chunk =
        std::max<int64_t>(1, 65536 / std::max<int64_t>(1, taps_ * inputs_ * outputs_));
    context.threads.ParallelFor(hlo::CeilDivide(pixels, per_chunk), [&](int64_t chunk) {
      int64_t end = std::min(pixels, (chunk + 1) * per_chunk);
      for (int64_t i = chunk * per_chunk; i < end; ++i) Pixel(i, x, w, y + i * outputs_ * width_);
    });
    StoreResult(context.threads, epilogue_ ? &*epilogue_ : nullptr, out_, y_strides_, y, type_,
                operands, results[0]);
  }

  std::string Description() const override {
    std::string text = "direct convolution ";
    text.append(hlo::ShortName(type_));
    return text + (epilogue_ ? epilogue_->Description() : "");
  }

 private:
  void Layout() {
    const auto& d = attributes_.dimensions;
    rank_ = static_cast<int64_t>(d.input_spatial_dimensions.size());
    Dimensions xs = hlo::RowMajorStrides(lhs_.dimensions());
    Dimensions ws = hlo::RowMajorStrides(rhs_.dimensions());
    Dimensions ys = hlo::RowMajorStrides(out_.dimensions());
    auto add = [](const hlo::Shape& shape, const Dimensions& strides, int64_t dimension,
                  Dimensions& sizes, Dimensions& target) {
      sizes.push_back(shape.dimension(dimension));
      target.push_back(strides[dimension]);
    };
    add(lhs_, xs, d.input_batch_dimension, x_sizes_, x_strides_);
    for (int64_t s : d.input_spatial_dimensions) add(lhs_, xs, s, x_sizes_, x_strides_);
    add(lhs_, xs, d.input_feature_dimension, x_sizes_, x_strides_);
    for (int64_t i = 0; i < rank_; ++i) {
      int64_t s = d.kernel_spatial_dimensions[i];
      add(rhs_, ws, s, w_sizes_, w_strides_);
      if (!attributes_.window.reversal.empty() && attributes_.window.reversal[i]) {
        w_offset_ += (rhs_.dimension(s) - 1) * ws[s];
        w_strides_.back() = -ws[s];
      }
      taps_ *= rhs_.dimension(s);
    }
    add(rhs_, ws, d.kernel_input_feature_dimension, w_sizes_, w_strides_);
    add(rhs_, ws, d.kernel_output_feature_dimension, w_sizes_, w_strides_);
    y_batch_ = out_.dimension(d.output_batch_dimension);
    for (int64_t s : d.output_spatial_dimensions) y_spatial_.push_back(out_.dimension(s));
    inputs_ = rhs_.dimension(d.kernel_input_feature_dimension);
    outputs_ = rhs_.dimension(d.kernel_output_feature_dimension);
    // Where element i of the result, in row-major order, lies in [batch, spatial..., outputs].
    Dimensions packed(rank_ + 2);
    int64_t stride = 1;
    auto place = [&](int64_t dimension) {
      packed[dimension] = stride;
      stride *= out_.dimension(dimension);
    };
    place(d.output_feature_dimension);
    for (int64_t i = rank_; i-- > 0;) place(d.output_spatial_dimensions[i]);
    place(d.output_batch_dimension);
    y_strides_ = packed;
    lhs_bytes_ = AlignedSize(lhs_.num_elements() * width_);
    rhs_bytes_ = AlignedSize(rhs_.num_elements() * width_);
    out_bytes_ = AlignedSize(out_.num_elements() * width_);
  }

  // All output features of one pixel, numbered row-major over [batch, spatial...].
  void Pixel(int64_t index, const std::byte* x, const std::byte* w, std::byte* sum) const {
    std::memset(sum, 0, outputs_ * width_);
    int64_t position[8];
    for (int64_t i = rank_; i-- > 0;) {
      position[i] = index % y_spatial_[i];
      index /= y_spatial_[i];
    }
    for (int64_t tap = 0; tap < taps_; ++tap) {
      int64_t pixel = 0;
      if (!InputPixel(position, tap, pixel)) continue;
      int64_t batch_groups = attributes_.batch_group_count;
      for (int64_t b = 0; b < batch_groups; ++b) {
        AddTap(x, w, sum, tap, (b * y_batch_ + index) * x_pixels() + pixel, b);
      }
    }
  }

  int64_t x_pixels() const {
    int64_t pixels = 1;
    for (int64_t i = 0; i < rank_; ++i) pixels *= x_sizes_[1 + i];
    return pixels;
  }

  // False where the tap falls on padding or between dilated elements.
  bool InputPixel(const int64_t* position, int64_t tap, int64_t& pixel) const {
    const hlo::Window& window = attributes_.window;
    int64_t scale = 1;
    for (int64_t i = rank_; i-- > 0;) {
      int64_t k = tap % w_sizes_[i];
      tap /= w_sizes_[i];
      int64_t at =
          position[i] * window.strides[i] + k * window.window_dilations[i] - window.padding_low[i];
      if (at < 0 || at % window.base_dilations[i] != 0) return false;
      at /= window.base_dilations[i];
      if (at >= x_sizes_[1 + i]) return false;
      pixel += at * scale;
      scale *= x_sizes_[1 + i];
    }
    return true;
  }

  void AddTap(const std::byte* x, const std::byte* w, std::byte* sum, int64_t tap, int64_t pixel,
              int64_t batch_group) const {
    int64_t groups = attributes_.feature_group_count;
    int64_t batch_groups = attributes_.batch_group_count;
    x += pixel * groups * inputs_ * width_;
    w += tap * inputs_ * outputs_ * width_;
    if (batch_groups == 1) return Dispatch(sum, x, w, groups, inputs_, outputs_ / groups);
    // Each batch group has its own output features, a part of each row of w.
    int64_t part = outputs_ / batch_groups, begin = batch_group * part;
    for (int64_t i = 0; i < inputs_; ++i) {
      Dispatch(sum + begin * width_, x + i * width_, w + (i * outputs_ + begin) * width_, 1, 1,
               part);
    }
  }

  void Dispatch(std::byte* sum, const std::byte* x, const std::byte* w, int64_t groups,
                int64_t inputs, int64_t outputs) const {
    auto run = [&]<typename T>() {
      RunTap(reinterpret_cast<T*>(sum), reinterpret_cast<const T*>(x),
             reinterpret_cast<const T*>(w), groups, inputs, outputs);
    };
    switch (type_) {
      case ElementType::kPred:
        return run.template operator()<bool>();
      case ElementType::kF32:
        return run.template operator()<float>();
      case ElementType::kF64:
        return run.template operator()<double>();
      case ElementType::kC64:
        return run.template operator()<std::complex<float>>();
      case ElementType::kC128:
        return run.template operator()<std::complex<double>>();
      default:  // signed integers wrap like unsigned ones
        if (width_ == 1) return run.template operator()<uint8_t>();
        if (width_ == 2) return run.template operator()<uint16_t>();
        if (width_ == 4) return run.template operator()<uint32_t>();
        return run.template operator()<uint64_t>();
    }
  }

  hlo::ConvolutionAttributes attributes_;
  hlo::Shape lhs_, rhs_, out_;
  std::optional<Epilogue> epilogue_;
  int lhs_operand_ = 0, rhs_operand_ = 1;
  ElementType type_;
  int64_t width_ = 0, rank_ = 0, taps_ = 1, inputs_ = 1, outputs_ = 1, y_batch_ = 1, w_offset_ = 0;
  Dimensions x_sizes_, x_strides_, w_sizes_, w_strides_, y_spatial_, y_strides_;
  int64_t lhs_bytes_ = 0, rhs_bytes_ = 0, out_bytes_ = 0;
};

}  // namespace

std::unique_ptr<LibraryCall> MakeDirectConvolution(const hlo::Instruction& convolution,
                                                   const Epilogue* epilogue,
                                                   const hlo::Shape& result_shape) {
  return std::make_unique<DirectConvolution>(convolution, epilogue, result_shape);
}

}  // namespace cpu
