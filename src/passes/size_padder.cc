#include "passes/size_padder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "hlo/error.h"

namespace passes {

using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;

namespace {

int64_t WidthOf(const Instruction& value) {
  return value.shape().byte_size() / value.shape().num_elements();
}

}  // namespace

SizePadder::SizePadder(hlo::Module& module, const VaryingParts& parts,
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

std::vector<Literal> SizePadder::Run() {
  for (const Instruction* parameter : entry_.parameters()) {
    CheckSizes(*parameter);
    values_[parameter] = builder_.Parameter(PaddedShape(parameter));
  }
  for (const auto& instruction : entry_.instructions()) {
    if (instruction->opcode() == Opcode::kParameter) continue;
    builder_.set_metadata(instruction->shared_metadata());
    CheckSizes(*instruction);
    values_[instruction.get()] = Padded(*instruction);
    CheckShape(*instruction);
  }
  std::vector<Value> results;
  for (const Instruction* result : entry_.results()) results.push_back(values_.at(result));
  target_.set_results(std::move(results));
  return std::move(arguments_);
}

PaddedBox SizePadder::BoxOf(const Instruction* value) const {
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

bool SizePadder::Varies(const Instruction* value) const {
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

int64_t SizePadder::PaddedSize(int c) const {
  int64_t size = 1;
  for (const int factor : classes_.Factors(c)) {
    const int64_t own = classes_.size(factor);
    size *= classes_.Varies(factor) ? padded_(own) : own;
  }
  return size;
}

int64_t SizePadder::PaddedSize(const Instruction* value, int64_t d) const {
  const int c = classes_.Of(value, d);
  return classes_.Varies(c) ? PaddedSize(c) : value->shape().dimension(d);
}

Dimensions SizePadder::PaddedSizes(const Instruction* value) const {
  Dimensions sizes;
  for (int64_t d = 0; d < value->shape().rank(); ++d) sizes.push_back(PaddedSize(value, d));
  return sizes;
}

Shape SizePadder::PaddedShape(const Instruction* value) const {
  if (!value->shape().is_array()) return value->shape();
  return value->shape().WithDimensions(PaddedSizes(value));
}

// A size of 1 spreads like no other.
void SizePadder::CheckSizes(const Instruction& instruction) const {
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

void SizePadder::CheckShape(const Instruction& instruction) const {
  const Value made = values_.at(&instruction);
  if (instruction.shape().is_array() && made->shape() != PaddedShape(&instruction)) {
    throw hlo::Error(hlo::ErrorCode::kInternal,
                     "padding " + instruction.ToString() + " made " + made->ToString());
  }
}

Value SizePadder::Argument(Literal literal) {
  const hlo::SharedMetadata metadata = builder_.shared_metadata();
  builder_.set_metadata({});
  Value parameter = builder_.Parameter(literal.shape());
  builder_.set_metadata(metadata);
  arguments_.push_back(std::move(literal));
  return parameter;
}

Value SizePadder::Size(const Instruction* value, int64_t d) {
  const int c = classes_.Of(value, d);
  if (!classes_.Varies(c)) return Number(value->shape().dimension(d));
  Value size = nullptr;
  for (const int factor : classes_.Factors(c)) {
    Value own = SizeOfFactor(factor);
    size = size == nullptr ? own : builder_.Multiply(size, own);
  }
  return size;
}

Value SizePadder::SizeOfFactor(int factor) {
  if (!classes_.Varies(factor)) return Number(classes_.size(factor));
  auto [it, is_new] = sizes_.emplace(factor, nullptr);
  if (is_new) it->second = IntegerArgument(classes_.size(factor));
  return it->second;
}

Value SizePadder::MaskOf(int c) {
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

Value SizePadder::Masked(Value value, const Instruction* original, const Dimensions& dimensions,
                         Value fill) {
  for (const int64_t d : dimensions) {
    if (!Varies(original, d)) continue;
    const Value mask =
        builder_.BroadcastInDim(MaskOf(classes_.Of(original, d)), value->dimensions(), {d});
    value = builder_.Select(mask, value, builder_.BroadcastInDim(fill, value->dimensions(), {}));
  }
  return value;
}

std::vector<Value> SizePadder::OperandsOf(const Instruction& instruction) const {
  std::vector<Value> operands;
  for (const Instruction* operand : instruction.operands()) operands.push_back(Of(operand));
  return operands;
}

Value SizePadder::Same(const Instruction& instruction, const Shape& shape) {
  return Same(instruction, shape, OperandsOf(instruction));
}

Value SizePadder::Same(const Instruction& instruction, const Shape& shape,
                       std::vector<Value> operands, std::optional<hlo::Attributes> attributes) {
  Value made = target_.Add(instruction.opcode(), shape, std::move(operands),
                           attributes ? *attributes : instruction.attributes(),
                           instruction.called_computations());
  made->set_metadata(instruction.shared_metadata());
  return made;
}

bool SizePadder::IsTouched(const Instruction& instruction) const {
  return Varies(&instruction) ||
         std::ranges::any_of(instruction.operands(), [&](const auto* o) { return Varies(o); });
}

Value SizePadder::Padded(const Instruction& instruction) {
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

Value SizePadder::PadConstant(const Instruction& constant) {
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

Value SizePadder::PadReshape(const Instruction& reshape) {
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

Value SizePadder::PadIota(const Instruction& iota) {
  const int64_t d = iota.as<hlo::DimensionAttributes>().dimension;
  if (IsJoined(&iota, d)) Refuse(iota, "its dimension is of joined ones");
  return Same(iota, PaddedShape(&iota));
}

Value SizePadder::PadSort(const Instruction& sort) {
  const int64_t d = sort.as<hlo::SortAttributes>().dimension;
  if (Varies(sort.operand(0), d)) Refuse(sort, "it sorts what varies");
  std::vector<Shape> shapes;
  for (const Instruction* operand : sort.operands()) shapes.push_back(PaddedShape(operand));
  const Shape shape = shapes.size() == 1 ? shapes[0] : Shape::Tuple(std::move(shapes));
  return Same(sort, shape);
}

}  // namespace passes
