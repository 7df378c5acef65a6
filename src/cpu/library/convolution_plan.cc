#include "cpu/library/convolution_plan.h"

#include <algorithm>
#include <stdexcept>

#include "cpu/library/onednn.h"

namespace cpu {
namespace {

using dnnl::memory;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Product;
using Activation = ConvolutionPlan::Activation;
using Primitive = ConvolutionPlan::Primitive;
using Staging = ConvolutionPlan::Staging;
using WeightBlock = ConvolutionPlan::WeightBlock;
using WeightReorder = ConvolutionPlan::WeightReorder;
using Kind = ConvolutionProblem::Kind;

memory::data_type DataType(ElementType type) {
  return type == ElementType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

bool NativeBFloat16() {
  static const bool native = OneDnnIsa() >= dnnl::cpu_isa::avx512_core_bf16;
  return native;
}

// Of what oneDNN reorders weights quickly: others take up to a hundred times as long.
bool IsLibraryType(ElementType type) {
  return type == ElementType::kF32 || (type == ElementType::kBF16 && NativeBFloat16());
}

// oneDNN 3.2's kernel for these in bf16 reads wrong rows of wide images.
bool IsDilatedDepthwiseGradient(const ConvolutionProblem& p) {
  return p.kind == Kind::kWeightGradient && p.groups > 1 && p.groups == p.inputs &&
         std::ranges::any_of(p.dilation, [](int64_t d) { return d != 1; });
}

bool SameLayout(const StridedView& view, const Dimensions& strides) {
  if (view.offset != 0) return false;
  for (size_t i = 0; i < strides.size(); ++i) {
    if (view.dimensions[i] != 1 && view.strides[i] != strides[i]) return false;
  }
  return true;
}

// --- activations

Activation PlanActivation(const ConvolutionPlan& plan, const StridedView& view, ElementType type,
                          int64_t channels, const Dimensions& spatial, bool is_result) {
  Activation tensor;
  tensor.view = view;
  tensor.type = type;
  tensor.strides = ChannelsLastStrides(channels, spatial);
  // A result may be wider than the operands; with an epilogue it has to be f32 first.
  tensor.used_type = !is_result                                         ? plan.type
                     : type == ElementType::kBF16 && !plan.has_epilogue ? plan.type
                                                                        : ElementType::kF32;
  if (tensor.used_type == type && SameLayout(view, tensor.strides)) return tensor;
  const bool by_slices = tensor.used_type == type && plan.problem.kind != Kind::kWeightGradient;
  tensor.staging = by_slices ? Staging::kSlices : Staging::kWhole;
  return tensor;
}

// The strides of `tensor`, channels-last, in the order of the result's dimensions.
Dimensions StagedStrides(const Activation& tensor, const hlo::Shape& result_shape) {
  const Dimensions strides = hlo::RowMajorStrides(result_shape.dimensions());
  Dimensions staged(strides.size(), 0);
  std::vector<bool> taken(strides.size(), false);
  for (size_t i = 0; i < tensor.view.dimensions.size(); ++i) {
    for (size_t d = 0; d < strides.size(); ++d) {
      if (taken[d] || strides[d] != tensor.view.strides[i] ||
          result_shape.dimensions()[d] != tensor.view.dimensions[i]) {
        continue;
      }
      staged[d] = tensor.strides[i];
      taken[d] = true;
      break;
    }
  }
  return staged;
}

void PlanTensors(ConvolutionPlan& plan, ElementType lhs, ElementType rhs) {
  const ConvolutionProblem& p = plan.problem;
  const ElementType out = plan.result_shape.element_type();
  const ElementType x_type = p.kind == Kind::kInputGradient ? out : lhs;
  const ElementType y_type = p.kind == Kind::kForward         ? out
                             : p.kind == Kind::kInputGradient ? lhs
                                                              : rhs;
  plan.w_type = p.kind == Kind::kWeightGradient ? out : rhs;
  plan.x = PlanActivation(plan, p.x_view, x_type, p.inputs, p.x, p.kind == Kind::kInputGradient);
  plan.y = PlanActivation(plan, p.y_view, y_type, p.outputs, p.y, p.kind == Kind::kForward);
  if (p.kind == Kind::kWeightGradient) return;
  plan.staged_strides = StagedStrides(plan.result(), plan.result_shape);
}

// --- primitives

memory::desc ActivationDescriptor(const Activation& tensor, int64_t batch, int64_t channels,
                                  Dimensions spatial, int64_t rows) {
  spatial[0] = rows;
  Dimensions dimensions = {batch, channels};
  dimensions.insert(dimensions.end(), spatial.begin(), spatial.end());
  return {dimensions, DataType(tensor.used_type), ChannelsLastStrides(channels, spatial)};
}

Dimensions WeightDimensions(const ConvolutionProblem& p, int64_t outputs, int64_t inputs) {
  Dimensions dimensions;
  if (p.groups > 1) dimensions.push_back(p.groups);
  dimensions.push_back(outputs / p.groups);
  dimensions.push_back(inputs / p.groups);
  dimensions.insert(dimensions.end(), p.w.begin(), p.w.end());
  return dimensions;
}

// The stride is the problem's; `dilation` is counted as the library does, from 0.
struct LibraryWindow {
  Dimensions dilation, padding_low, padding_high;
};

LibraryWindow WindowOf(const ConvolutionProblem& p, const ConvolutionPlan::Variant& v) {
  LibraryWindow window{p.dilation, p.padding_low, {}};
  for (int64_t& d : window.dilation) --d;
  window.padding_low[0] = v.padding_low;
  Dimensions x_sizes = p.x, y_sizes = p.y;
  x_sizes[0] = v.x_rows;
  y_sizes[0] = v.y_rows;
  for (int64_t i = 0; i < p.rank(); ++i) {
    window.padding_high.push_back((y_sizes[i] - 1) * p.stride[i] + (p.w[i] - 1) * p.dilation[i] +
                                  1 - x_sizes[i] - window.padding_low[i]);
  }
  return window;
}

memory::desc InAnyFormat(const memory::desc& d, memory::data_type type) {
  return {d.get_dims(), type, memory::format_tag::any};
}
memory::desc InAnyFormat(const memory::desc& d) { return InAnyFormat(d, d.get_data_type()); }

// Fills in the primitive and what it says of itself, for its `x` and `y`.
void CreatePrimitive(ConvolutionPlan& plan, Primitive& made, const memory::desc& w,
                     const LibraryWindow& window) {
  const Dimensions& stride = plan.problem.stride;
  const auto& [dilation, low, high] = window;
  const dnnl::engine& engine = OneDnnEngine();
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto algorithm = dnnl::algorithm::convolution_direct;
  const auto forward = [&](dnnl::prop_kind purpose, const memory::desc& x, const memory::desc& w,
                           const memory::desc& y) {
    return dnnl::convolution_forward::primitive_desc(engine, purpose, algorithm, x, w, y, stride,
                                                     dilation, low, high, attributes);
  };
  // What the gradients want as a hint: any forward convolution of these sizes.
  const auto hint = [&](memory::data_type w_type) {
    return forward(dnnl::prop_kind::forward_training, InAnyFormat(made.x), InAnyFormat(w, w_type),
                   InAnyFormat(made.y));
  };
  const auto take = [&](const auto& descriptor, const memory::desc& format) {
    made.w = format;
    made.scratchpad = descriptor.scratchpad_desc();
    plan.implementation = descriptor.impl_info_str();
    if (plan.implementation.starts_with("ref")) {
      throw std::invalid_argument("only a reference implementation");
    }
  };
  switch (plan.problem.kind) {
    case Kind::kForward: {
      const auto descriptor = forward(dnnl::prop_kind::forward_inference, made.x, w, made.y);
      take(descriptor, descriptor.weights_desc());
      made.primitive = dnnl::convolution_forward(descriptor);
      break;
    }
    case Kind::kInputGradient: {
      const dnnl::convolution_backward_data::primitive_desc descriptor(
          engine, algorithm, made.x, w, made.y, stride, dilation, low, high,
          hint(w.get_data_type()), attributes);
      take(descriptor, descriptor.weights_desc());
      made.primitive = dnnl::convolution_backward_data(descriptor);
      break;
    }
    case Kind::kWeightGradient: {
      const dnnl::convolution_backward_weights::primitive_desc descriptor(
          engine, algorithm, made.x, w, made.y, stride, dilation, low, high,
          hint(made.x.get_data_type()), attributes);
      take(descriptor, descriptor.diff_weights_desc());
      made.primitive = dnnl::convolution_backward_weights(descriptor);
      break;
    }
  }
}

// `w_format` is that of another primitive of as many channels, or zero.
Primitive MakePrimitive(ConvolutionPlan& plan, const ConvolutionPlan::Variant& v,
                        const memory::desc& w_format) {
  const ConvolutionProblem& p = plan.problem;
  const bool x_channels = p.kind == Kind::kInputGradient;
  const int64_t inputs = x_channels ? v.channels : p.inputs;
  const int64_t outputs = x_channels ? p.outputs : v.channels;
  Primitive made;
  made.x = ActivationDescriptor(plan.x, v.batch, inputs, p.x, v.x_rows);
  made.y = ActivationDescriptor(plan.y, v.batch, outputs, p.y, v.y_rows);
  // Sums of partial gradients are taken in f32.
  const auto w_type =
      p.kind == Kind::kWeightGradient ? memory::data_type::f32 : DataType(plan.type);
  const memory::desc w = !w_format.is_zero() ? w_format
                                             : memory::desc(WeightDimensions(p, outputs, inputs),
                                                            w_type, memory::format_tag::any);
  CreatePrimitive(plan, made, w, WindowOf(p, v));
  return made;
}

void PlanPrimitives(ConvolutionPlan& plan) {
  std::map<int64_t, memory::desc> formats;  // of w, by the number of channels
  for (const ConvolutionPlan::Slice& slice : plan.slices) {
    const ConvolutionPlan::Variant variant = plan.VariantOf(slice);
    if (plan.primitives.contains(variant)) continue;
    const auto known = formats.find(variant.channels);
    Primitive made =
        MakePrimitive(plan, variant, known == formats.end() ? memory::desc() : known->second);
    formats.emplace(variant.channels, made.w);
    plan.primitives.emplace(variant, std::move(made));
  }
  for (const ConvolutionPlan::Slice& slice : plan.slices) {
    const bool listed = std::ranges::any_of(plan.blocks, [&](const WeightBlock& block) {
      return block.channel_begin == slice.channel_begin;
    });
    if (listed && plan.problem.kind != Kind::kWeightGradient) continue;
    plan.blocks.push_back({.channel_begin = slice.channel_begin,
                           .channel_end = slice.channel_end,
                           .format = formats.at(slice.channel_end - slice.channel_begin)});
  }
}

// --- memory, and the weights' way through it

void PlanScratch(ConvolutionPlan& plan) {
  const ConvolutionProblem& p = plan.problem;
  const auto reserve = [&](int64_t bytes) {
    const int64_t offset = plan.scratch_bytes;
    plan.scratch_bytes += AlignedSize(bytes);
    return offset;
  };
  for (Activation* tensor : {&plan.x, &plan.y}) {
    if (tensor->staging == Staging::kWhole) tensor->offset = reserve(tensor->bytes());
  }
  for (WeightBlock& block : plan.blocks) {
    block.offset = reserve(static_cast<int64_t>(block.format.get_size()));
  }
  const bool flipped =
      std::ranges::any_of(p.w_view.strides, [](int64_t stride) { return stride < 0; });
  plan.w_packed = flipped || !IsLibraryType(plan.w_type);
  plan.plain_w = p.w_view;
  plan.plain_w_type = plan.w_type;
  if (plan.w_packed) {
    plan.w_offset = reserve(Product(p.w_view.dimensions) * 4);
    plan.plain_w.strides = hlo::RowMajorStrides(p.w_view.dimensions);
    plan.plain_w.offset = 0;
    plan.plain_w_type = p.kind == Kind::kWeightGradient ? ElementType::kF32 : plan.type;
  }
}

// The plain weights' channels [begin, end) as oneDNN sees them; the offset is in elements.
std::pair<memory::desc, int64_t> PlainWeights(const ConvolutionPlan& plan, int64_t begin,
                                              int64_t end) {
  Dimensions dimensions = plan.plain_w.dimensions, strides = plan.plain_w.strides;
  int64_t offset = plan.plain_w.offset;
  if (plan.problem.groups == 1) {
    const int64_t sliced = plan.problem.kind == Kind::kInputGradient ? 2 : 1;
    dimensions[sliced] = end - begin;
    offset += begin * strides[sliced];
    dimensions.erase(dimensions.begin());
    strides.erase(strides.begin());
  }
  return {memory::desc(dimensions, DataType(plan.plain_w_type), strides), offset};
}

WeightReorder MakeReorder(const memory::desc& from, const memory::desc& to) {
  const dnnl::engine& engine = OneDnnEngine();
  return {dnnl::reorder(dnnl::reorder::primitive_desc(engine, from, engine, to)), from, to};
}

// Brings weights into the library's format, or gradients out of it, in parts along the first
// dimension where the format can be cut there.
std::vector<WeightReorder> MakeReorders(const memory::desc& from, const memory::desc& to) {
  const Dimensions dimensions = from.get_dims();
  const int64_t parts = Product(dimensions) < 65536 ? 1 : std::min<int64_t>(8, dimensions[0] / 64);
  if (parts <= 1) return {MakeReorder(from, to)};
  const int64_t size = hlo::RoundUp(hlo::CeilDivide(dimensions[0], parts), 64);
  std::vector<WeightReorder> reorders;
  try {
    for (int64_t begin = 0; begin < dimensions[0]; begin += size) {
      Dimensions offsets(dimensions.size(), 0), sizes = dimensions;
      offsets[0] = begin;
      sizes[0] = std::min(size, dimensions[0] - begin);
      reorders.push_back(
          MakeReorder(from.submemory_desc(sizes, offsets), to.submemory_desc(sizes, offsets)));
    }
  } catch (const dnnl::error&) {
    return {MakeReorder(from, to)};  // the format's blocks are of another size
  }
  return reorders;
}

void PlanReorders(ConvolutionPlan& plan) {
  const auto width = static_cast<int64_t>(hlo::ByteWidth(plan.plain_w_type));
  for (WeightBlock& block : plan.blocks) {
    const auto [plain, offset] = PlainWeights(plan, block.channel_begin, block.channel_end);
    block.plain_offset = offset * width;
    block.reorders = plan.problem.kind == Kind::kWeightGradient ? MakeReorders(block.format, plain)
                                                                : MakeReorders(plain, block.format);
  }
}

}  // namespace

std::pair<int64_t, int64_t> ConvolutionPlan::InputRows(const Slice& slice) const {
  const ConvolutionProblem& p = problem;
  if (slice.row_begin == 0 && slice.row_end == p.y[0]) return {0, p.x[0]};
  const int64_t kernel = (p.w[0] - 1) * p.dilation[0] + 1;
  const int64_t begin = std::max<int64_t>(0, slice.row_begin * p.stride[0] - p.padding_low[0]);
  const int64_t end =
      std::min(p.x[0], (slice.row_end - 1) * p.stride[0] - p.padding_low[0] + kernel);
  return {begin, std::max(begin, end)};
}

ConvolutionPlan::Variant ConvolutionPlan::VariantOf(const Slice& slice) const {
  const auto [begin, end] = InputRows(slice);
  const int64_t low = problem.padding_low[0];
  const int64_t padding =
      slice.row_begin == 0 ? low : std::max<int64_t>(0, low - slice.row_begin * problem.stride[0]);
  return {slice.batch_end - slice.batch_begin, end - begin, slice.row_end - slice.row_begin,
          padding, slice.channel_end - slice.channel_begin};
}

Dimensions ChannelsLastStrides(int64_t channels, const Dimensions& spatial) {
  Dimensions strides(spatial.size() + 2);
  strides[1] = 1;
  int64_t stride = channels;
  for (size_t i = spatial.size(); i-- > 0;) {
    strides[2 + i] = stride;
    stride *= spatial[i];
  }
  strides[0] = stride;
  return strides;
}

ConvolutionPlan PlanConvolution(const ConvolutionProblem& problem, ElementType lhs, ElementType rhs,
                                const hlo::Shape& result_shape, bool has_epilogue) {
  const OneThread one_thread;
  ConvolutionPlan plan;
  plan.problem = problem;
  plan.result_shape = result_shape;
  plan.has_epilogue = has_epilogue;
  const bool bf16 = lhs == ElementType::kBF16 && rhs == ElementType::kBF16 && NativeBFloat16() &&
                    !IsDilatedDepthwiseGradient(problem);
  plan.type = bf16 ? ElementType::kBF16 : ElementType::kF32;
  PlanTensors(plan, lhs, rhs);
  PlanConvolutionSlices(plan);
  PlanPrimitives(plan);
  PlanScratch(plan);
  PlanReorders(plan);
  return plan;
}

}  // namespace cpu
