// Runs a convolution through oneDNN, as its plan says: forward, gradient of the input, gradient of
// the weights.
#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "cpu/library/bind.h"
#include "cpu/library/convolution_plan.h"
#include "cpu/library/convolution_routines.h"
#include "cpu/library/onednn.h"
#include "cpu/library/strided_copy.h"

namespace cpu {
namespace {

using dnnl::memory;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Product;
using Activation = ConvolutionPlan::Activation;
using Primitive = ConvolutionPlan::Primitive;
using Slice = ConvolutionPlan::Slice;
using Staging = ConvolutionPlan::Staging;
using WeightBlock = ConvolutionPlan::WeightBlock;
using WeightReorder = ConvolutionPlan::WeightReorder;
using Kind = ConvolutionProblem::Kind;

// Moves the channels of a view to the end of its lists: the order of a channels-last copy.
StridedView ChannelsLastOrder(StridedView view) {
  std::rotate(view.dimensions.begin() + 1, view.dimensions.begin() + 2, view.dimensions.end());
  std::rotate(view.strides.begin() + 1, view.strides.begin() + 2, view.strides.end());
  return view;
}

// What a slice needs of an activation.
struct Box {
  int64_t batch_begin, batch_end;
  int64_t row_begin, row_end;
  int64_t channel_begin, channel_end;
};

// As [batch, channels, spatial...].
Dimensions SizesOf(const Activation& tensor, const Box& box) {
  Dimensions sizes = tensor.view.dimensions;
  sizes[0] = box.batch_end - box.batch_begin;
  sizes[1] = box.channel_end - box.channel_begin;
  sizes[2] = box.row_end - box.row_begin;
  return sizes;
}

// Of a dense copy of the box, channels-last.
Dimensions DenseStrides(const Activation& tensor, const Box& box) {
  const Dimensions sizes = SizesOf(tensor, box);
  return ChannelsLastStrides(sizes[1], {sizes.begin() + 2, sizes.end()});
}

// Where a box begins in the program's buffer.
int64_t PositionOf(const Activation& tensor, const Box& box) {
  const Dimensions& strides = tensor.view.strides;
  return tensor.view.offset + box.batch_begin * strides[0] + box.channel_begin * strides[1] +
         box.row_begin * strides[2];
}

void CopyIn(const Activation& tensor, const Box& box, const std::byte* buffer, std::byte* copy) {
  const size_t width = hlo::ByteWidth(tensor.type);
  CopyStrided(SizesOf(tensor, box), tensor.view.strides, DenseStrides(tensor, box),
              buffer + PositionOf(tensor, box) * width, copy, width);
}

// Where an element of an activation lies that the library works on in place, or of the copy of all
// of it.
std::byte* AddressIn(const Activation& tensor, std::byte* base, int64_t batch, int64_t row,
                     int64_t channel) {
  const int64_t element = batch * tensor.strides[0] + row * tensor.strides[2] + channel;
  return base + element * static_cast<int64_t>(hlo::ByteWidth(tensor.used_type));
}

class OneDnnConvolution : public LibraryCall {
 public:
  // Throws as PlanConvolution does.
  OneDnnConvolution(const hlo::Instruction& convolution, const ConvolutionProblem& problem,
                    const Epilogue* epilogue, const hlo::Shape& result_shape)
      : plan_(PlanConvolution(problem, convolution.operand(0)->element_type(),
                              convolution.operand(1)->element_type(), result_shape,
                              epilogue != nullptr && !epilogue->empty())) {
    if (epilogue == nullptr) return;
    if (!epilogue->empty()) epilogue_ = *epilogue;
    lhs_operand_ = static_cast<int>(convolution.operand(0)->parameter_number());
    rhs_operand_ = static_cast<int>(convolution.operand(1)->parameter_number());
  }

  int64_t scratch_bytes() const override { return plan_.scratch_bytes; }

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    OneThread one_thread;
    Buffers buffers = Stage(context, operands, results[0]);
    if (kind() == Kind::kWeightGradient) {
      RunWeightGradient(context, buffers, results[0]);
      return;
    }
    ReorderWeights(context, buffers.w, buffers.scratch);
    context.threads.ParallelFor(static_cast<int64_t>(plan_.slices.size()), [&](int64_t i) {
      OneThread one_thread;
      RunSlice(plan_.slices[i], buffers, operands);
    });
    const Activation& out = plan_.result();
    if (out.staging != Staging::kWhole) return;
    StoreResult(context.threads, epilogue_ ? &*epilogue_ : nullptr, plan_.result_shape,
                plan_.staged_strides, kind() == Kind::kForward ? buffers.y : buffers.x,
                out.used_type, operands, results[0]);
  }

  std::string Description() const override {
    constexpr const char* kNames[] = {"convolution", "convolution input gradient",
                                      "convolution weight gradient"};
    std::string text = "oneDNN ";
    text.append(kNames[static_cast<int>(kind())]).append(" ").append(plan_.implementation);
    text.append(" ").append(hlo::ShortName(plan_.type));
    text.append(", ").append(std::to_string(plan_.slices.size())).append(" slices");
    if (plan_.x.staging != Staging::kNone) text.append(", copies x");
    if (plan_.y.staging != Staging::kNone) text.append(", copies y");
    if (epilogue_) text.append(epilogue_->Description());
    return text;
  }

 private:
  struct Buffers {
    std::byte *x, *y;
    std::byte* w;  // plain
    std::byte* scratch;
  };

  Kind kind() const { return plan_.problem.kind; }

  Buffers Stage(const CallContext& context, const void* const* operands, void* result) const {
    Buffers b;
    b.scratch = static_cast<std::byte*>(context.scratch);
    auto* lhs = static_cast<std::byte*>(const_cast<void*>(operands[lhs_operand_]));
    auto* rhs = static_cast<std::byte*>(const_cast<void*>(operands[rhs_operand_]));
    auto* out = static_cast<std::byte*>(result);
    b.x = kind() == Kind::kInputGradient ? out : lhs;
    b.y = kind() == Kind::kForward ? out : kind() == Kind::kInputGradient ? lhs : rhs;
    b.w = kind() == Kind::kWeightGradient ? out : rhs;
    b.x = StageActivation(context, plan_.x, b.x, kind() != Kind::kInputGradient);
    b.y = StageActivation(context, plan_.y, b.y, kind() != Kind::kForward);
    if (plan_.w_packed) {
      std::byte* packed = b.scratch + plan_.w_offset;
      if (kind() != Kind::kWeightGradient) PackWeights(context, b.w, packed);
      b.w = packed;
    }
    return b;
  }

  void PackWeights(const CallContext& context, const std::byte* buffer, std::byte* packed) const {
    const StridedView& view = plan_.problem.w_view;
    PackStrided(context.threads, view.dimensions, view.strides,
                buffer + view.offset * static_cast<int64_t>(hlo::ByteWidth(plan_.w_type)),
                plan_.w_type, packed, plan_.plain_w_type);
  }

  std::byte* StageActivation(const CallContext& context, const Activation& tensor,
                             std::byte* buffer, bool read) const {
    if (tensor.staging != Staging::kWhole) return buffer;
    auto* copy = static_cast<std::byte*>(context.scratch) + tensor.offset;
    if (read) {
      StridedView view = ChannelsLastOrder(tensor.view);
      PackStrided(context.threads, view.dimensions, view.strides,
                  buffer + view.offset * static_cast<int64_t>(hlo::ByteWidth(tensor.type)),
                  tensor.type, copy, tensor.used_type);
    }
    return copy;
  }

  void Reorder(const CallContext& context, const WeightBlock& block, void* source,
               void* destination) const {
    context.threads.ParallelFor(static_cast<int64_t>(block.reorders.size()), [&](int64_t part) {
      OneThread one_thread;
      const WeightReorder& reorder = block.reorders[part];
      memory in(reorder.from, OneDnnEngine(), source);
      memory out(reorder.to, OneDnnEngine(), destination);
      reorder.primitive.execute(OneDnnStream(), {{DNNL_ARG_FROM, in}, {DNNL_ARG_TO, out}});
    });
  }

  void ReorderWeights(const CallContext& context, std::byte* w, std::byte* scratch) const {
    for (const WeightBlock& block : plan_.blocks) {
      Reorder(context, block, w + block.plain_offset, scratch + block.offset);
    }
  }

  void Execute(const Primitive& primitive, void* x, void* w, void* y, void* scratchpad) const {
    const dnnl::engine& engine = OneDnnEngine();
    constexpr int kArguments[][3] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                     {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                     {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    const int* names = kArguments[static_cast<int>(kind())];
    primitive.primitive.execute(
        OneDnnStream(), {{names[0], memory(primitive.x, engine, x)},
                         {names[1], memory(primitive.w, engine, w)},
                         {names[2], memory(primitive.y, engine, y)},
                         {DNNL_ARG_SCRATCHPAD, memory(primitive.scratchpad, engine, scratchpad)}});
  }

  // --- forward, and the gradient of the input

  Box OperandBox(const Slice& s) const {
    const ConvolutionProblem& p = plan_.problem;
    const bool forward = p.kind == Kind::kForward;
    const auto [begin, end] = forward ? plan_.InputRows(s) : std::pair<int64_t, int64_t>(0, p.y[0]);
    return {s.batch_begin, s.batch_end, begin, end, 0, forward ? p.inputs : p.outputs};
  }
  Box ResultBox(const Slice& s) const {
    const bool forward = kind() == Kind::kForward;
    return {s.batch_begin,
            s.batch_end,
            forward ? s.row_begin : 0,
            forward ? s.row_end : plan_.problem.x[0],
            s.channel_begin,
            s.channel_end};
  }

  void RunSlice(const Slice& s, const Buffers& b, const void* const* operands) const {
    const Primitive& primitive = plan_.PrimitiveOf(s);
    const bool forward = kind() == Kind::kForward;
    const Activation &in = plan_.operand(), &out = plan_.result();
    const Box from = OperandBox(s), to = ResultBox(s);
    const int64_t channels = s.channel_end - s.channel_begin, all = plan_.result_channels();
    const int64_t width = static_cast<int64_t>(hlo::ByteWidth(out.used_type));
    const int64_t pixels = Product(SizesOf(out, to)) / channels;
    const bool copies_in = in.staging == Staging::kSlices;
    // A block of channels is computed on its own and put in its place.
    const bool is_apart = out.staging == Staging::kSlices || channels != all;
    const int64_t scratchpad = AlignedSize(primitive.scratchpad.get_size());
    const int64_t in_bytes = copies_in ? AlignedSize(Product(SizesOf(in, from)) *
                                                     static_cast<int64_t>(hlo::ByteWidth(in.type)))
                                       : 0;
    auto* scratch = static_cast<std::byte*>(
        ThreadScratch(scratchpad + in_bytes + (is_apart ? pixels * channels * width : 0)));
    std::byte *in_base = forward ? b.x : b.y, *out_base = forward ? b.y : b.x;
    std::byte* source = copies_in ? scratch + scratchpad
                                  : AddressIn(in, in_base, from.batch_begin, from.row_begin, 0);
    std::byte* place = AddressIn(out, out_base, to.batch_begin, to.row_begin, 0);
    std::byte* target = is_apart ? scratch + scratchpad + in_bytes : place;
    if (copies_in) CopyIn(in, from, in_base, source);
    const WeightBlock* block = plan_.blocks.data();
    while (block->channel_begin != s.channel_begin) ++block;
    Execute(primitive, forward ? source : target, b.scratch + block->offset,
            forward ? target : source, scratch);
    if (out.staging == Staging::kSlices) return CopyOut(out, to, target, out_base, operands);
    for (int64_t i = 0; i < pixels && is_apart; ++i) {
      std::memcpy(place + (i * all + s.channel_begin) * width, target + i * channels * width,
                  channels * width);
    }
    const int64_t first = (place - out_base) / width / all;  // pixel
    Finish(place + s.channel_begin * width, first, pixels, s.channel_begin, channels, operands);
  }

  void CopyOut(const Activation& tensor, const Box& box, const std::byte* copy, std::byte* buffer,
               const void* const* operands) const {
    const size_t width = hlo::ByteWidth(tensor.type);
    const int64_t position = PositionOf(tensor, box);
    CopyStrided(SizesOf(tensor, box), DenseStrides(tensor, box), tensor.view.strides, copy,
                buffer + position * width, width);
    if (!epilogue_) return;
    FinishBox(SizesOf(tensor, box), tensor.view.strides, position, reinterpret_cast<float*>(buffer),
              operands);
  }

  // The epilogue on what has been stored of a box of [batch, channels, spatial...].
  void FinishBox(Dimensions sizes, const Dimensions& strides, int64_t position, float* buffer,
                 const void* const* operands) const {
    // Neighbours in the result: of one image and channel, or channels of one pixel.
    int64_t run = 1;
    for (size_t i = sizes.size(); i-- > 2;) {
      if (sizes[i] != 1 && strides[i] != run) break;
      run *= std::exchange(sizes[i], 1);
    }
    if (run == 1 && strides[1] == 1) run = std::exchange(sizes[1], 1);
    const int64_t runs = Product(sizes);
    for (int64_t i = 0; i < runs; ++i) {
      int64_t at = position;
      for (int64_t d = static_cast<int64_t>(sizes.size()) - 1, rest = i; d >= 0; --d) {
        at += rest % sizes[d] * strides[d];
        rest /= sizes[d];
      }
      epilogue_->Apply(buffer + at, at, run, operands);
    }
  }

  // The epilogue, on pixels of which the result has its channels minor-most; a result of which
  // there is a copy gets it when it is stored.
  void Finish(std::byte* target, int64_t first, int64_t pixels, int64_t channel, int64_t channels,
              const void* const* operands) const {
    if (!epilogue_ || plan_.result().staging != Staging::kNone) return;
    const int64_t all = plan_.result_channels();
    auto* values = reinterpret_cast<float*>(target);
    // Of one channel all pixels are neighbours in the result.
    if (all == 1) return epilogue_->Apply(values, first, pixels, operands);
    for (int64_t i = 0; i < pixels; ++i) {
      epilogue_->Apply(values + i * all, (first + i) * all + channel, channels, operands);
    }
  }

  // --- the gradient of the weights

  void RunWeightGradient(const CallContext& context, const Buffers& b, void* result) const {
    const std::vector<WeightBlock>& blocks = plan_.blocks;
    context.threads.ParallelFor(static_cast<int64_t>(plan_.slices.size()), [&](int64_t i) {
      OneThread one_thread;
      RunWeightGradientSlice(plan_.slices[i], b, b.scratch + blocks[i].offset);
    });
    const bool partial = !plan_.CutsChannels() && blocks.size() > 1;
    if (partial) SumPartials(context, b.scratch);
    for (size_t i = 0; i < (partial ? 1 : blocks.size()); ++i) {
      Reorder(context, blocks[i], b.scratch + blocks[i].offset, b.w + blocks[i].plain_offset);
    }
    if (plan_.w_packed) UnpackWeights(context, b.w, result);
  }

  // From the dense copy to the result's order. Only types of 16 bits come here.
  void UnpackWeights(const CallContext& context, const std::byte* packed, void* result) const {
    const StridedView& view = plan_.problem.w_view;
    const bool is_grouped = plan_.problem.groups > 1;
    const Dimensions& dimensions = plan_.result_shape.dimensions();
    const Dimensions strides = hlo::RowMajorStrides(dimensions);
    Dimensions source(strides.size(), 0);
    for (size_t d = 0; d < strides.size(); ++d) {
      for (size_t i = is_grouped ? 0 : 1; i < view.strides.size(); ++i) {
        if (view.strides[i] == strides[d] &&
            (view.dimensions[i] == dimensions[d] || (i == 1 && is_grouped))) {
          source[d] = plan_.plain_w.strides[i];
        }
      }
    }
    PackStrided(context.threads, dimensions, source, packed, plan_.plain_w_type, result,
                plan_.w_type);
  }

  void RunWeightGradientSlice(const Slice& s, const Buffers& b, void* w) const {
    const ConvolutionProblem& p = plan_.problem;
    const Primitive& primitive = plan_.PrimitiveOf(s);
    std::byte* x = AddressIn(plan_.x, b.x, s.batch_begin, 0, 0);
    std::byte* y = AddressIn(plan_.y, b.y, s.batch_begin, 0, s.channel_begin);
    int64_t scratchpad = AlignedSize(primitive.scratchpad.get_size());
    int64_t channels = s.channel_end - s.channel_begin;
    if (channels == p.outputs) {
      Execute(primitive, x, w, y, ThreadScratch(scratchpad));
      return;
    }
    int64_t width = static_cast<int64_t>(hlo::ByteWidth(plan_.type));
    int64_t pixels = p.batch * Product(p.y);
    auto* scratch = static_cast<std::byte*>(ThreadScratch(scratchpad + pixels * channels * width));
    std::byte* part = scratch + scratchpad;
    for (int64_t i = 0; i < pixels; ++i) {
      std::memcpy(part + i * channels * width, y + i * p.outputs * width, channels * width);
    }
    Execute(primitive, x, w, part, scratch);
  }

  // Always in the same order: the result does not depend on which thread came first.
  void SumPartials(const CallContext& context, std::byte* scratch) const {
    const std::vector<WeightBlock>& blocks = plan_.blocks;
    int64_t count = static_cast<int64_t>(blocks[0].format.get_size()) / 4;
    constexpr int64_t kChunk = 16384;
    auto* total = reinterpret_cast<float*>(scratch + blocks[0].offset);
    context.threads.ParallelFor(hlo::CeilDivide(count, kChunk), [&](int64_t chunk) {
      int64_t begin = chunk * kChunk, end = std::min(count, begin + kChunk);
      for (size_t i = 1; i < blocks.size(); ++i) {
        auto* part = reinterpret_cast<const float*>(scratch + blocks[i].offset);
        for (int64_t j = begin; j < end; ++j) total[j] += part[j];
      }
    });
  }

  ConvolutionPlan plan_;
  std::optional<Epilogue> epilogue_;
  int lhs_operand_ = 0, rhs_operand_ = 1;
};

}  // namespace

std::unique_ptr<LibraryCall> BindConvolution(const hlo::Instruction& convolution,
                                             const Epilogue* epilogue,
                                             const hlo::Shape& result_shape) {
  auto narrow = [](ElementType type) {
    return type == ElementType::kF32 || type == ElementType::kBF16 || type == ElementType::kF16;
  };
  ElementType lhs = convolution.operand(0)->element_type();
  ElementType rhs = convolution.operand(1)->element_type();
  bool library = narrow(lhs) && narrow(rhs) && narrow(convolution.element_type());
  auto problem = library ? RecognizeConvolution(convolution) : std::nullopt;
  if (problem &&
      (epilogue == nullptr || epilogue->empty() || problem->kind != Kind::kWeightGradient)) {
    try {
      auto pointwise = MakePointwiseConvolution(convolution, *problem, epilogue, result_shape);
      if (pointwise) return pointwise;
      auto depthwise = MakeDepthwiseConvolution(convolution, *problem, epilogue, result_shape);
      if (depthwise) return depthwise;
      auto patches = MakePatchConvolution(convolution, *problem, epilogue, result_shape);
      if (patches) return patches;
      return std::make_unique<OneDnnConvolution>(convolution, *problem, epilogue, result_shape);
    } catch (const dnnl::error&) {
    } catch (const std::invalid_argument&) {
    }
  }
  if (epilogue != nullptr && !epilogue->empty() && !library) return nullptr;
  for (ElementType type : {lhs, rhs, convolution.element_type(), result_shape.element_type()}) {
    bool native = narrow(type) || type == ElementType::kPred || type == ElementType::kF64 ||
                  hlo::IsComplex(type) || (hlo::IsInteger(type) && hlo::BitWidth(type) >= 8);
    if (!native) return nullptr;
  }
  if (!library) {
    const auto any = RecognizeConvolution(convolution);
    auto patches = any ? MakePatchConvolution(convolution, *any, epilogue, result_shape) : nullptr;
    if (patches) return patches;
  }
  return MakeDirectConvolution(convolution, epilogue, result_shape);
}

}  // namespace cpu
