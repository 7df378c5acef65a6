// convolution through oneDNN: forward, gradient of the input, gradient of the weights. Activations
// go in and come out channels-last, as they are when the program has them so and through a copy
// when not, of as much at a time as the cache holds; weights are brought into the blocked format
// that the routine asks for. The work is cut over the batch, over rows of the result or over its
// channels, one thread each.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "cpu/library/bind.h"
#include "cpu/library/convolution_problem.h"
#include "cpu/library/direct_convolution.h"
#include "cpu/library/onednn.h"
#include "cpu/library/pointwise_convolution.h"
#include "cpu/library/strided_copy.h"
#include "cpu/memory.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

using dnnl::memory;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Product;
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

// Strides of [batch, channels, spatial...] with the channels minor-most.
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

bool SameLayout(const StridedView& view, const Dimensions& strides) {
  if (view.offset != 0) return false;
  for (size_t i = 0; i < strides.size(); ++i) {
    if (view.dimensions[i] != 1 && view.strides[i] != strides[i]) return false;
  }
  return true;
}

// Moves the channels of a view to the end of its lists: the order of a channels-last copy.
StridedView ChannelsLastOrder(StridedView view) {
  std::rotate(view.dimensions.begin() + 1, view.dimensions.begin() + 2, view.dimensions.end());
  std::rotate(view.strides.begin() + 1, view.strides.begin() + 2, view.strides.end());
  return view;
}

// The part of the work that one library call does.
struct Slice {
  int64_t batch_begin, batch_end;
  int64_t row_begin, row_end;          // of y's first spatial dimension; forward only
  int64_t channel_begin, channel_end;  // of the result: y's forward, x's backward, w's outputs
};

// What distinguishes the primitives of a call: sizes of a slice and its padding.
struct Variant {
  int64_t batch, x_rows, y_rows, padding_low, channels;
  auto operator<=>(const Variant&) const = default;
};

struct Primitive {
  dnnl::primitive primitive;
  memory::desc x, w, y, scratchpad;
};

// A part of the way between the plain weights of a block and the library's format.
struct WeightReorder {
  dnnl::reorder primitive;
  memory::desc from, to;
};

// Weights of a channel block in the library's format, at `offset` in the scratch memory.
struct WeightBlock {
  int64_t channel_begin = 0, channel_end = 0;
  memory::desc format;
  int64_t offset = 0;
  std::vector<WeightReorder> reorders = {};  // between the program's order and the format
};

// Whether the library works on an activation where it lies, on a copy of all of it, or on one of
// what a slice needs.
enum class Staging { kNone, kWhole, kSlices };

// What a slice needs of an activation.
struct Box {
  int64_t batch_begin, batch_end;
  int64_t row_begin, row_end;
  int64_t channel_begin, channel_end;
};

// Where an activation tensor lies while the call runs.
struct Activation {
  StridedView view;       // in the program's buffer
  ElementType type;       // of the program's buffer
  ElementType used_type;  // as given to the library
  Staging staging = Staging::kNone;
  int64_t offset = 0;  // of the copy of all of it in the scratch memory
  Dimensions strides;  // channels-last
  int64_t bytes() const {
    return AlignedSize(Product(view.dimensions) * static_cast<int64_t>(hlo::ByteWidth(used_type)));
  }
};

class OneDnnConvolution : public LibraryCall {
 public:
  // Throws dnnl::error where oneDNN has no implementation, and std::invalid_argument where it has a
  // slow one only.
  OneDnnConvolution(const hlo::Instruction& convolution, ConvolutionProblem problem,
                    const Epilogue* epilogue, const hlo::Shape& result_shape)
      : p_(std::move(problem)), result_shape_(result_shape) {
    if (epilogue != nullptr) {
      if (!epilogue->empty()) epilogue_ = *epilogue;
      lhs_operand_ = static_cast<int>(convolution.operand(0)->parameter_number());
      rhs_operand_ = static_cast<int>(convolution.operand(1)->parameter_number());
    }
    OneThread one_thread;
    ElementType lhs = convolution.operand(0)->element_type();
    ElementType rhs = convolution.operand(1)->element_type();
    bool bf16 = lhs == ElementType::kBF16 && rhs == ElementType::kBF16 && NativeBFloat16() &&
                !IsDilatedDepthwiseGradient();
    type_ = bf16 ? ElementType::kBF16 : ElementType::kF32;
    SetUpTensors(lhs, rhs);
    PlanSlices();
    MakePrimitives();
    PlanScratch();
    PlanReorders();
  }

  int64_t scratch_bytes() const override { return scratch_bytes_; }

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    OneThread one_thread;
    Buffers buffers = Stage(context, operands, results[0]);
    if (p_.kind == Kind::kWeightGradient) {
      RunWeightGradient(context, buffers, results[0]);
      return;
    }
    ReorderWeights(context, buffers.w, buffers.scratch);
    context.threads.ParallelFor(static_cast<int64_t>(slices_.size()), [&](int64_t i) {
      OneThread one_thread;
      RunSlice(slices_[i], buffers, operands);
    });
    const Activation& out = result_activation();
    if (out.staging != Staging::kWhole) return;
    StoreResult(context.threads, epilogue_ ? &*epilogue_ : nullptr, result_shape_, staged_strides_,
                p_.kind == Kind::kForward ? buffers.y : buffers.x, out.used_type, operands,
                results[0]);
  }

  std::string Description() const override {
    constexpr const char* kNames[] = {"convolution", "convolution input gradient",
                                      "convolution weight gradient"};
    std::string text = "oneDNN ";
    text.append(kNames[static_cast<int>(p_.kind)]).append(" ").append(implementation_);
    text.append(" ").append(hlo::ShortName(type_));
    text.append(", ").append(std::to_string(slices_.size())).append(" slices");
    if (x_.staging != Staging::kNone) text.append(", copies x");
    if (y_.staging != Staging::kNone) text.append(", copies y");
    if (epilogue_) text.append(epilogue_->Description());
    return text;
  }

 private:
  struct Buffers {
    std::byte *x, *y;
    std::byte* w;  // plain
    std::byte* scratch;
  };

  const Activation& result_activation() const { return p_.kind == Kind::kForward ? y_ : x_; }
  const Activation& operand_activation() const { return p_.kind == Kind::kForward ? x_ : y_; }

  // oneDNN 3.2's kernel for these in bf16 reads wrong rows of wide images.
  bool IsDilatedDepthwiseGradient() const {
    return p_.kind == Kind::kWeightGradient && p_.groups > 1 && p_.groups == p_.inputs &&
           std::ranges::any_of(p_.dilation, [](int64_t d) { return d != 1; });
  }

  void SetUpTensors(ElementType lhs, ElementType rhs) {
    ElementType out = result_shape_.element_type();
    ElementType x_type = p_.kind == Kind::kInputGradient ? out : lhs;
    ElementType y_type = p_.kind == Kind::kForward         ? out
                         : p_.kind == Kind::kInputGradient ? lhs
                                                           : rhs;
    w_type_ = p_.kind == Kind::kWeightGradient ? out : rhs;
    SetUp(x_, p_.x_view, x_type, p_.inputs, p_.x, p_.kind == Kind::kInputGradient);
    SetUp(y_, p_.y_view, y_type, p_.outputs, p_.y, p_.kind == Kind::kForward);
    // The result's row-major order in terms of the staged, channels-last copy.
    if (p_.kind != Kind::kWeightGradient) {
      const Activation& out_tensor = result_activation();
      Dimensions strides = hlo::RowMajorStrides(result_shape_.dimensions());
      staged_strides_.assign(strides.size(), 0);
      std::vector<bool> taken(strides.size(), false);
      for (size_t i = 0; i < out_tensor.view.dimensions.size(); ++i) {
        for (size_t d = 0; d < strides.size(); ++d) {
          if (taken[d] || strides[d] != out_tensor.view.strides[i] ||
              result_shape_.dimensions()[d] != out_tensor.view.dimensions[i]) {
            continue;
          }
          staged_strides_[d] = out_tensor.strides[i];
          taken[d] = true;
          break;
        }
      }
    }
  }

  void SetUp(Activation& tensor, const StridedView& view, ElementType type, int64_t channels,
             const Dimensions& spatial, bool is_result) {
    tensor.view = view;
    tensor.type = type;
    tensor.strides = ChannelsLastStrides(channels, spatial);
    // A result may be wider than the operands; with an epilogue it has to be f32 first.
    tensor.used_type = !is_result                                             ? type_
                       : type == ElementType::kBF16 && !epilogue_.has_value() ? type_
                                                                              : ElementType::kF32;
    if (tensor.used_type == type && SameLayout(view, tensor.strides)) return;
    const bool by_slices = tensor.used_type == type && p_.kind != Kind::kWeightGradient;
    tensor.staging = by_slices ? Staging::kSlices : Staging::kWhole;
  }

  // --- slices

  void PlanSlices() {
    int64_t threads = ThreadPool::Default().num_threads();
    double work = p_.FloatingPointOperations();
    int64_t worth = static_cast<int64_t>(work / 1e6);
    int64_t wanted = threads == 1 ? 1 : std::clamp<int64_t>(worth, 1, threads);
    if (p_.kind == Kind::kWeightGradient) return PlanWeightGradientSlices(wanted);
    if (threads > 1 && work > 40e6 * static_cast<double>(threads)) wanted = 4 * threads;
    if (PlanSlicesForCache(wanted)) return;
    if (p_.batch >= wanted || p_.batch >= 2 * threads)
      return SliceBatch(std::min(wanted, p_.batch));
    int64_t w_bytes = p_.outputs * p_.inputs / p_.groups * Product(p_.w);
    int64_t x_bytes = p_.batch * (p_.inputs * Product(p_.x) + p_.outputs * Product(p_.y));
    bool forward = p_.kind == Kind::kForward;
    bool few_images = p_.batch % threads != 0;
    int64_t channels = forward ? p_.outputs : p_.inputs;
    if (few_images && p_.groups == 1 && channels >= 64 && (w_bytes > x_bytes || !forward)) {
      return SliceChannels(std::min(wanted, threads), channels);
    }
    if (few_images && forward && p_.y[0] >= 4) return SliceRows(hlo::CeilDivide(wanted, p_.batch));
    SliceBatch(std::min(wanted, p_.batch));
  }

  // Elements of an image that are copied.
  int64_t StagedElements() const {
    int64_t elements = 0;
    for (const Activation* tensor : {&x_, &y_}) {
      if (tensor->staging != Staging::kSlices) continue;
      elements += Product(tensor->view.dimensions) / p_.batch;
    }
    return elements;
  }

  // What is copied is used and gone before others take its place in the cache. False where it is
  // little.
  bool PlanSlicesForCache(int64_t wanted) {
    constexpr int64_t kCachedBytes = 384 << 10;
    const int64_t image = StagedElements() * static_cast<int64_t>(hlo::ByteWidth(type_));
    if (image * p_.batch <= kCachedBytes) return false;
    // Slices share the rows that both their windows reach.
    const int64_t kernel = (p_.w[0] - 1) * p_.dilation[0] + 1;
    const int64_t least_rows = 4 + 2 * kernel / p_.stride[0];
    const int64_t most_pieces = p_.kind == Kind::kForward ? p_.y[0] / least_rows : 1;
    const int64_t pieces = std::min(most_pieces, std::max(hlo::CeilDivide(image, kCachedBytes),
                                                          hlo::CeilDivide(wanted, p_.batch)));
    // A thread keeps the memory of its copies; a program's is given back.
    constexpr int64_t kMostKeptBytes = 4 << 20;
    if (image > kMostKeptBytes * std::max<int64_t>(pieces, 1)) {
      for (Activation* tensor : {&x_, &y_}) {
        if (tensor->staging == Staging::kSlices) tensor->staging = Staging::kWhole;
      }
      return false;
    }
    if (pieces > 1) {
      SliceRows(pieces);
      return true;
    }
    const int64_t batches = hlo::CeilDivide(image * p_.batch, kCachedBytes);
    if (p_.batch < std::max(batches, wanted) && p_.batch < 2 * wanted) return false;
    SliceBatch(std::min(p_.batch, std::max(batches, wanted)));
    return true;
  }

  // Partial sums cost one pass over a copy of the gradient each, channel blocks a copy of y: the
  // cheaper one.
  void PlanWeightGradientSlices(int64_t wanted) {
    int64_t w_elements = p_.outputs * p_.inputs / p_.groups * Product(p_.w);
    int64_t y_elements = p_.batch * p_.outputs * Product(p_.y);
    bool by_channels = p_.groups == 1 && p_.outputs >= 16 * wanted && wanted > 1 &&
                       (w_elements * wanted > y_elements || p_.batch < wanted);
    if (by_channels) return SliceChannels(wanted, p_.outputs);
    SliceBatch(std::min(wanted, p_.batch));
  }

  Slice Whole() const {
    int64_t channels = p_.kind == Kind::kInputGradient ? p_.inputs : p_.outputs;
    return {0, p_.batch, 0, p_.y[0], 0, channels};
  }

  void SliceBatch(int64_t pieces) {
    int64_t size = hlo::CeilDivide(p_.batch, pieces);
    for (int64_t begin = 0; begin < p_.batch; begin += size) {
      Slice slice = Whole();
      slice.batch_begin = begin;
      slice.batch_end = std::min(p_.batch, begin + size);
      slices_.push_back(slice);
    }
  }

  void SliceRows(int64_t pieces_per_image) {
    int64_t size = hlo::CeilDivide(p_.y[0], pieces_per_image);
    for (int64_t n = 0; n < p_.batch; ++n) {
      for (int64_t row = 0; row < p_.y[0]; row += size) {
        Slice slice = Whole();
        slice.batch_begin = n;
        slice.batch_end = n + 1;
        slice.row_begin = row;
        slice.row_end = std::min(p_.y[0], row + size);
        slices_.push_back(slice);
      }
    }
  }

  void SliceChannels(int64_t pieces, int64_t channels) {
    constexpr int64_t kLibrarysBlock = 16;
    const int64_t size = hlo::RoundUp(hlo::CeilDivide(channels, pieces), kLibrarysBlock);
    for (int64_t begin = 0; begin < channels; begin += size) {
      Slice slice = Whole();
      slice.channel_begin = begin;
      slice.channel_end = std::min(channels, begin + size);
      slices_.push_back(slice);
    }
  }

  int64_t result_channels() const {
    return p_.kind == Kind::kInputGradient ? p_.inputs : p_.outputs;
  }
  bool SlicesChannels() const {
    return slices_[0].channel_end != result_channels() || slices_[0].channel_begin != 0;
  }

  // Rows of x that rows [begin, end) of y read.
  std::pair<int64_t, int64_t> InputRows(const Slice& s) const {
    if (s.row_begin == 0 && s.row_end == p_.y[0]) return {0, p_.x[0]};
    int64_t kernel = (p_.w[0] - 1) * p_.dilation[0] + 1;
    int64_t begin = std::max<int64_t>(0, s.row_begin * p_.stride[0] - p_.padding_low[0]);
    int64_t end = std::min(p_.x[0], (s.row_end - 1) * p_.stride[0] - p_.padding_low[0] + kernel);
    return {begin, std::max(begin, end)};
  }

  Variant MakeVariant(const Slice& s) const {
    auto [begin, end] = InputRows(s);
    int64_t padding = s.row_begin == 0
                          ? p_.padding_low[0]
                          : std::max<int64_t>(0, p_.padding_low[0] - s.row_begin * p_.stride[0]);
    return {s.batch_end - s.batch_begin, end - begin, s.row_end - s.row_begin, padding,
            s.channel_end - s.channel_begin};
  }

  // --- primitives

  void MakePrimitives() {
    std::map<int64_t, memory::desc> formats;  // of w, by the number of channels
    for (const Slice& slice : slices_) {
      Variant variant = MakeVariant(slice);
      if (primitives_.contains(variant)) continue;
      auto known = formats.find(variant.channels);
      Primitive made =
          MakePrimitive(variant, known == formats.end() ? memory::desc() : known->second);
      formats.emplace(variant.channels, made.w);
      primitives_.emplace(variant, std::move(made));
    }
    for (const Slice& slice : slices_) {
      int64_t channels = slice.channel_end - slice.channel_begin;
      bool listed = std::any_of(blocks_.begin(), blocks_.end(), [&](const WeightBlock& block) {
        return block.channel_begin == slice.channel_begin;
      });
      if (listed && p_.kind != Kind::kWeightGradient) continue;
      blocks_.push_back({slice.channel_begin, slice.channel_end, formats.at(channels), 0});
    }
  }

  memory::desc ActivationDescriptor(const Activation& tensor, int64_t batch, int64_t channels,
                                    Dimensions spatial, int64_t rows) const {
    spatial[0] = rows;
    Dimensions dimensions = {batch, channels};
    dimensions.insert(dimensions.end(), spatial.begin(), spatial.end());
    return {dimensions, DataType(tensor.used_type), ChannelsLastStrides(channels, spatial)};
  }

  Dimensions WeightDimensions(int64_t outputs, int64_t inputs) const {
    Dimensions dimensions;
    if (p_.groups > 1) dimensions.push_back(p_.groups);
    dimensions.push_back(outputs / p_.groups);
    dimensions.push_back(inputs / p_.groups);
    dimensions.insert(dimensions.end(), p_.w.begin(), p_.w.end());
    return dimensions;
  }

  Primitive MakePrimitive(const Variant& v, const memory::desc& w_format) {
    bool x_channels = p_.kind == Kind::kInputGradient;
    int64_t inputs = x_channels ? v.channels : p_.inputs;
    int64_t outputs = x_channels ? p_.outputs : v.channels;
    Primitive made;
    made.x = ActivationDescriptor(x_, v.batch, inputs, p_.x, v.x_rows);
    made.y = ActivationDescriptor(y_, v.batch, outputs, p_.y, v.y_rows);
    // Sums of partial gradients are taken in f32.
    auto w_type = p_.kind == Kind::kWeightGradient ? memory::data_type::f32 : DataType(type_);
    memory::desc w = !w_format.is_zero() ? w_format
                                         : memory::desc(WeightDimensions(outputs, inputs), w_type,
                                                        memory::format_tag::any);
    Dimensions dilation = p_.dilation, low = p_.padding_low, high;
    for (int64_t& d : dilation) --d;
    low[0] = v.padding_low;
    Dimensions x_sizes = p_.x, y_sizes = p_.y;
    x_sizes[0] = v.x_rows;
    y_sizes[0] = v.y_rows;
    for (int64_t i = 0; i < p_.rank(); ++i) {
      high.push_back((y_sizes[i] - 1) * p_.stride[i] + (p_.w[i] - 1) * p_.dilation[i] + 1 -
                     x_sizes[i] - low[i]);
    }
    CreatePrimitive(made, w, dilation, low, high);
    return made;
  }

  void CreatePrimitive(Primitive& made, const memory::desc& w, const Dimensions& dilation,
                       const Dimensions& low, const Dimensions& high) {
    const dnnl::engine& engine = OneDnnEngine();
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    auto algorithm = dnnl::algorithm::convolution_direct;
    // The gradients' hint: any forward convolution of these sizes.
    auto forward = [&](const memory::desc& x, const memory::desc& w, const memory::desc& y) {
      return dnnl::convolution_forward::primitive_desc(engine, dnnl::prop_kind::forward_training,
                                                       algorithm, x, w, y, p_.stride, dilation, low,
                                                       high, attributes);
    };
    auto any = [](const memory::desc& d) {
      return memory::desc(d.get_dims(), d.get_data_type(), memory::format_tag::any);
    };
    auto take = [&](auto descriptor, const memory::desc& format) {
      made.w = format;
      made.scratchpad = descriptor.scratchpad_desc();
      implementation_ = descriptor.impl_info_str();
      if (implementation_.starts_with("ref")) {
        throw std::invalid_argument("only a reference implementation");
      }
    };
    if (p_.kind == Kind::kForward) {
      auto descriptor = dnnl::convolution_forward::primitive_desc(
          engine, dnnl::prop_kind::forward_inference, algorithm, made.x, w, made.y, p_.stride,
          dilation, low, high, attributes);
      take(descriptor, descriptor.weights_desc());
      made.primitive = dnnl::convolution_forward(descriptor);
    } else if (p_.kind == Kind::kInputGradient) {
      auto hint = forward(any(made.x), any(w), any(made.y));
      dnnl::convolution_backward_data::primitive_desc descriptor(
          engine, algorithm, made.x, w, made.y, p_.stride, dilation, low, high, hint, attributes);
      take(descriptor, descriptor.weights_desc());
      made.primitive = dnnl::convolution_backward_data(descriptor);
    } else {
      auto hint = forward(
          any(made.x), memory::desc(w.get_dims(), made.x.get_data_type(), memory::format_tag::any),
          any(made.y));
      dnnl::convolution_backward_weights::primitive_desc descriptor(
          engine, algorithm, made.x, w, made.y, p_.stride, dilation, low, high, hint, attributes);
      take(descriptor, descriptor.diff_weights_desc());
      made.primitive = dnnl::convolution_backward_weights(descriptor);
    }
  }

  void PlanScratch() {
    auto reserve = [&](int64_t bytes) {
      int64_t offset = scratch_bytes_;
      scratch_bytes_ += AlignedSize(bytes);
      return offset;
    };
    for (Activation* tensor : {&x_, &y_}) {
      if (tensor->staging == Staging::kWhole) tensor->offset = reserve(tensor->bytes());
    }
    for (WeightBlock& block : blocks_) block.offset = reserve(block.format.get_size());
    bool flipped = std::any_of(p_.w_view.strides.begin(), p_.w_view.strides.end(),
                               [](int64_t stride) { return stride < 0; });
    w_packed_ = flipped || !IsLibraryType(w_type_);
    plain_w_ = p_.w_view;
    plain_w_type_ = w_type_;
    if (w_packed_) {
      w_offset_ = reserve(Product(p_.w_view.dimensions) * 4);
      plain_w_.strides = hlo::RowMajorStrides(p_.w_view.dimensions);
      plain_w_.offset = 0;
      plain_w_type_ = p_.kind == Kind::kWeightGradient ? ElementType::kF32 : type_;
    }
  }

  // --- running

  Buffers Stage(const CallContext& context, const void* const* operands, void* result) const {
    Buffers b;
    b.scratch = static_cast<std::byte*>(context.scratch);
    auto* lhs = static_cast<std::byte*>(const_cast<void*>(operands[lhs_operand_]));
    auto* rhs = static_cast<std::byte*>(const_cast<void*>(operands[rhs_operand_]));
    auto* out = static_cast<std::byte*>(result);
    b.x = p_.kind == Kind::kInputGradient ? out : lhs;
    b.y = p_.kind == Kind::kForward ? out : p_.kind == Kind::kInputGradient ? lhs : rhs;
    b.w = p_.kind == Kind::kWeightGradient ? out : rhs;
    b.x = StageActivation(context, x_, b.x, p_.kind != Kind::kInputGradient);
    b.y = StageActivation(context, y_, b.y, p_.kind != Kind::kForward);
    if (w_packed_) {
      if (p_.kind != Kind::kWeightGradient) {
        auto* begin = b.w + p_.w_view.offset * static_cast<int64_t>(hlo::ByteWidth(w_type_));
        PackStrided(context.threads, p_.w_view.dimensions, p_.w_view.strides, begin, w_type_,
                    b.scratch + w_offset_, plain_w_type_);
      }
      b.w = b.scratch + w_offset_;
    }
    return b;
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

  // The plain weights' channels [begin, end) as oneDNN sees them; the offset is in elements.
  std::pair<memory::desc, int64_t> PlainWeights(int64_t begin, int64_t end) const {
    Dimensions dimensions = plain_w_.dimensions, strides = plain_w_.strides;
    int64_t offset = plain_w_.offset;
    if (p_.groups == 1) {
      int64_t sliced = p_.kind == Kind::kInputGradient ? 2 : 1;
      dimensions[sliced] = end - begin;
      offset += begin * strides[sliced];
      dimensions.erase(dimensions.begin());
      strides.erase(strides.begin());
    }
    return {memory::desc(dimensions, DataType(plain_w_type_), strides), offset};
  }

  // Brings weights into the library's format, or gradients out of it, in parts along the first
  // dimension where the format can be cut there.
  static std::vector<WeightReorder> PlanReorders(const memory::desc& from, const memory::desc& to) {
    const Dimensions dimensions = from.get_dims();
    const int64_t parts =
        Product(dimensions) < 65536 ? 1 : std::min<int64_t>(8, dimensions[0] / 64);
    auto make = [](const memory::desc& from, const memory::desc& to) {
      const dnnl::engine& engine = OneDnnEngine();
      return WeightReorder{dnnl::reorder(dnnl::reorder::primitive_desc(engine, from, engine, to)),
                           from, to};
    };
    if (parts <= 1) return {make(from, to)};
    const int64_t size = hlo::RoundUp(hlo::CeilDivide(dimensions[0], parts), 64);
    std::vector<WeightReorder> reorders;
    try {
      for (int64_t begin = 0; begin < dimensions[0]; begin += size) {
        Dimensions offsets(dimensions.size(), 0), sizes = dimensions;
        offsets[0] = begin;
        sizes[0] = std::min(size, dimensions[0] - begin);
        reorders.push_back(
            make(from.submemory_desc(sizes, offsets), to.submemory_desc(sizes, offsets)));
      }
    } catch (const dnnl::error&) {
      return {make(from, to)};  // the format's blocks are of another size
    }
    return reorders;
  }

  void PlanReorders() {
    for (WeightBlock& block : blocks_) {
      auto [plain, offset] = PlainWeights(block.channel_begin, block.channel_end);
      block.reorders = p_.kind == Kind::kWeightGradient ? PlanReorders(block.format, plain)
                                                        : PlanReorders(plain, block.format);
    }
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

  std::byte* PlainBlock(const WeightBlock& block, std::byte* w) const {
    const int64_t offset = PlainWeights(block.channel_begin, block.channel_end).second;
    return w + offset * static_cast<int64_t>(hlo::ByteWidth(plain_w_type_));
  }

  void ReorderWeights(const CallContext& context, std::byte* w, std::byte* scratch) const {
    for (const WeightBlock& block : blocks_) {
      Reorder(context, block, PlainBlock(block, w), scratch + block.offset);
    }
  }

  std::byte* SliceOf(const Activation& tensor, std::byte* base, int64_t batch, int64_t row,
                     int64_t channel) const {
    int64_t element = batch * tensor.strides[0] + row * tensor.strides[2] + channel;
    return base + element * static_cast<int64_t>(hlo::ByteWidth(tensor.used_type));
  }

  void Execute(const Primitive& primitive, void* x, void* w, void* y, void* scratchpad) const {
    const dnnl::engine& engine = OneDnnEngine();
    constexpr int kArguments[][3] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                     {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                     {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    const int* names = kArguments[static_cast<int>(p_.kind)];
    primitive.primitive.execute(
        OneDnnStream(), {{names[0], memory(primitive.x, engine, x)},
                         {names[1], memory(primitive.w, engine, w)},
                         {names[2], memory(primitive.y, engine, y)},
                         {DNNL_ARG_SCRATCHPAD, memory(primitive.scratchpad, engine, scratchpad)}});
  }

  Box OperandBox(const Slice& s) const {
    const bool forward = p_.kind == Kind::kForward;
    const auto [begin, end] = forward ? InputRows(s) : std::pair<int64_t, int64_t>(0, p_.y[0]);
    return {s.batch_begin, s.batch_end, begin, end, 0, forward ? p_.inputs : p_.outputs};
  }
  Box ResultBox(const Slice& s) const {
    const bool forward = p_.kind == Kind::kForward;
    return {s.batch_begin,   s.batch_end,  forward ? s.row_begin : 0, forward ? s.row_end : p_.x[0],
            s.channel_begin, s.channel_end};
  }

  // As [batch, channels, spatial...].
  static Dimensions SizesOf(const Activation& tensor, const Box& box) {
    Dimensions sizes = tensor.view.dimensions;
    sizes[0] = box.batch_end - box.batch_begin;
    sizes[1] = box.channel_end - box.channel_begin;
    sizes[2] = box.row_end - box.row_begin;
    return sizes;
  }
  // Of a dense copy of the box, channels-last.
  static Dimensions DenseStrides(const Activation& tensor, const Box& box) {
    const Dimensions sizes = SizesOf(tensor, box);
    return ChannelsLastStrides(sizes[1], {sizes.begin() + 2, sizes.end()});
  }
  // Where a box begins in the program's buffer.
  static int64_t PositionOf(const Activation& tensor, const Box& box) {
    const Dimensions& strides = tensor.view.strides;
    return tensor.view.offset + box.batch_begin * strides[0] + box.channel_begin * strides[1] +
           box.row_begin * strides[2];
  }

  static void CopyIn(const Activation& tensor, const Box& box, const std::byte* buffer,
                     std::byte* copy) {
    const size_t width = hlo::ByteWidth(tensor.type);
    CopyStrided(SizesOf(tensor, box), tensor.view.strides, DenseStrides(tensor, box),
                buffer + PositionOf(tensor, box) * width, copy, width);
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

  // Forward or input gradient.
  void RunSlice(const Slice& s, const Buffers& b, const void* const* operands) const {
    const Primitive& primitive = primitives_.at(MakeVariant(s));
    const bool forward = p_.kind == Kind::kForward;
    const Activation &in = operand_activation(), &out = result_activation();
    const Box from = OperandBox(s), to = ResultBox(s);
    const int64_t channels = s.channel_end - s.channel_begin, all = result_channels();
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
                                  : SliceOf(in, in_base, from.batch_begin, from.row_begin, 0);
    std::byte* place = SliceOf(out, out_base, to.batch_begin, to.row_begin, 0);
    std::byte* target = is_apart ? scratch + scratchpad + in_bytes : place;
    if (copies_in) CopyIn(in, from, in_base, source);
    const WeightBlock* block = blocks_.data();
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

  // The epilogue, on pixels of which the result has its channels minor-most; a result of which
  // there is a copy gets it when it is stored.
  void Finish(std::byte* target, int64_t first, int64_t pixels, int64_t channel, int64_t channels,
              const void* const* operands) const {
    if (!epilogue_ || result_activation().staging != Staging::kNone) return;
    int64_t all = result_channels();
    auto* values = reinterpret_cast<float*>(target);
    // Of one channel all pixels are neighbours in the result.
    if (all == 1) return epilogue_->Apply(values, first, pixels, operands);
    for (int64_t i = 0; i < pixels; ++i) {
      epilogue_->Apply(values + i * all, (first + i) * all + channel, channels, operands);
    }
  }

  void RunWeightGradient(const CallContext& context, const Buffers& b, void* result) const {
    context.threads.ParallelFor(static_cast<int64_t>(slices_.size()), [&](int64_t i) {
      OneThread one_thread;
      RunWeightGradientSlice(slices_[i], b, b.scratch + blocks_[i].offset);
    });
    bool partial = !SlicesChannels() && blocks_.size() > 1;
    if (partial) SumPartials(context, b.scratch);
    for (size_t i = 0; i < (partial ? 1 : blocks_.size()); ++i) {
      Reorder(context, blocks_[i], b.scratch + blocks_[i].offset, PlainBlock(blocks_[i], b.w));
    }
    if (!w_packed_) return;
    // Only f16 comes here: from the dense copy to the result's order.
    Dimensions strides = hlo::RowMajorStrides(result_shape_.dimensions());
    Dimensions source(strides.size(), 0);
    for (size_t d = 0; d < strides.size(); ++d) {
      for (size_t i = 0; i < p_.w_view.strides.size(); ++i) {
        if (i == 0 && p_.groups == 1) continue;
        if (p_.w_view.strides[i] == strides[d] &&
            (p_.w_view.dimensions[i] == result_shape_.dimensions()[d] ||
             (i == 1 && p_.groups > 1))) {
          source[d] = plain_w_.strides[i];
        }
      }
    }
    PackStrided(context.threads, result_shape_.dimensions(), source, b.w, plain_w_type_, result,
                w_type_);
  }

  void RunWeightGradientSlice(const Slice& s, const Buffers& b, void* w) const {
    const Primitive& primitive = primitives_.at(MakeVariant(s));
    std::byte* x = SliceOf(x_, b.x, s.batch_begin, 0, 0);
    std::byte* y = SliceOf(y_, b.y, s.batch_begin, 0, s.channel_begin);
    int64_t scratchpad = AlignedSize(primitive.scratchpad.get_size());
    int64_t channels = s.channel_end - s.channel_begin;
    if (channels == p_.outputs) {
      Execute(primitive, x, w, y, ThreadScratch(scratchpad));
      return;
    }
    int64_t width = static_cast<int64_t>(hlo::ByteWidth(type_));
    int64_t pixels = p_.batch * Product(p_.y);
    auto* scratch = static_cast<std::byte*>(ThreadScratch(scratchpad + pixels * channels * width));
    std::byte* part = scratch + scratchpad;
    for (int64_t i = 0; i < pixels; ++i) {
      std::memcpy(part + i * channels * width, y + i * p_.outputs * width, channels * width);
    }
    Execute(primitive, x, w, part, scratch);
  }

  // Always in the same order: the result does not depend on which thread came first.
  void SumPartials(const CallContext& context, std::byte* scratch) const {
    int64_t count = static_cast<int64_t>(blocks_[0].format.get_size()) / 4;
    constexpr int64_t kChunk = 16384;
    auto* total = reinterpret_cast<float*>(scratch + blocks_[0].offset);
    context.threads.ParallelFor(hlo::CeilDivide(count, kChunk), [&](int64_t chunk) {
      int64_t begin = chunk * kChunk, end = std::min(count, begin + kChunk);
      for (size_t i = 1; i < blocks_.size(); ++i) {
        auto* part = reinterpret_cast<const float*>(scratch + blocks_[i].offset);
        for (int64_t j = begin; j < end; ++j) total[j] += part[j];
      }
    });
  }

  ConvolutionProblem p_;
  hlo::Shape result_shape_;
  std::optional<Epilogue> epilogue_;
  int lhs_operand_ = 0, rhs_operand_ = 1;
  ElementType type_;  // of the operands as given to the library
  Activation x_, y_;
  StridedView plain_w_;
  ElementType w_type_ = ElementType::kF32, plain_w_type_ = ElementType::kF32;
  bool w_packed_ = false;
  int64_t w_offset_ = 0;
  Dimensions staged_strides_;
  std::vector<Slice> slices_;
  std::map<Variant, Primitive> primitives_;
  std::vector<WeightBlock> blocks_;
  std::string implementation_;
  int64_t scratch_bytes_ = 0;
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
  return MakeDirectConvolution(convolution, epilogue, result_shape);
}

}  // namespace cpu
