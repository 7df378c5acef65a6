#include "passes/passes.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "hlo/builder.h"
#include "hlo/size_arithmetic.h"
#include "passes/large_windows.h"
#include "passes/patch_pixels.h"

namespace passes {
namespace {

using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;

// Dimension d of a value is dimension Moved(d) of its channels-last form.
int64_t Moved(int64_t d, int64_t rank) { return d == 0 ? 0 : d == 1 ? rank - 1 : d - 1; }

Dimensions ToChannelsLast(int64_t rank) {
  Dimensions permutation(rank);
  for (int64_t d = 0; d < rank; ++d) permutation[Moved(d, rank)] = d;
  return permutation;
}

Dimensions FromChannelsLast(int64_t rank) {
  Dimensions permutation(rank);
  for (int64_t d = 0; d < rank; ++d) permutation[d] = Moved(d, rank);
  return permutation;
}

// One entry per dimension, in the order of the channels-last form.
Dimensions Permuted(const Dimensions& list) {
  Dimensions result(list.size());
  int64_t rank = static_cast<int64_t>(list.size());
  for (int64_t d = 0; d < rank; ++d) result[Moved(d, rank)] = list[d];
  return result;
}

Shape Permuted(const Shape& shape) { return shape.WithDimensions(Permuted(shape.dimensions())); }

void MoveAll(Dimensions& dimensions, int64_t rank) {
  for (int64_t& d : dimensions) d = Moved(d, rank);
}

// From here on a vector of f32 is full of channels.
constexpr int64_t kFewestChannels = 16;
// Of operations that make an element of its position: a multiplication for each dimension, and
// sums.
constexpr int kDeepestPositions = 8;

bool HasForm(const Shape& shape) {
  return shape.is_array() && shape.rank() >= 3 && shape.rank() <= 5;
}

class Rewriter {
 public:
  explicit Rewriter(hlo::Computation* computation)
      : computation_(computation), builder_(computation) {}

  bool Run() {
    std::vector<Instruction*> original;
    bool any = false;
    for (const auto& instruction : computation_->instructions()) {
      original.push_back(instruction.get());
      any |= (IsChannelsFirst(*instruction) && !IsOfFewChannels(*instruction) &&
              !IsPointwiseKernelGradient(*instruction)) ||
             IsSlowWindow(*instruction);
    }
    if (!any) return false;
    for (Instruction* instruction : original) {
      builder_.set_metadata(instruction->shared_metadata());
      if (!Rewrite(*instruction)) KeepPlain(instruction);
    }
    for (size_t i = 0; i < computation_->results().size(); ++i) {
      Value result = computation_->result(i);
      builder_.set_metadata(result->shared_metadata());
      computation_->set_result(i, Plain(result));
    }
    computation_->SortTopologically();
    computation_->RemoveDeadInstructions();
    return true;
  }

 private:
  // --- values in both forms

  bool IsNative(const Instruction* value) const { return native_.contains(value); }

  void SetNative(const Instruction& original, Value channels_last) {
    moved_[&original] = channels_last;
    native_.insert(&original);
  }

  Value Plain(Value value) {
    auto found = plain_.find(value);
    if (found != plain_.end()) return found->second;
    if (!IsNative(value)) return value;
    return plain_[value] =
               builder_.Transpose(moved_.at(value), FromChannelsLast(value->shape().rank()));
  }

  Value ChannelsLast(Value value) {
    auto found = moved_.find(value);
    if (found != moved_.end()) return found->second;
    Value made = nullptr;
    if (IsOfPositions(*value)) {
      made = MovedPositions(*value);
    } else if (value->opcode() == Opcode::kBroadcastInDim) {
      made = MovedBroadcast(*value);
    }
    if (made == nullptr) {
      made = builder_.Transpose(Plain(value), ToChannelsLast(value->shape().rank()));
    }
    return moved_[value] = made;
  }

  Value MovedBroadcast(const Instruction& broadcast) {
    int64_t rank = broadcast.shape().rank();
    Dimensions map = broadcast.as<hlo::DimensionsAttributes>().dimensions;
    MoveAll(map, rank);
    Value source = broadcast.operand(0);
    if (IsNative(source)) return nullptr;
    if (std::is_sorted(map.begin(), map.end())) {
      return builder_.BroadcastInDim(Plain(source), Permuted(broadcast.dimensions()), map);
    }
    // The source is turned, which is smaller than the result.
    Dimensions order(map.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return map[a] < map[b]; });
    std::sort(map.begin(), map.end());
    return builder_.BroadcastInDim(builder_.Transpose(Plain(source), order),
                                   Permuted(broadcast.dimensions()), map);
  }

  // Whether it is made of nothing but its elements' positions and constants, so that it can be made
  // in the other order, too.
  static bool IsOfPositions(const Instruction& value, int depth = 0) {
    if (value.opcode() == Opcode::kIota) return true;
    if (value.IsConstant()) return value.literal().IsSplat();
    if (value.opcode() == Opcode::kBroadcastInDim) return value.operand(0)->shape().rank() == 0;
    return hlo::IsElementwise(value.opcode()) && depth < kDeepestPositions &&
           std::ranges::all_of(
               value.operands(),
               [&](Value operand) {
                 return operand->shape().rank() == value.shape().rank() &&
                        IsOfPositions(*operand, depth + 1);
               });
  }

  Value MovedPositions(const Instruction& value) {
    const Shape shape = Permuted(value.shape());
    switch (value.opcode()) {
      case Opcode::kIota: {
        const int64_t d = value.as<hlo::DimensionAttributes>().dimension;
        return builder_.Iota(shape, Moved(d, shape.rank()));
      }
      case Opcode::kConstant:
        return builder_.Constant(hlo::Literal(shape, value.literal().bytes()));
      case Opcode::kBroadcastInDim:
        return builder_.BroadcastInDim(Plain(value.operand(0)), shape.dimensions(), {});
      default:
        return builder_.Create(value.opcode(), InChannelsLast(value), value.attributes(),
                               value.called_computations(), shape);
    }
  }

  void KeepPlain(Instruction* instruction) {
    for (size_t i = 0; i < instruction->operand_count(); ++i) {
      Value plain = Plain(instruction->operand(i));
      if (plain != instruction->operand(i)) instruction->ReplaceOperand(i, plain);
    }
  }

  // --- convolutions

  static bool SpatialFollow(const Dimensions& spatial) {
    for (size_t i = 0; i < spatial.size(); ++i) {
      if (spatial[i] != static_cast<int64_t>(i) + 2) return false;
    }
    return !spatial.empty();
  }

  // A gradient of the kernel: what stands as the kernel is an activation, the result is a kernel.
  static bool IsKernelGradient(const Instruction& convolution) {
    const auto& attributes = convolution.as<hlo::ConvolutionAttributes>();
    const auto& d = attributes.dimensions;
    return attributes.batch_group_count > 1 ||
           (attributes.feature_group_count == 1 &&
            hlo::ProductOf(convolution.operand(1)->dimensions(), d.kernel_spatial_dimensions) >
                hlo::ProductOf(convolution.dimensions(), d.output_spatial_dimensions));
  }

  // Of the pixels of the smaller image: that of the result, or of which the gradient is known.
  static bool IsProductOfPatches(const Instruction& convolution) {
    const hlo::ElementType type = convolution.element_type();
    if (type != hlo::ElementType::kF64 && !hlo::IsComplex(type)) return false;
    const auto& d = convolution.as<hlo::ConvolutionAttributes>().dimensions;
    const auto pixels_of = [](const Instruction& image, const Dimensions& spatial) {
      return hlo::ProductOf(image.dimensions(), spatial);
    };
    if (IsKernelGradient(convolution)) {
      return pixels_of(*convolution.operand(1), d.kernel_spatial_dimensions) >= kFewestPatchPixels;
    }
    return std::min(pixels_of(*convolution.operand(0), d.input_spatial_dimensions),
                    pixels_of(convolution, d.output_spatial_dimensions)) >= kFewestPatchPixels;
  }

  static bool IsChannelsFirst(const Instruction& instruction) {
    if (instruction.opcode() != Opcode::kConvolution || !HasForm(instruction.shape())) return false;
    if (IsProductOfPatches(instruction)) return false;
    const auto& d = instruction.as<hlo::ConvolutionAttributes>().dimensions;
    return SpatialFollow(d.input_spatial_dimensions) &&
           SpatialFollow(IsKernelGradient(instruction) ? d.kernel_spatial_dimensions
                                                       : d.output_spatial_dimensions);
  }

  // Of the kernel of a convolution of single pixels from or to a few channels: a product over the
  // pixels, which lie in rows.
  static bool IsPointwiseKernelGradient(const Instruction& convolution) {
    if (!IsKernelGradient(convolution) || convolution.element_type() != hlo::ElementType::kF32 ||
        convolution.operand(0)->element_type() != hlo::ElementType::kF32) {
      return false;
    }
    const auto& attributes = convolution.as<hlo::ConvolutionAttributes>();
    const auto& d = attributes.dimensions;
    const Shape& x = convolution.operand(0)->shape();
    const auto is = [](int64_t number) { return [=](int64_t other) { return other == number; }; };
    const auto sizes_of = [](const Shape& shape, const Dimensions& spatial) {
      Dimensions sizes;
      for (const int64_t dimension : spatial) sizes.push_back(shape.dimension(dimension));
      return sizes;
    };
    return attributes.batch_group_count == 1 &&
           std::min(x.dimension(d.input_batch_dimension),
                    convolution.shape().dimension(d.output_feature_dimension)) < kFewestChannels &&
           std::ranges::all_of(sizes_of(convolution.shape(), d.output_spatial_dimensions), is(1)) &&
           std::ranges::all_of(attributes.window.padding_low, is(0)) &&
           std::ranges::all_of(attributes.window.padding_high, is(0)) &&
           sizes_of(x, d.input_spatial_dimensions) ==
               sizes_of(convolution.operand(1)->shape(), d.kernel_spatial_dimensions);
  }

  // Whether it has too few channels to fill a vector, which rows do, and takes each channel or each
  // pixel by itself. Such a convolution stays, with all that is around it, unless its operand
  // comes channels-last.
  static bool IsOfFewChannels(const Instruction& convolution) {
    const auto& attributes = convolution.as<hlo::ConvolutionAttributes>();
    const auto& d = attributes.dimensions;
    const Shape &from = convolution.operand(0)->shape(), &to = convolution.shape();
    const int64_t inputs = from.dimension(d.input_feature_dimension);
    const int64_t outputs = to.dimension(d.output_feature_dimension);
    if (inputs >= kFewestChannels || outputs >= kFewestChannels) return false;
    if (attributes.feature_group_count > 1) return attributes.feature_group_count == inputs;
    return convolution.operand(1)->shape().num_elements() == inputs * outputs &&
           from.num_elements() * outputs == to.num_elements() * inputs;
  }

  // Whether it moves along the last dimension by more than one element, or over elements that stand
  // apart there, so that it reads no vectors; over channels it does.
  static bool IsStridedWindow(const Instruction& instruction) {
    const bool is_selection = instruction.opcode() == Opcode::kSelectAndScatter;
    if (instruction.opcode() != Opcode::kReduceWindow && !is_selection) return false;
    const Shape& shape = instruction.operand(0)->shape();
    if (!HasForm(shape) || shape.dimension(1) < kFewestChannels) return false;
    const auto& window = instruction.as<hlo::Window>();
    if (window.dimensions[0] != 1 || window.dimensions[1] != 1) return false;
    // They are combined along the last dimension late: what is left by then is little.
    if (!instruction.shape().is_tuple() && AreLargeWindows(window)) return false;
    return window.strides.back() != 1 || HasGaps(instruction);
  }
  static bool HasGaps(const Instruction& window) {
    return window.opcode() == Opcode::kReduceWindow &&
           window.as<hlo::Window>().base_dilations.back() != 1;
  }
  // Those where vectors gain more than transposes cost: what looks for positions, and gradients
  // (3x3 by 2 over 64 channels of 112x112, transposes included: positions 23 to 10 ms, the gradient
  // of the maximum 27 to 12, of the mean 11 to 6). A plain sum gains nothing.
  static bool IsWorthTransposes(const Instruction& instruction) {
    return IsStridedWindow(instruction) &&
           (instruction.shape().is_tuple() || HasGaps(instruction) ||
            instruction.opcode() == Opcode::kSelectAndScatter);
  }
  static bool IsSlowWindow(const Instruction& instruction) {
    return IsStridedWindow(instruction) &&
           std::ranges::any_of(instruction.operand(0)->users(),
                               [](Value user) { return IsWorthTransposes(*user); });
  }

  // Whether nobody else reads the operand and it does not come channels-last: then the routine
  // brings it into its order, piece by piece, and no transpose of it has to be in memory.
  bool ReadsPlain(const Instruction& convolution) const {
    Value operand = convolution.operand(0);
    return operand->users().size() == 1 && !IsNative(operand) && !moved_.contains(operand) &&
           !IsOfPositions(*operand) && operand->opcode() != Opcode::kBroadcastInDim;
  }

  // Whether what becomes of the result is wanted plain, and there alone: through operations that
  // the routine does where it writes.
  static bool IsWrittenPlain(const Instruction& convolution) {
    const Instruction* value = &convolution;
    while (true) {
      const auto& results = value->parent()->results();
      if (std::ranges::find(results, value) != results.end()) return value->users().empty();
      if (value->users().size() != 1) return false;
      const Instruction* user = value->users()[0];
      const bool follows = hlo::IsElementwise(user->opcode()) &&
                           std::ranges::all_of(user->operands(), [&](const Instruction* operand) {
                             return operand == value || operand->IsConstant() ||
                                    (operand->opcode() == Opcode::kBroadcastInDim &&
                                     operand->operand(0)->shape().rank() <= 1);
                           });
      if (!follows)
        return user->opcode() == Opcode::kReshape || user->opcode() == Opcode::kDotGeneral;
      value = user;
    }
  }

  void RewriteConvolution(const Instruction& convolution) {
    auto attributes = convolution.as<hlo::ConvolutionAttributes>();
    auto& d = attributes.dimensions;
    int64_t rank = convolution.shape().rank();
    auto move = [&](int64_t& first, int64_t& second, Dimensions& spatial) {
      first = Moved(first, rank);
      second = Moved(second, rank);
      MoveAll(spatial, rank);
    };
    const bool gradient = IsKernelGradient(convolution);
    const bool reads_plain = !gradient && ReadsPlain(convolution);
    const bool writes_plain = !gradient && IsWrittenPlain(convolution);
    if (!reads_plain) {
      move(d.input_batch_dimension, d.input_feature_dimension, d.input_spatial_dimensions);
    }
    if (gradient) {
      move(d.kernel_input_feature_dimension, d.kernel_output_feature_dimension,
           d.kernel_spatial_dimensions);
    } else if (!writes_plain) {
      move(d.output_batch_dimension, d.output_feature_dimension, d.output_spatial_dimensions);
    }
    Value operand = convolution.operand(0), kernel = convolution.operand(1);
    Value made = builder_.Convolution(reads_plain ? Plain(operand) : ChannelsLast(operand),
                                      gradient ? ChannelsLast(kernel) : Plain(kernel), attributes,
                                      convolution.element_type());
    if (gradient || writes_plain) {
      plain_[&convolution] = made;
    } else {
      SetNative(convolution, made);
    }
  }

  // --- everything else

  // True if the instruction now exists in channels-last form (or, for reduce, reads it).
  bool Rewrite(const Instruction& instruction) {
    if (IsChannelsFirst(instruction)) {
      if (IsOfFewChannels(instruction) && !IsNative(instruction.operand(0))) return false;
      if (IsPointwiseKernelGradient(instruction) && !IsNative(instruction.operand(0)) &&
          !IsNative(instruction.operand(1))) {
        return false;
      }
      RewriteConvolution(instruction);
      return true;
    }
    bool reads_native = std::any_of(instruction.operands().begin(), instruction.operands().end(),
                                    [&](Value operand) { return IsNative(operand); });
    if (IsSlowWindow(instruction)) return RewriteWindowed(instruction);
    if (!reads_native) return false;
    if (instruction.opcode() == Opcode::kGetTupleElement) {
      SetNative(instruction, builder_.GetTupleElement(moved_.at(instruction.operand(0)),
                                                      instruction.tuple_index()));
      return true;
    }
    if (instruction.opcode() == Opcode::kReduceWindow) return RewriteWindowed(instruction);
    if (instruction.opcode() == Opcode::kReduce) return RewriteReduce(instruction);
    if (!HasForm(instruction.shape())) return false;
    if (hlo::IsElementwise(instruction.opcode())) {
      Recreate(instruction, instruction.attributes());
      return true;
    }
    return RewriteWindowed(instruction) || RewriteRearrangement(instruction);
  }

  // Its operands; scalars stay.
  std::vector<Value> InChannelsLast(const Instruction& instruction) {
    std::vector<Value> operands;
    for (Value operand : instruction.operands()) {
      operands.push_back(HasForm(operand->shape()) ? ChannelsLast(operand) : Plain(operand));
    }
    return operands;
  }

  // The same operation on channels-last operands.
  void Recreate(const Instruction& instruction, hlo::Attributes attributes) {
    const std::vector<Value> operands = InChannelsLast(instruction);
    if (instruction.shape().is_tuple()) {
      SetNative(instruction, builder_.Create(instruction.opcode(), operands, std::move(attributes),
                                             instruction.called_computations()));
      return;
    }
    SetNative(instruction,
              builder_.Create(instruction.opcode(), operands, std::move(attributes),
                              instruction.called_computations(), Permuted(instruction.shape())));
  }

  bool RewriteReduce(const Instruction& reduce) {
    if (reduce.shape().is_tuple()) return false;
    Value operand = reduce.operand(0);
    int64_t rank = operand->shape().rank();
    Dimensions dimensions = reduce.as<hlo::DimensionsAttributes>().dimensions;
    // What remains, in the order of the moved result, by its place in the wanted one.
    std::vector<std::pair<int64_t, int64_t>> kept;
    for (int64_t d = 0; d < rank; ++d) {
      if (std::count(dimensions.begin(), dimensions.end(), d) == 0) {
        kept.emplace_back(Moved(d, rank), static_cast<int64_t>(kept.size()));
      }
    }
    MoveAll(dimensions, rank);
    std::sort(dimensions.begin(), dimensions.end());
    Value made = builder_.Reduce(ChannelsLast(operand), Plain(reduce.operand(1)), dimensions,
                                 reduce.called_computations()[0]);
    std::sort(kept.begin(), kept.end());
    Dimensions permutation(kept.size());
    for (size_t i = 0; i < kept.size(); ++i) permutation[kept[i].second] = static_cast<int64_t>(i);
    if (!std::is_sorted(permutation.begin(), permutation.end())) {
      made = builder_.Transpose(made, permutation);
    }
    plain_[&reduce] = made;
    return true;
  }

  bool RewriteWindowed(const Instruction& instruction) {
    if (instruction.opcode() != Opcode::kReduceWindow &&
        instruction.opcode() != Opcode::kSelectAndScatter) {
      return false;
    }
    if (instruction.shape().is_tuple() && !std::ranges::all_of(instruction.users(), [](Value user) {
          return user->opcode() == Opcode::kGetTupleElement;
        })) {
      return false;
    }
    auto window = instruction.as<hlo::Window>();
    for (Dimensions* list :
         {&window.dimensions, &window.strides, &window.padding_low, &window.padding_high,
          &window.base_dilations, &window.window_dilations}) {
      if (!list->empty()) *list = Permuted(*list);
    }
    Recreate(instruction, window);
    return true;
  }

  bool RewriteRearrangement(const Instruction& instruction) {
    int64_t rank = instruction.shape().rank();
    switch (instruction.opcode()) {
      case Opcode::kPad: {
        auto pad = instruction.as<hlo::PadAttributes>();
        pad.edge_padding_low = Permuted(pad.edge_padding_low);
        pad.edge_padding_high = Permuted(pad.edge_padding_high);
        pad.interior_padding = Permuted(pad.interior_padding);
        Recreate(instruction, pad);
        return true;
      }
      case Opcode::kSlice: {
        auto slice = instruction.as<hlo::SliceAttributes>();
        slice.start_indices = Permuted(slice.start_indices);
        slice.limit_indices = Permuted(slice.limit_indices);
        slice.strides = Permuted(slice.strides);
        Recreate(instruction, slice);
        return true;
      }
      case Opcode::kReverse: {
        auto reverse = instruction.as<hlo::DimensionsAttributes>();
        MoveAll(reverse.dimensions, rank);
        Recreate(instruction, reverse);
        return true;
      }
      case Opcode::kConcatenate: {
        auto concatenate = instruction.as<hlo::DimensionAttributes>();
        concatenate.dimension = Moved(concatenate.dimension, rank);
        Recreate(instruction, concatenate);
        return true;
      }
      case Opcode::kBroadcastInDim: {
        // Size-1 dimensions that stretch; a source of smaller rank is never channels-last.
        const auto& map = instruction.as<hlo::DimensionsAttributes>().dimensions;
        if (instruction.operand(0)->shape().rank() != rank) return false;
        for (int64_t d = 0; d < rank; ++d) {
          if (map[d] != d) return false;
        }
        Recreate(instruction, instruction.attributes());
        return true;
      }
      case Opcode::kTranspose: {
        // One turn instead of two.
        Dimensions permutation = instruction.as<hlo::DimensionsAttributes>().dimensions;
        MoveAll(permutation, rank);
        Value source = moved_.at(instruction.operand(0));
        bool identity = std::is_sorted(permutation.begin(), permutation.end());
        plain_[&instruction] = identity ? source : builder_.Transpose(source, permutation);
        return true;
      }
      default:
        return false;
    }
  }

  hlo::Computation* computation_;
  hlo::Builder builder_;
  // By the original instruction: its channels-last form, and its own form where that was made anew.
  std::unordered_map<const Instruction*, Value> moved_, plain_;
  // Computed channels-last: the plain form would cost a transpose.
  std::unordered_set<const Instruction*> native_;
};

}  // namespace

bool UseChannelsLast(hlo::Module& module) {
  bool changed = false;
  for (const auto& computation : module.computations()) {
    // Bodies of fused operations are small and fixed; programs are what calls them.
    changed |= Rewriter(computation.get()).Run();
  }
  return changed;
}

}  // namespace passes
