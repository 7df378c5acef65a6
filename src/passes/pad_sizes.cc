#include "passes/pad_sizes.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "hlo/builder.h"
#include "passes/constant_value.h"
#include "passes/size_classes.h"

namespace passes {
namespace {

using hlo::Computation;
using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;

constexpr ElementType kSizeType = ElementType::kS32;

bool HoldsSizes(ElementType type) { return type == ElementType::kS32 || type == ElementType::kS64; }

// The operation of a reduction's body, if it is one that has a neutral element.
std::optional<Opcode> MonoidOf(const Computation& body) {
  if (body.parameters().size() != 2 || body.results().size() != 1) return std::nullopt;
  const Instruction* result = body.result();
  if (result->operand_count() != 2) return std::nullopt;
  const Instruction *a = result->operand(0), *b = result->operand(1);
  const bool is_plain = (a == body.parameter(0) && b == body.parameter(1)) ||
                        (a == body.parameter(1) && b == body.parameter(0));
  if (!is_plain) return std::nullopt;
  switch (result->opcode()) {
    case Opcode::kAdd:
    case Opcode::kMultiply:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kAnd:
    case Opcode::kOr:
      return result->opcode();
    default:
      return std::nullopt;
  }
}

class SizePadder {
 public:
  SizePadder(hlo::Module& module, const VaryingParts& parts,
             const std::function<int64_t(int64_t)>& padded)
      : entry_(*module.entry()),
        classes_(entry_),
        padded_(padded),
        target_(*module.AddComputation("padded")),
        builder_(&target_) {
    size_t place = 0;
    for (const auto& instruction : entry_.instructions()) {
      attributes_vary_[instruction.get()] = parts.attributes[place];
      const std::vector<bool>& dimensions = parts.dimensions[place++];
      for (size_t d = 0; d < dimensions.size(); ++d) {
        if (!dimensions[d]) continue;
        for (const int factor :
             classes_.Factors(classes_.Of(instruction.get(), static_cast<int64_t>(d)))) {
          // Of a joined dimension: which of its factors vary, they say themselves.
          if (factor == classes_.Of(instruction.get(), static_cast<int64_t>(d))) {
            classes_.MarkVarying(factor);
          }
        }
      }
    }
  }

  // The arguments behind the program's own.
  std::vector<Literal> Run() {
    for (const Instruction* parameter : entry_.parameters()) {
      CheckSizes(*parameter);
      values_[parameter] = builder_.Parameter(PaddedShape(parameter));
    }
    for (const auto& instruction : entry_.instructions()) {
      if (instruction->opcode() == Opcode::kParameter) continue;
      builder_.set_metadata(instruction->metadata());
      CheckSizes(*instruction);
      values_[instruction.get()] = Padded(*instruction);
      CheckShape(*instruction);
    }
    std::vector<Value> results;
    for (const Instruction* result : entry_.results()) results.push_back(values_.at(result));
    target_.set_results(std::move(results));
    return std::move(arguments_);
  }

  PaddedBox BoxOf(const Instruction* value) const {
    PaddedBox box{{}, {}, PaddedSizes(value)};
    for (int64_t d = 0; d < value->shape().rank(); ++d) {
      const int c = classes_.Of(value, d);
      if (!classes_.Varies(c)) {
        box.sizes.push_back(value->shape().dimension(d));
        box.padded.push_back(value->shape().dimension(d));
        continue;
      }
      for (const int factor : classes_.Factors(c)) {
        box.sizes.push_back(classes_.size(factor));
        box.padded.push_back(PaddedSize(factor));
      }
    }
    return box;
  }

  Computation& target() { return target_; }

 private:
  [[noreturn]] static void Refuse(const Instruction& instruction, const std::string& why) {
    throw PaddingRefused(instruction, why);
  }

  // Sizes.
  bool Varies(const Instruction* value, int64_t d) const {
    return classes_.Varies(classes_.Of(value, d));
  }
  bool Varies(const Instruction* value) const {
    if (value->shape().is_tuple()) {
      for (size_t e = 0; e < value->shape().tuple_shapes().size(); ++e) {
        const Shape& shape = value->shape().tuple_shapes()[e];
        for (int64_t d = 0; shape.is_array() && d < shape.rank(); ++d) {
          if (classes_.Varies(classes_.Of(value, d, static_cast<int64_t>(e)))) return true;
        }
      }
      return false;
    }
    for (int64_t d = 0; value->shape().is_array() && d < value->shape().rank(); ++d) {
      if (Varies(value, d)) return true;
    }
    return false;
  }
  bool IsJoined(const Instruction* value, int64_t d) const {
    return Varies(value, d) && classes_.Factors(classes_.Of(value, d)).size() > 1;
  }
  int64_t PaddedSize(int c) const {
    int64_t size = 1;
    for (const int factor : classes_.Factors(c)) {
      const int64_t own = classes_.size(factor);
      size *= classes_.Varies(factor) ? padded_(own) : own;
    }
    return size;
  }
  int64_t PaddedSize(const Instruction* value, int64_t d) const {
    const int c = classes_.Of(value, d);
    return classes_.Varies(c) ? PaddedSize(c) : value->shape().dimension(d);
  }
  Dimensions PaddedSizes(const Instruction* value) const {
    Dimensions sizes;
    for (int64_t d = 0; d < value->shape().rank(); ++d) sizes.push_back(PaddedSize(value, d));
    return sizes;
  }
  Shape PaddedShape(const Instruction* value) const {
    if (!value->shape().is_array()) return value->shape();
    return value->shape().WithDimensions(PaddedSizes(value));
  }

  // A size of 1 spreads like no other.
  void CheckSizes(const Instruction& instruction) const {
    if (!instruction.shape().is_array()) return;
    for (int64_t d = 0; d < instruction.shape().rank(); ++d) {
      const int c = classes_.Of(&instruction, d);
      if (!classes_.Varies(c)) continue;
      if (!classes_.IsConsistent(c)) Refuse(instruction, "its dimensions are joined in two ways");
      for (const int factor : classes_.Factors(c)) {
        const int64_t size = classes_.size(factor);
        if (classes_.Varies(factor) && size < 2) Refuse(instruction, "a size is less than 2");
        if (PaddedSize(factor) > std::numeric_limits<int32_t>::max() / 4) {
          Refuse(instruction, "a size is too large");
        }
      }
    }
  }
  // What was made has the shape that its users are told.
  void CheckShape(const Instruction& instruction) const {
    const Value made = values_.at(&instruction);
    if (instruction.shape().is_array() && made->shape() != PaddedShape(&instruction)) {
      throw hlo::Error(hlo::ErrorCode::kInternal,
                       "padding " + instruction.ToString() + " made " + made->ToString());
    }
  }

  // Arguments.
  Value Argument(Literal literal) {
    const hlo::Metadata metadata = builder_.metadata();
    builder_.set_metadata({});
    Value parameter = builder_.Parameter(literal.shape());
    builder_.set_metadata(metadata);
    arguments_.push_back(std::move(literal));
    return parameter;
  }
  Value IntegerArgument(int64_t number) { return Argument(Literal::FromInt(kSizeType, number)); }
  // The true size of a dimension, a scalar.
  Value Size(const Instruction* value, int64_t d) {
    const int c = classes_.Of(value, d);
    if (!classes_.Varies(c)) return Number(value->shape().dimension(d));
    Value size = nullptr;
    for (const int factor : classes_.Factors(c)) {
      Value own = SizeOfFactor(factor);
      size = size == nullptr ? own : builder_.Multiply(size, own);
    }
    return size;
  }
  Value SizeOfFactor(int factor) {
    if (!classes_.Varies(factor)) return Number(classes_.size(factor));
    auto [it, is_new] = sizes_.emplace(factor, nullptr);
    if (is_new) it->second = IntegerArgument(classes_.size(factor));
    return it->second;
  }
  Value Number(int64_t number) { return builder_.ConstantScalar(kSizeType, number); }

  // Masks.
  // Which indices of a varying dimension are true ones: pred[padded size].
  Value MaskOf(int c) {
    auto [it, is_new] = masks_.emplace(c, nullptr);
    if (!is_new) return it->second;
    const Dimensions all = {PaddedSize(c)};
    const auto full = [&](Value scalar) { return builder_.BroadcastInDim(scalar, all, {}); };
    Value rest = builder_.Iota(Shape(kSizeType, all), 0), mask = nullptr;
    const std::vector<int> factors = classes_.Factors(c);
    for (size_t i = factors.size(); i-- > 0;) {
      const Value padded = full(Number(PaddedSize(factors[i])));
      if (classes_.Varies(factors[i])) {
        const Value index = factors.size() == 1 ? rest : builder_.Remainder(rest, padded);
        const Value is_true = builder_.Lt(index, full(SizeOfFactor(factors[i])));
        mask = mask == nullptr ? is_true : builder_.And(mask, is_true);
      }
      if (i > 0) rest = builder_.Divide(rest, padded);
    }
    return it->second = mask;
  }
  // `value`, which pads `original`, with `fill` (a scalar) where an index of `dimensions` is not a
  // true one.
  Value Masked(Value value, const Instruction* original, const Dimensions& dimensions, Value fill) {
    for (const int64_t d : dimensions) {
      if (!Varies(original, d)) continue;
      const Value mask =
          builder_.BroadcastInDim(MaskOf(classes_.Of(original, d)), value->dimensions(), {d});
      value = builder_.Select(mask, value, builder_.BroadcastInDim(fill, value->dimensions(), {}));
    }
    return value;
  }
  static Dimensions All(const Instruction* value) {
    return OtherDimensions(value->shape().rank(), {});
  }

  // Instructions.
  Value Of(const Instruction* operand) const { return values_.at(operand); }
  std::vector<Value> OperandsOf(const Instruction& instruction) const {
    std::vector<Value> operands;
    for (const Instruction* operand : instruction.operands()) operands.push_back(Of(operand));
    return operands;
  }
  Value Same(const Instruction& instruction, const Shape& shape) {
    return Same(instruction, shape, OperandsOf(instruction));
  }
  Value Same(const Instruction& instruction, const Shape& shape, std::vector<Value> operands,
             std::optional<hlo::Attributes> attributes = std::nullopt) {
    Value made = target_.Add(instruction.opcode(), shape, std::move(operands),
                             attributes ? *attributes : instruction.attributes(),
                             instruction.called_computations());
    made->set_metadata(instruction.metadata());
    return made;
  }
  bool IsTouched(const Instruction& instruction) const {
    return Varies(&instruction) ||
           std::ranges::any_of(instruction.operands(), [&](const auto* o) { return Varies(o); });
  }

  Value Padded(const Instruction& instruction) {
    if (instruction.opcode() == Opcode::kConstant) return PadConstant(instruction);
    if (!IsTouched(instruction) && !attributes_vary_.at(&instruction)) {
      return Same(instruction, instruction.shape());
    }
    if (hlo::IsElementwise(instruction.opcode())) {
      return Same(instruction, PaddedShape(&instruction));
    }
    switch (instruction.opcode()) {
      case Opcode::kTranspose:
      case Opcode::kBroadcastInDim:
        return Same(instruction, PaddedShape(&instruction));
      case Opcode::kGetTupleElement:
        return Same(instruction, PaddedShape(&instruction));
      case Opcode::kOptimizationBarrier:
        return builder_.OptimizationBarrier(OperandsOf(instruction));
      case Opcode::kBitcastConvert:
        if (instruction.shape().rank() != instruction.operand(0)->shape().rank()) break;
        return Same(instruction, PaddedShape(&instruction));
      case Opcode::kReshape:
        return PadReshape(instruction);
      case Opcode::kIota:
        return PadIota(instruction);
      case Opcode::kReduce:
        return PadReduce(instruction);
      case Opcode::kDotGeneral:
        return PadDot(instruction);
      case Opcode::kGather:
        return PadGather(instruction);
      case Opcode::kScatter:
        return PadScatter(instruction);
      case Opcode::kSlice:
        return PadSlice(instruction);
      case Opcode::kDynamicSlice:
        return PadDynamicSlice(instruction);
      case Opcode::kDynamicUpdateSlice:
        return PadDynamicUpdateSlice(instruction);
      case Opcode::kPad:
        return PadPad(instruction);
      case Opcode::kConcatenate:
        return PadConcatenate(instruction);
      case Opcode::kReverse:
        return PadReverse(instruction);
      case Opcode::kSort:
        return PadSort(instruction);
      case Opcode::kReduceWindow:
        return PadReduceWindow(instruction);
      case Opcode::kConvolution:
        return PadConvolution(instruction);
      default:
        break;
    }
    Refuse(instruction, "nothing is known of it");
  }

  Value PadConstant(const Instruction& constant) {
    const Shape shape = PaddedShape(&constant);
    if (attributes_vary_.at(&constant)) {
      const bool is_splat = constant.literal().IsSplat();
      if (is_splat) {
        const Shape scalar = Shape::Scalar(shape.element_type());
        const Value argument = Argument(Literal(scalar, constant.literal().bytes()));
        return builder_.BroadcastInDim(argument, shape.dimensions(), {});
      }
      Literal padded(shape);
      CopyIntoPadded(BoxOf(&constant), WidthOf(constant), constant.literal().bytes(),
                     padded.mutable_bytes());
      return Argument(std::move(padded));
    }
    if (!Varies(&constant)) return Same(constant, shape);
    if (!constant.literal().IsSplat()) Refuse(constant, "its elements are not all equal");
    const Shape scalar = Shape::Scalar(shape.element_type());
    const Value value = builder_.Constant(Literal(scalar, constant.literal().bytes()));
    return builder_.BroadcastInDim(value, shape.dimensions(), {});
  }
  static int64_t WidthOf(const Instruction& value) {
    return value.shape().byte_size() / value.shape().num_elements();
  }

  Value PadReshape(const Instruction& reshape) {
    const Instruction* operand = reshape.operand(0);
    for (const ReshapeGroup& group : ReshapeGroups(operand->dimensions(), reshape.dimensions())) {
      if (group.operand.size() == 1 || group.result.size() == 1) continue;
      const auto varies = [&](const Instruction* value) {
        return [this, value](int64_t d) { return Varies(value, d); };
      };
      if (std::ranges::any_of(group.operand, varies(operand)) ||
          std::ranges::any_of(group.result, varies(&reshape))) {
        Refuse(reshape, "its dimensions are joined and split at once");
      }
    }
    return builder_.Reshape(Of(operand), PaddedSizes(&reshape));
  }

  Value PadIota(const Instruction& iota) {
    const int64_t d = iota.as<hlo::DimensionAttributes>().dimension;
    if (IsJoined(&iota, d)) Refuse(iota, "its dimension is of joined ones");
    return Same(iota, PaddedShape(&iota));
  }

  // What masks an operand of a body; a scalar.
  Value NeutralOf(const Instruction& instruction, const Computation& body, ElementType type) {
    const std::optional<Opcode> combiner = MonoidOf(body);
    if (!combiner) Refuse(instruction, "its body has no neutral element that is known");
    return builder_.Constant(hlo::IdentityLiteral(*combiner, type));
  }

  Value PadReduce(const Instruction& reduce) {
    const Dimensions& reduced = reduce.as<hlo::DimensionsAttributes>().dimensions;
    const size_t count = reduce.operand_count() / 2;
    std::vector<Value> operands = OperandsOf(reduce);
    const bool masks =
        std::ranges::any_of(reduced, [&](int64_t d) { return Varies(reduce.operand(0), d); });
    for (size_t i = 0; masks && i < count; ++i) {
      // Of several operands the initial values are neutral, as StableHLO says they are.
      const Value fill = count > 1 ? operands[count + i]
                                   : NeutralOf(reduce, *reduce.called_computations()[0],
                                               operands[i]->element_type());
      operands[i] = Masked(operands[i], reduce.operand(i), reduced, fill);
    }
    return builder_.Create(Opcode::kReduce, std::move(operands), reduce.attributes(),
                           reduce.called_computations());
  }

  Value PadDot(const Instruction& dot) {
    const auto& a = dot.as<hlo::DotAttributes>();
    std::vector<Value> operands = OperandsOf(dot);
    const Dimensions* contracted[] = {&a.lhs_contracting_dimensions, &a.rhs_contracting_dimensions};
    for (size_t i = 0; i < 2; ++i) {
      const Value zero = builder_.Zeros(Shape::Scalar(operands[i]->element_type()));
      operands[i] = Masked(operands[i], dot.operand(i), *contracted[i], zero);
    }
    return Same(dot, PaddedShape(&dot), std::move(operands));
  }

  // Indices, of `limits` (scalars) at most in each entry of their vectors.
  Value Limited(Value indices, int64_t vector_dim, const std::vector<Value>& limits) {
    std::vector<Value> entries;
    for (const Value limit : limits) {
      entries.push_back(builder_.Reshape(builder_.Convert(limit, indices->element_type()), {1}));
    }
    const Value all = entries.size() == 1 ? entries[0] : builder_.Concatenate(entries, 0);
    const bool is_implied = vector_dim == indices->shape().rank();
    const Value bound =
        is_implied ? builder_.BroadcastInDim(builder_.Reshape(all, {}), indices->dimensions(), {})
                   : builder_.BroadcastInDim(all, indices->dimensions(), {vector_dim});
    return builder_.Minimum(indices, bound);
  }

  Value PadGather(const Instruction& gather) {
    auto a = gather.as<hlo::GatherAttributes>();
    const Instruction *operand = gather.operand(0), *indices = gather.operand(1);
    bool is_limited = false;
    std::vector<Value> limits;
    for (const int64_t d : a.start_index_map) {
      const int64_t slice = a.slice_sizes[static_cast<size_t>(d)];
      const bool is_whole = slice == operand->shape().dimension(d);
      limits.push_back(Number(operand->shape().dimension(d) - slice));
      if (!Varies(operand, d) || is_whole) continue;
      if (IsJoined(operand, d)) Refuse(gather, "it indexes a dimension of joined ones");
      limits.back() = builder_.Subtract(Size(operand, d), Number(slice));
      is_limited = true;
    }
    if (is_limited && !HoldsSizes(indices->element_type())) {
      Refuse(gather, "its indices have no sign");
    }
    const Dimensions window =
        OtherDimensions(operand->shape().rank(), a.collapsed_slice_dims, a.operand_batching_dims);
    for (size_t i = 0; i < window.size(); ++i) {
      int64_t& slice = a.slice_sizes[static_cast<size_t>(window[i])];
      const bool is_whole = slice == operand->shape().dimension(window[i]);
      if (!is_whole && Varies(&gather, a.offset_dims[i])) {
        Refuse(gather, "it takes a part whose size varies");
      }
      if (is_whole) slice = PaddedSize(operand, window[i]);
    }
    for (const int64_t d : a.collapsed_slice_dims) {
      if (Varies(operand, d) && !std::ranges::count(a.start_index_map, d)) {
        Refuse(gather, "it takes the beginning of what varies");
      }
    }
    Value starts = Of(indices);
    if (is_limited) starts = Limited(starts, a.index_vector_dim, limits);
    a.indices_are_sorted = a.indices_are_sorted && !Varies(indices);
    return Same(gather, PaddedShape(&gather), {Of(operand), starts}, a);
  }

  Value PadScatter(const Instruction& scatter) {
    if (scatter.operand_count() != 3) Refuse(scatter, "it has several operands");
    const auto& a = scatter.as<hlo::ScatterAttributes>();
    const Instruction *operand = scatter.operand(0), *indices = scatter.operand(1),
                      *updates = scatter.operand(2);
    const Dimensions window =
        OtherDimensions(operand->shape().rank(), a.inserted_window_dims, a.input_batching_dims);
    for (size_t i = 0; i < window.size(); ++i) {
      const bool is_whole = operand->shape().dimension(window[i]) ==
                            updates->shape().dimension(a.update_window_dims[i]);
      if (!is_whole && (Varies(operand, window[i]) || Varies(updates, a.update_window_dims[i]))) {
        Refuse(scatter, "it writes a part of what varies");
      }
    }
    for (const int64_t d : a.scatter_dims_to_operand_dims) {
      if (IsJoined(operand, d)) Refuse(scatter, "it indexes a dimension of joined ones");
    }
    const Dimensions rows = OtherDimensions(indices->shape().rank(), {a.index_vector_dim});
    const bool masks = std::ranges::any_of(rows, [&](int64_t d) { return Varies(indices, d); });
    if (masks && (!HoldsSizes(indices->element_type()) || a.scatter_dims_to_operand_dims.empty())) {
      Refuse(scatter, "its indices have no sign");
    }
    Value starts = Of(indices);
    if (masks) {
      // An update outside of the operand is none.
      const Value nowhere = builder_.ConstantScalar(indices->element_type(), int64_t{-1});
      starts = Masked(starts, indices, rows, nowhere);
    }
    auto attributes = a;
    if (masks) attributes.indices_are_sorted = attributes.unique_indices = false;
    return Same(scatter, PaddedShape(&scatter), {Of(operand), starts, Of(updates)}, attributes);
  }

  // `value` with dimension d cut, or continued by anything, to `size`.
  Value Resized(Value value, int64_t d, int64_t size) {
    const int64_t now = value->shape().dimension(d);
    if (now >= size) return builder_.SliceInDim(value, d, 0, size);
    Dimensions none(static_cast<size_t>(value->shape().rank())), high = none;
    high[static_cast<size_t>(d)] = size - now;
    return builder_.Pad(value, builder_.Zeros(Shape::Scalar(value->element_type())), none, high,
                        none);
  }
  // Dimension d from `start`, a scalar, `size` elements of it. What starts in it may end behind it.
  Value From(Value value, int64_t d, Value start, int64_t size) {
    const Value longer = Resized(value, d, value->shape().dimension(d) + size);
    std::vector<Value> starts(static_cast<size_t>(value->shape().rank()), Number(0));
    starts[static_cast<size_t>(d)] = start;
    Dimensions sizes = longer->dimensions();
    sizes[static_cast<size_t>(d)] = size;
    return builder_.DynamicSlice(longer, std::move(starts), std::move(sizes));
  }

  Value PadSlice(const Instruction& slice) {
    const auto& a = slice.as<hlo::SliceAttributes>();
    const Instruction* operand = slice.operand(0);
    Value value = Of(operand);
    for (int64_t d = 0; d < slice.shape().rank(); ++d) {
      const auto i = static_cast<size_t>(d);
      if (slice.shape().dimension(d) == operand->shape().dimension(d)) continue;
      const bool varies = Varies(operand, d) || Varies(&slice, d);
      if (!varies && !attributes_vary_.at(&slice)) {
        value = builder_.SliceInDim(value, d, a.start_indices[i], a.limit_indices[i], a.strides[i]);
        continue;
      }
      if (IsJoined(operand, d) || IsJoined(&slice, d)) {
        Refuse(slice, "it takes a part of joined dimensions");
      }
      const int64_t size = PaddedSize(&slice, d);
      if (a.start_indices[i] != 0 && a.strides[i] == 1 && attributes_vary_.at(&slice)) {
        value = From(value, d, IntegerArgument(a.start_indices[i]), size);
        continue;
      }
      const int64_t limit = value->shape().dimension(d);
      value =
          builder_.SliceInDim(value, d, std::min(a.start_indices[i], limit), limit, a.strides[i]);
      value = Resized(value, d, size);
    }
    return value;
  }

  Value PadDynamicSlice(const Instruction& slice) {
    const Instruction* operand = slice.operand(0);
    Value value = Of(operand);
    for (int64_t d = 0; d < slice.shape().rank(); ++d) {
      const int64_t size = slice.shape().dimension(d);
      if (size == operand->shape().dimension(d)) continue;
      if (IsJoined(operand, d) || IsJoined(&slice, d)) {
        Refuse(slice, "it takes a part of joined dimensions");
      }
      const Value given = Of(slice.operand(static_cast<size_t>(d) + 1));
      if (!HoldsSizes(given->element_type())) Refuse(slice, "its starts have no sign");
      const Value last = builder_.Convert(builder_.Subtract(Size(operand, d), Size(&slice, d)),
                                          given->element_type());
      const Value first = builder_.ConstantScalar(given->element_type(), int64_t{0});
      const Value start = builder_.Maximum(first, builder_.Minimum(given, last));
      value = From(value, d, builder_.Convert(start, kSizeType), PaddedSize(&slice, d));
    }
    return value;
  }

  // What the update has behind its true sizes is left as it was.
  Value PadDynamicUpdateSlice(const Instruction& instruction) {
    const Instruction *operand = instruction.operand(0), *update = instruction.operand(1);
    Value value = Of(operand), written = Of(update);
    Dimensions partial;
    std::vector<Value> starts;
    for (int64_t d = 0; d < operand->shape().rank(); ++d) {
      const bool is_whole = operand->shape().dimension(d) == update->shape().dimension(d);
      const Value given = Of(instruction.operand(static_cast<size_t>(d) + 2));
      if (is_whole) {
        starts.push_back(Number(0));
        continue;
      }
      if (IsJoined(operand, d) || IsJoined(update, d)) {
        Refuse(instruction, "it writes a part of joined dimensions");
      }
      if (!HoldsSizes(given->element_type())) Refuse(instruction, "its starts have no sign");
      const Value last = builder_.Convert(builder_.Subtract(Size(operand, d), Size(update, d)),
                                          given->element_type());
      const Value first = builder_.ConstantScalar(given->element_type(), int64_t{0});
      starts.push_back(
          builder_.Convert(builder_.Maximum(first, builder_.Minimum(given, last)), kSizeType));
      partial.push_back(d);
      value = Resized(value, d, PaddedSize(operand, d) + PaddedSize(update, d));
    }
    const Value before = builder_.DynamicSlice(value, starts, written->dimensions());
    for (const int64_t d : partial) {
      if (!Varies(update, d)) continue;
      const Value mask =
          builder_.BroadcastInDim(MaskOf(classes_.Of(update, d)), written->dimensions(), {d});
      written = builder_.Select(mask, written, before);
    }
    value = builder_.DynamicUpdateSlice(value, written, starts);
    for (const int64_t d : partial) value = Resized(value, d, PaddedSize(operand, d));
    return value;
  }

  Value PadPad(const Instruction& pad) {
    const auto& a = pad.as<hlo::PadAttributes>();
    const Instruction* operand = pad.operand(0);
    Dimensions moved;
    for (int64_t d = 0; d < pad.shape().rank(); ++d) {
      const auto i = static_cast<size_t>(d);
      if (a.edge_padding_low[i] == 0 && a.edge_padding_high[i] == 0 && a.interior_padding[i] == 0) {
        continue;
      }
      moved.push_back(d);
    }
    const Value fill = Of(pad.operand(1));
    Value value = Masked(Of(operand), operand, moved, fill);
    Dimensions none(static_cast<size_t>(pad.shape().rank()));
    for (const int64_t d : moved) {
      const auto i = static_cast<size_t>(d);
      const bool varies = Varies(operand, d) || Varies(&pad, d);
      if (varies && (IsJoined(operand, d) || IsJoined(&pad, d))) {
        Refuse(pad, "it continues joined dimensions");
      }
      const int64_t now = value->shape().dimension(d), size = PaddedSize(&pad, d);
      int64_t low = a.edge_padding_low[i];
      const bool moves = attributes_vary_.at(&pad) && low > 0 && a.interior_padding[i] == 0;
      if (moves && low > size) Refuse(pad, "it moves what varies out of itself");
      Dimensions lows = none, highs = none, interiors = none;
      interiors[i] = a.interior_padding[i];
      if (!moves) {
        lows[i] = low;
        highs[i] = size - low - (now + std::max<int64_t>(now - 1, 0) * a.interior_padding[i]);
        value = builder_.Pad(value, fill, lows, highs, interiors);
        continue;
      }
      // In front of it there is as much to skip as it moves less than it could.
      lows[i] = size;
      highs[i] = size;
      value = builder_.Pad(value, fill, lows, highs, none);
      value = From(value, d, builder_.Subtract(Number(size), IntegerArgument(low)), size);
    }
    return value;
  }

  Value PadConcatenate(const Instruction& concatenate) {
    const int64_t d = concatenate.as<hlo::DimensionAttributes>().dimension;
    const bool varies =
        Varies(&concatenate, d) ||
        std::ranges::any_of(concatenate.operands(), [&](const auto* o) { return Varies(o, d); });
    if (!varies) return Same(concatenate, PaddedShape(&concatenate));
    const int64_t size = PaddedSize(&concatenate, d);
    int64_t longest = 0;
    for (const Instruction* operand : concatenate.operands()) {
      if (IsJoined(operand, d)) Refuse(concatenate, "it continues joined dimensions");
      longest = std::max(longest, PaddedSize(operand, d));
    }
    if (IsJoined(&concatenate, d)) Refuse(concatenate, "it continues joined dimensions");
    // Each is written over what the one before has behind its end.
    Value value = Resized(Of(concatenate.operand(0)), d, size + longest);
    Value start = Size(concatenate.operand(0), d);
    for (size_t i = 1; i < concatenate.operand_count(); ++i) {
      std::vector<Value> starts(static_cast<size_t>(concatenate.shape().rank()), Number(0));
      starts[static_cast<size_t>(d)] = start;
      value = builder_.DynamicUpdateSlice(value, Of(concatenate.operand(i)), std::move(starts));
      start = builder_.Add(start, Size(concatenate.operand(i), d));
    }
    return Resized(value, d, size);
  }

  Value PadReverse(const Instruction& reverse) {
    Value value = Same(reverse, PaddedShape(&reverse));
    for (const int64_t d : reverse.as<hlo::DimensionsAttributes>().dimensions) {
      if (!Varies(&reverse, d)) continue;
      if (IsJoined(&reverse, d)) Refuse(reverse, "its dimension is of joined ones");
      const int64_t size = PaddedSize(&reverse, d);
      value = From(value, d, builder_.Subtract(Number(size), Size(&reverse, d)), size);
    }
    return value;
  }

  Value PadSort(const Instruction& sort) {
    const int64_t d = sort.as<hlo::SortAttributes>().dimension;
    if (Varies(sort.operand(0), d)) Refuse(sort, "it sorts what varies");
    std::vector<Shape> shapes;
    for (const Instruction* operand : sort.operands()) shapes.push_back(PaddedShape(operand));
    const Shape shape = shapes.size() == 1 ? shapes[0] : Shape::Tuple(std::move(shapes));
    return Same(sort, shape);
  }

  // The window of dimension d, of which `size` results are wanted.
  void FitWindow(const Instruction& instruction, hlo::Window& window, size_t i, int64_t true_size,
                 int64_t size, int64_t result) const {
    // A running total: the window is the whole of what is before, or behind.
    if (window.dimensions[i] == true_size && window.strides[i] == 1 &&
        window.window_dilations[i] == 1 && window.base_dilations[i] == 1 && true_size == result &&
        window.padding_low[i] + window.padding_high[i] == true_size - 1 &&
        (window.padding_low[i] == 0 || window.padding_high[i] == 0)) {
      const bool is_low = window.padding_low[i] != 0;
      window.dimensions[i] = size;
      window.padding_low[i] = is_low ? size - 1 : 0;
      window.padding_high[i] = is_low ? 0 : size - 1;
      return;
    }
    Refuse(instruction, "its window lies over what varies");
  }

  Value PadReduceWindow(const Instruction& instruction) {
    if (instruction.operand_count() != 2) Refuse(instruction, "it has several operands");
    hlo::Window window = instruction.as<hlo::Window>();
    const Instruction* operand = instruction.operand(0);
    Dimensions masked;
    for (int64_t d = 0; d < operand->shape().rank(); ++d) {
      const auto i = static_cast<size_t>(d);
      const bool is_trivial = window.dimensions[i] == 1 && window.strides[i] == 1 &&
                              window.padding_low[i] == 0 && window.padding_high[i] == 0 &&
                              window.base_dilations[i] == 1;
      if (is_trivial || (!Varies(operand, d) && !Varies(&instruction, d))) continue;
      if (IsJoined(operand, d)) Refuse(instruction, "its dimension is of joined ones");
      FitWindow(instruction, window, i, operand->shape().dimension(d), PaddedSize(operand, d),
                instruction.shape().dimension(d));
      masked.push_back(d);
    }
    Value value = Of(operand);
    if (!masked.empty()) {
      const Value neutral =
          NeutralOf(instruction, *instruction.called_computations()[0], operand->element_type());
      value = Masked(value, operand, masked, neutral);
    }
    return builder_.Create(Opcode::kReduceWindow, {value, Of(instruction.operand(1))}, window,
                           instruction.called_computations());
  }

  Value PadConvolution(const Instruction& convolution) {
    const auto& a = convolution.as<hlo::ConvolutionAttributes>();
    const Instruction *input = convolution.operand(0), *kernel = convolution.operand(1);
    for (int64_t d = 0; d < input->shape().rank(); ++d) {
      const bool is_batch = d == a.dimensions.input_batch_dimension && a.batch_group_count == 1 &&
                            a.feature_group_count == 1;
      if (Varies(input, d) && !is_batch) Refuse(convolution, "its window lies over what varies");
    }
    if (Varies(kernel)) Refuse(convolution, "its kernel varies");
    return Same(convolution, PaddedShape(&convolution));
  }

  Computation& entry_;
  SizeClasses classes_;
  const std::function<int64_t(int64_t)>& padded_;
  Computation& target_;
  hlo::Builder builder_;
  std::unordered_map<const Instruction*, bool> attributes_vary_;
  std::unordered_map<const Instruction*, Value> values_;
  std::map<int, Value> sizes_, masks_;  // by class
  std::vector<Literal> arguments_;
};

bool HasNoElements(const Computation& computation) {
  return std::ranges::any_of(computation.instructions(), [](const auto& instruction) {
    const Shape& shape = instruction->shape();
    return shape.is_array() && std::ranges::count(shape.dimensions(), 0) > 0;
  });
}

// Calls copy(offset in the box, offset in the padded array, elements) for each run of the box.
template <typename Copy>
void ForEachRun(const PaddedBox& box, const Copy& copy) {
  const size_t rank = box.sizes.size();
  // The dimensions from `tail` on are one run.
  size_t tail = rank;
  int64_t run = 1;
  while (tail > 0) {
    --tail;
    run *= box.sizes[tail];
    if (box.sizes[tail] != box.padded[tail]) break;
  }
  const Dimensions strides = hlo::RowMajorStrides(box.padded);
  Dimensions index(tail, 0);
  int64_t total = 1;
  for (const int64_t size : box.sizes) total *= size;
  for (int64_t at = 0; at < total; at += run) {
    int64_t offset = 0;
    for (size_t d = 0; d < tail; ++d) offset += index[d] * strides[d];
    copy(at, offset, run);
    for (size_t d = tail; d-- > 0;) {
      if (++index[d] < box.sizes[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace

PaddingRefused::PaddingRefused(const Instruction& instruction, const std::string& why)
    : hlo::Error(hlo::ErrorCode::kUnimplemented,
                 std::string(hlo::Name(instruction.opcode())) + " is not padded: " + why),
      metadata_(instruction.metadata()) {}

PaddedProgram PadSizes(const hlo::Module& module, const VaryingParts& parts,
                       const std::function<int64_t(int64_t)>& padded) {
  PaddedProgram program;
  program.module = module.Clone();
  hlo::Module& clone = *program.module;
  Computation& entry = *clone.entry();
  if (HasNoElements(entry))
    throw PaddingRefused(*entry.instructions()[0], "a value has no elements");
  SizePadder padder(clone, parts, padded);
  program.arguments = padder.Run();
  for (const Instruction* p : entry.parameters()) program.parameters.push_back(padder.BoxOf(p));
  for (const Instruction* r : entry.results()) program.results.push_back(padder.BoxOf(r));
  std::erase_if(clone.input_output_aliases, [&](const hlo::InputOutputAlias& alias) {
    return program.results[static_cast<size_t>(alias.output)].is_padded() ||
           program.parameters[static_cast<size_t>(alias.parameter)].is_padded();
  });
  clone.set_entry(&padder.target());
  padder.target().RemoveDeadInstructions();
  clone.RemoveUnreachableComputations();
  clone.SortComputations();
  return program;
}

void CopyIntoPadded(const PaddedBox& box, int64_t width, const std::byte* from, std::byte* padded) {
  ForEachRun(box, [&](int64_t at, int64_t offset, int64_t count) {
    std::memcpy(padded + offset * width, from + at * width, static_cast<size_t>(count * width));
  });
}

void CopyFromPadded(const PaddedBox& box, int64_t width, const std::byte* padded, std::byte* to) {
  ForEachRun(box, [&](int64_t at, int64_t offset, int64_t count) {
    std::memcpy(to + at * width, padded + offset * width, static_cast<size_t>(count * width));
  });
}

}  // namespace passes
