#include "cpu/library/convolution_problem.h"

#include <algorithm>

#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using hlo::Dimensions;

bool AllOnes(const Dimensions& dimensions) {
  return std::all_of(dimensions.begin(), dimensions.end(), [](int64_t d) { return d == 1; });
}

// [first, second, spatial...] of a tensor whose dimensions stand anywhere.
StridedView MakeView(const hlo::Shape& shape, int64_t first, int64_t second,
                     const Dimensions& spatial) {
  Dimensions strides = hlo::RowMajorStrides(shape.dimensions());
  StridedView view;
  auto append = [&](int64_t d) {
    view.dimensions.push_back(shape.dimension(d));
    view.strides.push_back(strides[d]);
  };
  append(first);
  append(second);
  for (int64_t d : spatial) append(d);
  return view;
}

// Splits dimension `split` of [a, b, spatial...] into groups and makes them the first dimension;
// `swap` exchanges the two that follow, so that the result is [groups, outputs, inputs,
// spatial...].
StridedView Grouped(StridedView view, int64_t split, int64_t groups, bool swap) {
  int64_t size = groups == 0 ? 0 : view.dimensions[split] / groups;
  view.dimensions[split] = size;
  if (swap) {
    std::swap(view.dimensions[0], view.dimensions[1]);
    std::swap(view.strides[0], view.strides[1]);
    split = 1 - split;
  }
  view.dimensions.insert(view.dimensions.begin(), groups);
  view.strides.insert(view.strides.begin(), view.strides[split] * size);
  return view;
}

void Flip(StridedView& view, int64_t dimension) {
  view.offset += (view.dimensions[dimension] - 1) * view.strides[dimension];
  view.strides[dimension] = -view.strides[dimension];
}

class Recognizer {
 public:
  explicit Recognizer(const hlo::Instruction& convolution)
      : attributes_(convolution.as<hlo::ConvolutionAttributes>()),
        window_(attributes_.window),
        dims_(attributes_.dimensions),
        lhs_(convolution.operand(0)->shape()),
        rhs_(convolution.operand(1)->shape()),
        out_(convolution.shape()),
        rank_(static_cast<int64_t>(dims_.input_spatial_dimensions.size())) {}

  std::optional<ConvolutionProblem> Recognize() {
    if (rank_ < 1 || rank_ > 3) return std::nullopt;
    if (out_.num_elements() == 0 || lhs_.num_elements() == 0 || rhs_.num_elements() == 0) {
      return std::nullopt;
    }
    if (attributes_.batch_group_count > 1 || LooksLikeWeightGradient()) return WeightGradient();
    bool reversed = Reversed(0);
    bool all_reversed = true;
    for (int64_t i = 0; i < rank_; ++i) all_reversed &= Reversed(i) || KernelSize(i) == 1;
    for (int64_t i = 0; i < rank_; ++i) reversed |= Reversed(i);
    bool dilated = !AllOnes(window_.base_dilations);
    if (dilated || (all_reversed && reversed && AllOnes(window_.strides))) {
      auto gradient = InputGradient();
      if (gradient || dilated) return gradient;
    }
    return Forward();
  }

 private:
  bool Reversed(int64_t i) const { return !window_.reversal.empty() && window_.reversal[i]; }
  int64_t KernelSize(int64_t i) const { return rhs_.dimension(dims_.kernel_spatial_dimensions[i]); }
  Dimensions Sizes(const hlo::Shape& shape, const Dimensions& spatial) const {
    Dimensions sizes;
    for (int64_t d : spatial) sizes.push_back(shape.dimension(d));
    return sizes;
  }

  // The kernel of a weight gradient is the output's cotangent: large, while the result is a kernel.
  bool LooksLikeWeightGradient() const {
    if (attributes_.feature_group_count > 1 || !AllOnes(window_.base_dilations)) return false;
    if (std::count(window_.reversal.begin(), window_.reversal.end(), true) > 0) return false;
    int64_t kernel = hlo::Product(Sizes(rhs_, dims_.kernel_spatial_dimensions));
    int64_t result = hlo::Product(Sizes(out_, dims_.output_spatial_dimensions));
    return kernel > result;
  }

  std::optional<ConvolutionProblem> Forward() {
    ConvolutionProblem p;
    p.kind = ConvolutionProblem::Kind::kForward;
    p.groups = attributes_.feature_group_count;
    p.x_view = MakeView(lhs_, dims_.input_batch_dimension, dims_.input_feature_dimension,
                        dims_.input_spatial_dimensions);
    p.y_view = MakeView(out_, dims_.output_batch_dimension, dims_.output_feature_dimension,
                        dims_.output_spatial_dimensions);
    p.w_view =
        Grouped(MakeView(rhs_, dims_.kernel_output_feature_dimension,
                         dims_.kernel_input_feature_dimension, dims_.kernel_spatial_dimensions),
                0, p.groups, false);
    p.stride = window_.strides;
    p.dilation = window_.window_dilations;
    p.padding_low = window_.padding_low;
    for (int64_t i = 0; i < rank_; ++i) {
      if (Reversed(i) && KernelSize(i) > 1) Flip(p.w_view, 3 + i);
    }
    return Finish(std::move(p));
  }

  std::optional<ConvolutionProblem> InputGradient() {
    if (!AllOnes(window_.strides)) return std::nullopt;
    ConvolutionProblem p;
    p.kind = ConvolutionProblem::Kind::kInputGradient;
    p.groups = attributes_.feature_group_count;
    p.y_view = MakeView(lhs_, dims_.input_batch_dimension, dims_.input_feature_dimension,
                        dims_.input_spatial_dimensions);
    p.x_view = MakeView(out_, dims_.output_batch_dimension, dims_.output_feature_dimension,
                        dims_.output_spatial_dimensions);
    // The forward convolution's outputs are this one's inputs.
    p.w_view =
        Grouped(MakeView(rhs_, dims_.kernel_output_feature_dimension,
                         dims_.kernel_input_feature_dimension, dims_.kernel_spatial_dimensions),
                0, p.groups, true);
    p.stride = window_.base_dilations;
    p.dilation = window_.window_dilations;
    for (int64_t i = 0; i < rank_; ++i) {
      int64_t low = (KernelSize(i) - 1) * p.dilation[i] - window_.padding_low[i];
      if (low < 0) return std::nullopt;
      p.padding_low.push_back(low);
      if (!Reversed(i) && KernelSize(i) > 1) Flip(p.w_view, 3 + i);
    }
    return Finish(std::move(p));
  }

  std::optional<ConvolutionProblem> WeightGradient() {
    if (attributes_.feature_group_count > 1 || !AllOnes(window_.base_dilations)) {
      return std::nullopt;
    }
    for (int64_t i = 0; i < rank_; ++i) {
      if (Reversed(i) && KernelSize(i) > 1) return std::nullopt;
    }
    ConvolutionProblem p;
    p.kind = ConvolutionProblem::Kind::kWeightGradient;
    p.groups = attributes_.batch_group_count;
    p.x_view = MakeView(lhs_, dims_.input_feature_dimension, dims_.input_batch_dimension,
                        dims_.input_spatial_dimensions);
    p.y_view = MakeView(rhs_, dims_.kernel_input_feature_dimension,
                        dims_.kernel_output_feature_dimension, dims_.kernel_spatial_dimensions);
    p.w_view = Grouped(MakeView(out_, dims_.output_feature_dimension, dims_.output_batch_dimension,
                                dims_.output_spatial_dimensions),
                       0, p.groups, false);
    p.stride = window_.window_dilations;
    p.dilation = window_.strides;
    p.padding_low = window_.padding_low;
    return Finish(std::move(p));
  }

  // Reads the sizes off the views, and crops x where the padding is negative.
  std::optional<ConvolutionProblem> Finish(ConvolutionProblem p) {
    p.batch = p.x_view.dimensions[0];
    p.inputs = p.x_view.dimensions[1];
    p.outputs = p.y_view.dimensions[1];
    p.x.assign(p.x_view.dimensions.begin() + 2, p.x_view.dimensions.end());
    p.y.assign(p.y_view.dimensions.begin() + 2, p.y_view.dimensions.end());
    p.w.assign(p.w_view.dimensions.begin() + 3, p.w_view.dimensions.end());
    for (int64_t i = 0; i < rank_; ++i) {
      bool reads_x = p.kind != ConvolutionProblem::Kind::kInputGradient;
      if (p.padding_low[i] < 0) {
        if (!reads_x) return std::nullopt;
        p.x_view.offset -= p.padding_low[i] * p.x_view.strides[2 + i];
        p.x[i] += p.padding_low[i];
        p.padding_low[i] = 0;
      }
      int64_t high = p.PaddingHigh(i);
      if (high <= -p.stride[i]) {  // elements that no window reaches
        if (!reads_x) return std::nullopt;
        p.x[i] += high;
      }
      if (p.x[i] <= 0) return std::nullopt;
      p.x_view.dimensions[2 + i] = p.x[i];
    }
    return p;
  }

  const hlo::ConvolutionAttributes& attributes_;
  const hlo::Window& window_;
  const hlo::ConvolutionDimensions& dims_;
  const hlo::Shape& lhs_;
  const hlo::Shape& rhs_;
  const hlo::Shape& out_;
  int64_t rank_;
};

}  // namespace

double ConvolutionProblem::FloatingPointOperations() const {
  return 2.0 * static_cast<double>(batch) * static_cast<double>(outputs) *
         static_cast<double>(inputs) / static_cast<double>(groups) *
         static_cast<double>(hlo::Product(w)) * static_cast<double>(hlo::Product(y));
}

std::optional<ConvolutionProblem> RecognizeConvolution(const hlo::Instruction& convolution) {
  return Recognizer(convolution).Recognize();
}

bool HasDensePixels(const StridedView& view) {
  int64_t stride = 1;
  for (size_t i = view.dimensions.size(); i-- > 2;) {
    if (view.dimensions[i] != 1 && view.strides[i] != stride) return false;
    stride *= view.dimensions[i];
  }
  return view.offset == 0;
}

bool IsAllOf(hlo::ElementType type, const hlo::Instruction& convolution,
             const hlo::Shape& result_shape) {
  return convolution.operand(0)->element_type() == type &&
         convolution.operand(1)->element_type() == type && convolution.element_type() == type &&
         result_shape.element_type() == type;
}

}  // namespace cpu
