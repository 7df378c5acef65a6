#include "cpu/library/convolution_routines.h"

#include <algorithm>
#include <optional>
#include <string>

#include "cpu/library/product.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using Kind = ConvolutionProblem::Kind;

bool IsPointwise(const ConvolutionProblem& p) {
  const auto is_one = [](int64_t size) { return size == 1; };
  return p.kind != Kind::kWeightGradient && std::ranges::all_of(p.w, is_one) &&
         std::ranges::all_of(p.stride, is_one) && p.x == p.y &&
         std::ranges::all_of(p.padding_low, [](int64_t size) { return size == 0; });
}

class PointwiseConvolution : public LibraryCall {
 public:
  PointwiseConvolution(const hlo::Instruction& convolution, const ConvolutionProblem& p,
                       const Epilogue* epilogue)
      : batch_(p.batch), groups_(p.groups), pixels_(hlo::Product(p.x)) {
    if (epilogue != nullptr) {
      if (!epilogue->empty()) epilogue_ = *epilogue;
      image_operand_ = static_cast<int>(convolution.operand(0)->parameter_number());
      weight_operand_ = static_cast<int>(convolution.operand(1)->parameter_number());
    }
    const bool forward = p.kind == Kind::kForward;
    const StridedView &in = forward ? p.x_view : p.y_view, &out = forward ? p.y_view : p.x_view;
    in_batch_ = in.strides[0];
    in_channel_ = in.strides[1];
    out_batch_ = out.strides[0];
    out_channel_ = out.strides[1];
    weight_group_ = p.w_view.strides[0];
    product_.m = (forward ? p.outputs : p.inputs) / groups_;
    product_.k = (forward ? p.inputs : p.outputs) / groups_;
    product_.a_row = p.w_view.strides[forward ? 1 : 2];
    product_.a_column = p.w_view.strides[forward ? 2 : 1];
    // The stride of a dimension of size one says nothing.
    product_.b_row = std::max(in_channel_, pixels_);
    product_.b_column = 1;
    product_.ldc = std::max(out_channel_, pixels_);
    PlanBlocks(p.FloatingPointOperations());
    routine_ = MakeFloatRoutine();
    for (int64_t begin : {int64_t{0}, (blocks_ - 1) * block_}) {
      routine_->Prepare(ProductAt(begin));
    }
  }

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    const auto* images = static_cast<const float*>(operands[image_operand_]);
    const auto* weights = static_cast<const float*>(operands[weight_operand_]);
    auto* out = static_cast<float*>(results[0]);
    context.threads.ParallelFor(batch_ * groups_ * blocks_, [&](int64_t i) {
      const int64_t begin = i % blocks_ * block_, group = i / blocks_ % groups_;
      const int64_t image = i / (blocks_ * groups_);
      const Product product = ProductAt(begin);
      const int64_t place = image * out_batch_ + group * product.m * out_channel_ + begin;
      routine_->Run(product, weights + group * weight_group_,
                    images + image * in_batch_ + group * product.k * in_channel_ + begin,
                    out + place);
      for (int64_t row = 0; row < product.m && epilogue_; ++row) {
        const int64_t position = place + row * out_channel_;
        epilogue_->Apply(out + position, position, product.n, operands);
      }
    });
  }

  std::string Description() const override {
    std::string text = "convolution of pixels by " + routine_->Name(ProductAt(0));
    if (epilogue_) text.append(epilogue_->Description());
    return text;
  }

 private:
  // Columns of an image for each thread, where there are few images.
  void PlanBlocks(double work) {
    constexpr int64_t kLeastColumns = 64;
    const int64_t threads = ThreadPool::Default().num_threads();
    const int64_t wanted =
        work < 1e6 * static_cast<double>(threads) || threads == 1 ? 1 : 2 * threads;
    const int64_t pieces = std::clamp<int64_t>(hlo::CeilDivide(wanted, batch_ * groups_), 1,
                                               hlo::CeilDivide(pixels_, kLeastColumns));
    block_ = hlo::RoundUp(hlo::CeilDivide(pixels_, pieces), pieces == 1 ? 1 : kLeastColumns);
    blocks_ = hlo::CeilDivide(pixels_, block_);
  }

  Product ProductAt(int64_t begin) const {
    Product product = product_;
    product.n = std::min(block_, pixels_ - begin);
    return product;
  }

  int64_t batch_, groups_, pixels_;
  int64_t in_batch_, in_channel_, out_batch_, out_channel_, weight_group_;
  int64_t block_ = 1, blocks_ = 1;
  Product product_{};  // of an image and group, without the number of columns
  std::optional<Epilogue> epilogue_;
  int image_operand_ = 0, weight_operand_ = 1;
  std::unique_ptr<ProductRoutine> routine_;
};

}  // namespace

std::unique_ptr<LibraryCall> MakePointwiseConvolution(const hlo::Instruction& convolution,
                                                      const ConvolutionProblem& problem,
                                                      const Epilogue* epilogue,
                                                      const hlo::Shape& result_shape) {
  // Of fewer pixels than a vector or two has a product that takes the images together is quicker.
  constexpr int64_t kLeastPixels = 48;
  const bool serves = IsAllOf(hlo::ElementType::kF32, convolution, result_shape) &&
                      IsPointwise(problem) && hlo::Product(problem.x) >= kLeastPixels &&
                      HasDensePixels(problem.x_view) && HasDensePixels(problem.y_view);
  if (!serves) return nullptr;
  return std::make_unique<PointwiseConvolution>(convolution, problem, epilogue);
}

}  // namespace cpu
