// Convolutions as products of matrices: the patches of an image that windows lie on become columns
// (im2col), as many at a time as the cache holds. For the types that oneDNN has no convolutions of,
// and for gradients of f32 kernels whose pixels lie in rows.
#include <algorithm>
#include <complex>
#include <cstring>
#include <string>

#include "cpu/library/convolution_routines.h"
#include "cpu/library/onednn.h"
#include "cpu/library/product.h"
#include "cpu/library/strided_copy.h"
#include "cpu/memory.h"
#include "hlo/size_arithmetic.h"
#include "passes/patch_pixels.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::ElementType;
using Kind = ConvolutionProblem::Kind;

// The pixels of a view of [batch, channels, spatial...] as one row: how far apart they lie; 0 if
// not evenly.
int64_t PixelStride(const StridedView& view) {
  int64_t stride = 0, expected = 0;
  for (size_t i = view.dimensions.size(); i-- > 2;) {
    if (view.dimensions[i] == 1) continue;
    if (stride == 0) stride = expected = view.strides[i];
    if (view.strides[i] != expected) return 0;
    expected *= view.dimensions[i];
  }
  return stride == 0 ? 1 : stride;
}

// One of the two strides is 1, as products want it.
bool IsMatrix(const StridedView& view) {
  const int64_t pixel = PixelStride(view), channel = view.strides[1];
  return view.offset == 0 && pixel > 0 && (pixel == 1 || channel == 1 || view.dimensions[1] == 1);
}

// Rows of the matrix of columns: channels of a group, and of each the places of the window.
struct RowRange {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
// Columns: pixels of y.
struct PixelRange {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// Visits the elements of x under one place of the window, pixel after pixel of y: visit(column,
// element of the channel, how far apart the elements lie, count) for those that lie in x, and
// outside(column, count) for the others.
template <typename Visit, typename Outside>
void AlongPixels(const ConvolutionProblem& p, const Dimensions& x_strides, int64_t place,
                 PixelRange pixels, const Visit& visit, const Outside& outside) {
  const int64_t rank = p.rank(), last = rank - 1;
  Dimensions offset(rank);  // of the window's place from where the window begins
  for (int64_t i = rank; i-- > 0;) {
    offset[i] = place % p.w[i] * p.dilation[i] - p.padding_low[i];
    place /= p.w[i];
  }
  // The part of a row of y whose elements lie in x.
  const int64_t stride = p.stride[last], width = p.y[last];
  const int64_t first =
      std::clamp<int64_t>(hlo::CeilDivide(std::max<int64_t>(0, -offset[last]), stride), 0, width);
  const int64_t room = p.x[last] - offset[last];
  const int64_t limit =
      std::clamp<int64_t>(room <= 0 ? 0 : hlo::CeilDivide(room, stride), first, width);
  for (int64_t pixel = pixels.begin; pixel < pixels.end;) {
    const int64_t column = pixel % width, count = std::min(width - column, pixels.end - pixel);
    int64_t element = 0, row = pixel / width;
    bool inside = true;
    for (int64_t i = last; i-- > 0;) {
      const int64_t at = row % p.y[i] * p.stride[i] + offset[i];
      row /= p.y[i];
      inside &= at >= 0 && at < p.x[i];
      element += at * x_strides[2 + i];
    }
    const int64_t from = std::clamp(first, column, column + count);
    const int64_t to = inside ? std::clamp(limit, from, column + count) : from;
    const int64_t at = pixel - pixels.begin;
    outside(at, from - column);
    if (to > from) {
      visit(at + from - column, element + (from * stride + offset[last]) * x_strides[2 + last],
            stride * x_strides[2 + last], to - from);
    }
    outside(at + to - column, column + count - to);
    pixel += count;
  }
}

// Whether patches are what lies in x anyway: single pixels, one after the other.
bool AreInPlace(const ConvolutionProblem& p) {
  const auto is_one = [](int64_t size) { return size == 1; };
  return hlo::Product(p.w) == 1 && std::ranges::all_of(p.stride, is_one) && p.x == p.y &&
         std::ranges::all_of(p.padding_low, [](int64_t size) { return size == 0; }) &&
         HasDensePixels(p.x_view);
}

template <typename T>
class PatchConvolution : public LibraryCall {
 public:
  PatchConvolution(const hlo::Instruction& convolution, const ConvolutionProblem& problem,
                   const Epilogue* epilogue, ElementType type)
      : p_(problem),
        type_(type),
        routine_(type == ElementType::kF32 ? MakeFloatRoutine() : MakeBlasRoutine(type)) {
    if (epilogue != nullptr) {
      lhs_operand_ = static_cast<int>(convolution.operand(0)->parameter_number());
      rhs_operand_ = static_cast<int>(convolution.operand(1)->parameter_number());
    }
    inputs_ = p_.inputs / p_.groups;
    outputs_ = p_.outputs / p_.groups;
    places_ = hlo::Product(p_.w);
    rows_ = inputs_ * places_;
    pixels_ = hlo::Product(p_.y);
    in_place_ = AreInPlace(p_);
    PlanBlocks();
    if (p_.kind != Kind::kWeightGradient) return;
    for (const int64_t row_block : {int64_t{0}, row_blocks() - 1}) {
      for (const int64_t block : {int64_t{0}, pixel_blocks() - 1}) {
        for (const int64_t step : {0, 1}) {
          routine_->Prepare(OfWeights(RowsOf(row_block), PixelsOf(block), step));
        }
      }
    }
  }

  // The kernel, and for its gradient what one image adds to it.
  int64_t scratch_bytes() const override {
    const int64_t kernels = p_.kind == Kind::kWeightGradient ? 2 : 1;
    return AlignedSize(kernels * kernel_size() * static_cast<int64_t>(sizeof(T)));
  }

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    auto* lhs = static_cast<T*>(const_cast<void*>(operands[lhs_operand_]));
    auto* rhs = static_cast<T*>(const_cast<void*>(operands[rhs_operand_]));
    auto* out = static_cast<T*>(results[0]);
    auto* w = static_cast<T*>(context.scratch);
    switch (p_.kind) {
      case Kind::kForward:
        PackWeights(context, rhs, w);
        return Forward(context, lhs + p_.x_view.offset, w, out);
      case Kind::kInputGradient:
        PackWeights(context, rhs, w);
        return InputGradient(context, out, w, lhs);
      case Kind::kWeightGradient:
        WeightGradient(context, lhs + p_.x_view.offset, w, rhs);
        return UnpackWeights(w, out);
    }
  }

  std::string Description() const override {
    constexpr const char* kNames[] = {"", " input gradient", " weight gradient"};
    return std::string("convolution of patches") + kNames[static_cast<int>(p_.kind)] + " " +
           std::string(hlo::ShortName(type_));
  }

 private:
  // Columns for about half of a second cache, and enough parts for all threads. Parts of the
  // gradients are of rows, so that no two add to the same numbers.
  void PlanBlocks() {
    constexpr int64_t kBytes = int64_t{512} << 10, kFewestPixels = 192, kFewestOfPart = 64;
    constexpr int64_t kMostBytes = int64_t{64} << 20;  // of a thread, which keeps them
    const int64_t threads = ThreadPool::Default().num_threads();
    const bool divides = threads > 1 && p_.FloatingPointOperations() > 2e5;
    const int64_t wanted = divides ? 2 * threads : 1;
    if (p_.kind == Kind::kForward) {
      const int64_t parts = hlo::CeilDivide(wanted, p_.batch * p_.groups);
      block_ = std::max(kFewestOfPart, hlo::CeilDivide(pixels_, parts));
    } else {
      const int64_t units = p_.kind == Kind::kInputGradient ? inputs_ : rows_;
      const int64_t others = p_.kind == Kind::kInputGradient ? p_.batch * p_.groups : p_.groups;
      const int64_t parts = std::min(units, hlo::CeilDivide(wanted, others));
      row_block_ = hlo::CeilDivide(units, parts) * (rows_ / units);
    }
    if (row_block_ == 0) row_block_ = rows_;
    block_ = block_ == 0 ? pixels_ : block_;
    const int64_t row_bytes = row_block_ * static_cast<int64_t>(sizeof(T));
    const int64_t fewest = std::clamp<int64_t>(kMostBytes / row_bytes, 1, kFewestPixels);
    block_ = std::min({pixels_, block_, std::max(fewest, kBytes / row_bytes)});
  }

  void PackWeights(const CallContext& context, const T* from, T* w) const {
    PackStrided(context.threads, p_.w_view.dimensions, p_.w_view.strides, from + p_.w_view.offset,
                type_, w, type_);
  }

  void UnpackWeights(const T* w, T* to) const { CopyElements(p_.w_view, w, to + p_.w_view.offset); }

  static void CopyElements(const StridedView& view, const T* from, T* to) {
    const Dimensions dense = hlo::RowMajorStrides(view.dimensions);
    if (view.strides == dense) {
      std::copy(from, from + hlo::Product(view.dimensions), to);
    } else if constexpr (sizeof(T) <= 8) {
      CopyStrided(view.dimensions, dense, view.strides, from, to, sizeof(T));
    } else {
      const int64_t count = hlo::Product(view.dimensions);
      for (int64_t i = 0; i < count; ++i) {
        int64_t place = 0, rest = i;
        for (size_t d = view.dimensions.size(); d-- > 0;) {
          place += rest % view.dimensions[d] * view.strides[d];
          rest /= view.dimensions[d];
        }
        to[place] = from[i];
      }
    }
  }

  // Rows x pixels of one image and group.
  struct Patches {
    const T* elements;
    int64_t row;  // how far apart rows lie
  };

  Patches PatchesOf(const T* channels, RowRange rows, PixelRange pixels, T* columns) const {
    if (in_place_) {
      const int64_t row = std::max(p_.x_view.strides[1], pixels_);
      return {channels + rows.begin * row + pixels.begin, row};
    }
    Gather(channels, rows, pixels, columns);
    return {columns, pixels.size()};
  }

  void Gather(const T* channels, RowRange rows, PixelRange pixels, T* columns) const {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const T* channel = channels + row / places_ * p_.x_view.strides[1];
      T* line = columns + (row - rows.begin) * pixels.size();
      AlongPixels(
          p_, p_.x_view.strides, row % places_, pixels,
          [&](int64_t column, int64_t element, int64_t step, int64_t count) {
            if (step == 1) {
              std::copy_n(channel + element, count, line + column);
            } else {
              for (int64_t i = 0; i < count; ++i) line[column + i] = channel[element + i * step];
            }
          },
          [&](int64_t column, int64_t count) { std::fill_n(line + column, count, T{}); });
    }
  }

  void ScatterAdd(const T* columns, RowRange rows, PixelRange pixels, T* channels) const {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      T* channel = channels + row / places_ * p_.x_view.strides[1];
      const T* line = columns + (row - rows.begin) * pixels.size();
      AlongPixels(
          p_, p_.x_view.strides, row % places_, pixels,
          [&](int64_t column, int64_t element, int64_t step, int64_t count) {
            for (int64_t i = 0; i < count; ++i) channel[element + i * step] += line[column + i];
          },
          [](int64_t, int64_t) {});
    }
  }

  const T* XOf(const T* x, int64_t image, int64_t group) const {
    return x + image * p_.x_view.strides[0] + group * inputs_ * p_.x_view.strides[1];
  }
  int64_t YOf(int64_t image, int64_t group, int64_t pixel) const {
    return image * p_.y_view.strides[0] + group * outputs_ * p_.y_view.strides[1] +
           pixel * PixelStride(p_.y_view);
  }
  int64_t kernel_size() const { return p_.groups * outputs_ * rows_; }
  int64_t pixel_blocks() const { return hlo::CeilDivide(pixels_, block_); }
  PixelRange PixelsOf(int64_t block) const {
    return {block * block_, std::min(pixels_, (block + 1) * block_)};
  }
  int64_t row_blocks() const { return hlo::CeilDivide(rows_, row_block_); }
  RowRange RowsOf(int64_t block) const {
    return {block * row_block_, std::min(rows_, (block + 1) * row_block_)};
  }
  // Of the thread, whose memory products of f32 take too: their patches lie in place.
  static T* Columns(int64_t count) {
    return static_cast<T*>(ThreadScratch(AlignedSize(count * static_cast<int64_t>(sizeof(T)))));
  }

  // y = w x columns, or transposed where y has its channels side by side.
  void Forward(const CallContext& context, const T* x, const T* w, T* y) const {
    const bool rows_of_pixels = PixelStride(p_.y_view) == 1;
    context.threads.ParallelFor(p_.batch * p_.groups * pixel_blocks(), [&](int64_t i) {
      const PixelRange pixels = PixelsOf(i % pixel_blocks());
      const int64_t group = i / pixel_blocks() % p_.groups;
      const int64_t image = i / (pixel_blocks() * p_.groups), count = pixels.size();
      T* space = in_place_ ? nullptr : Columns(rows_ * count);
      const Patches patches = PatchesOf(XOf(x, image, group), {0, rows_}, pixels, space);
      const T* weights = w + group * outputs_ * rows_;
      T* out = y + YOf(image, group, pixels.begin);
      if (rows_of_pixels) {
        const int64_t ldc = std::max(p_.y_view.strides[1], count);
        routine_->Run({outputs_, count, rows_, rows_, 1, patches.row, 1, ldc}, weights,
                      patches.elements, out);
      } else {
        const int64_t ldc = std::max(PixelStride(p_.y_view), outputs_);
        routine_->Run({count, outputs_, rows_, 1, patches.row, 1, rows_, ldc}, patches.elements,
                      weights, out);
      }
    });
  }

  // columns = transposed w x y, which are added where they came from.
  void InputGradient(const CallContext& context, T* x, const T* w, const T* y) const {
    const int64_t y_pixel = PixelStride(p_.y_view);
    context.threads.ParallelFor(p_.batch * p_.groups * row_blocks(), [&](int64_t i) {
      const RowRange rows = RowsOf(i % row_blocks());
      const int64_t group = i / row_blocks() % p_.groups, image = i / (row_blocks() * p_.groups);
      T* channels = const_cast<T*>(XOf(x, image, group));
      Clear(channels, rows);
      T* columns = Columns(rows.size() * block_);
      for (int64_t block = 0; block < pixel_blocks(); ++block) {
        const PixelRange pixels = PixelsOf(block);
        const int64_t count = pixels.size();
        const Product product = {rows.size(), count,           outputs_, 1,
                                 rows_,       YChannel(count), y_pixel,  count};
        routine_->Run(product, w + group * outputs_ * rows_ + rows.begin,
                      y + YOf(image, group, pixels.begin), columns);
        ScatterAdd(columns, rows, pixels, channels);
      }
    });
  }

  // The stride of a dimension of size one says nothing.
  int64_t YChannel(int64_t pixels) const {
    return PixelStride(p_.y_view) == 1 ? std::max(p_.y_view.strides[1], pixels) : 1;
  }

  void Clear(T* channels, RowRange rows) const {
    const StridedView& view = p_.x_view;
    const int64_t last = p_.rank() + 1, lines = hlo::Product(p_.x) / p_.x.back();
    for (int64_t c = rows.begin / places_; c < rows.end / places_; ++c) {
      for (int64_t line = 0; line < lines; ++line) {
        int64_t place = c * view.strides[1], rest = line;
        for (int64_t d = last; d-- > 2;) {
          place += rest % view.dimensions[d] * view.strides[d];
          rest /= view.dimensions[d];
        }
        for (int64_t i = 0; i < p_.x.back(); ++i) channels[place + i * view.strides[last]] = T{};
      }
    }
  }

  // Of a group and a block of pixels, which is the first where `step` is 0.
  Product OfWeights(RowRange rows, PixelRange pixels, int64_t step) const {
    const int64_t count = pixels.size();
    return {outputs_,
            rows.size(),
            count,
            YChannel(count),
            PixelStride(p_.y_view),
            1,
            in_place_ ? std::max(p_.x_view.strides[1], pixels_) : count,
            step == 0 ? rows_ : rows.size()};
  }

  // w = the sum of y x transposed columns over images, always in the same order.
  void WeightGradient(const CallContext& context, const T* x, T* w, const T* y) const {
    context.threads.ParallelFor(p_.groups * row_blocks(), [&](int64_t i) {
      const RowRange rows = RowsOf(i % row_blocks());
      const int64_t group = i / row_blocks();
      T* columns = in_place_ ? nullptr : Columns(rows.size() * block_);
      T* sums = w + group * outputs_ * rows_ + rows.begin;
      T* part = w + kernel_size() + outputs_ * (group * rows_ + rows.begin);
      for (int64_t step = 0; step < p_.batch * pixel_blocks(); ++step) {
        const int64_t image = step / pixel_blocks();
        const PixelRange pixels = PixelsOf(step % pixel_blocks());
        const Patches patches = PatchesOf(XOf(x, image, group), rows, pixels, columns);
        routine_->Run(OfWeights(rows, pixels, step), y + YOf(image, group, pixels.begin),
                      patches.elements, step == 0 ? sums : part);
        if (step == 0) continue;
        for (int64_t output = 0; output < outputs_; ++output) {
          T* line = sums + output * rows_;
          for (int64_t j = 0; j < rows.size(); ++j) line[j] += part[output * rows.size() + j];
        }
      }
    });
  }

  ConvolutionProblem p_;
  ElementType type_;
  std::unique_ptr<ProductRoutine> routine_;
  int lhs_operand_ = 0, rhs_operand_ = 1;
  int64_t inputs_, outputs_, places_, rows_, pixels_;  // of a group; places of the window
  int64_t block_ = 0, row_block_ = 0;
  bool in_place_ = false;
};

}  // namespace

std::unique_ptr<LibraryCall> MakePatchConvolution(const hlo::Instruction& convolution,
                                                  const ConvolutionProblem& problem,
                                                  const Epilogue* epilogue,
                                                  const hlo::Shape& result_shape) {
  const ElementType type = convolution.element_type();
  const bool is_forward_by_depth = problem.kind == Kind::kForward &&
                                   problem.groups == problem.inputs &&
                                   problem.groups == problem.outputs && problem.groups > 1;
  if (!IsAllOf(type, convolution, result_shape) || is_forward_by_depth ||
      !IsMatrix(problem.y_view) || hlo::Product(problem.y) < passes::kFewestPatchPixels) {
    return nullptr;
  }
  auto make = [&]<typename T>() -> std::unique_ptr<LibraryCall> {
    return std::make_unique<PatchConvolution<T>>(convolution, problem, epilogue, type);
  };
  // Of more channels oneDNN is as quick, of fewer pixels as well.
  constexpr int64_t kMostChannels = 16, kFewestInRows = 48;
  const bool is_pointwise_gradient =
      problem.kind == Kind::kWeightGradient && problem.groups == 1 && AreInPlace(problem) &&
      std::min(problem.inputs, problem.outputs) < kMostChannels &&
      hlo::Product(problem.x) >= kFewestInRows && HasDensePixels(problem.y_view);
  switch (type) {
    case ElementType::kF32:
      return is_pointwise_gradient ? make.operator()<float>() : nullptr;
    case ElementType::kF64:
      return make.operator()<double>();
    case ElementType::kC64:
      return make.operator()<std::complex<float>>();
    case ElementType::kC128:
      return make.operator()<std::complex<double>>();
    default:
      return nullptr;
  }
}

}  // namespace cpu
