#include "passes/forget_sizes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "passes/size_classes.h"

namespace passes {
namespace {

using hlo::Dimensions;
using hlo::ElementType;
using hlo::Instruction;
using hlo::kDynamic;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;

constexpr ElementType kScalarSizeType = ElementType::kS32;

// Of each dimension its size, or a negative number that stands for an unknown one: equal numbers
// are equal sizes.
using Extents = std::vector<int64_t>;

bool IsUnknown(int64_t extent) { return extent < 0; }
bool HasUnknown(const Extents& extents) { return std::ranges::any_of(extents, IsUnknown); }

Dimensions KnownDimensions(const Extents& extents) {
  Dimensions dimensions;
  for (const int64_t extent : extents) dimensions.push_back(IsUnknown(extent) ? kDynamic : extent);
  return dimensions;
}

// The unknown sizes of a program, and how it computes them.
class UnknownSizes {
 public:
  explicit UnknownSizes(hlo::Builder& builder) : builder_(builder) {}

  int64_t OfDimension(Value value, int64_t dimension) {
    return Add(
        builder_.Create(Opcode::kGetDimensionSize, {value}, hlo::DimensionAttributes{dimension}));
  }

  // What these stretch to; equal ones stay what they are.
  int64_t Common(const std::set<int64_t>& unknown) {
    if (unknown.size() == 1) return *unknown.begin();
    if (const auto made = common_.find(unknown); made != common_.end()) return made->second;
    const Value one = builder_.ConstantScalar(kScalarSizeType, int64_t{1});
    Value size = Scalar(*unknown.begin());
    for (auto other = std::next(unknown.begin()); other != unknown.end(); ++other) {
      size = builder_.Select(builder_.Eq(size, one), Scalar(*other), size);
    }
    return common_.emplace(unknown, Add(size)).first->second;
  }

  Value Scalar(int64_t extent) {
    return IsUnknown(extent) ? scalars_[static_cast<size_t>(-extent - 1)]
                             : builder_.ConstantScalar(kScalarSizeType, extent);
  }

  Value Vector(const Extents& extents) {
    std::vector<Value> parts;
    for (const int64_t extent : extents) parts.push_back(builder_.Reshape(Scalar(extent), {1}));
    return parts.size() == 1 ? parts[0] : builder_.Concatenate(std::move(parts), 0);
  }

 private:
  int64_t Add(Value scalar) {
    scalars_.push_back(scalar);
    return -static_cast<int64_t>(scalars_.size());
  }

  hlo::Builder& builder_;
  std::vector<Value> scalars_;  // of -1, -2, …
  std::map<std::set<int64_t>, int64_t> common_;
};

// Of each dimension whether the program itself has made it; of what is no array, one flag.
using MadeDimensions = std::vector<bool>;

// Which of a program's sizes come from no parameter, but from a broadcast, a constant or the like:
// those may be numbers that were taken from a size that was marked.
class MadeSizes {
 public:
  explicit MadeSizes(const hlo::Computation& computation) {
    for (const auto& instruction : computation.instructions()) {
      of_[instruction.get()] = Find(*instruction);
    }
  }

  const MadeDimensions& Of(const Instruction* instruction) const { return of_.at(instruction); }

 private:
  static MadeDimensions All(const Instruction& instruction, bool made) {
    const Shape& shape = instruction.shape();
    return MadeDimensions(shape.is_array() ? static_cast<size_t>(shape.rank()) : 1, made);
  }

  static void Append(const MadeDimensions& made, const Dimensions& chosen, MadeDimensions& into) {
    for (const int64_t d : chosen) into.push_back(made[static_cast<size_t>(d)]);
  }

  MadeDimensions Find(const Instruction& instruction) const {
    if (hlo::IsElementwise(instruction.opcode())) return OfElementwise(instruction);
    switch (instruction.opcode()) {
      case Opcode::kParameter:
        return All(instruction, false);
      case Opcode::kConstant:
      case Opcode::kIota:
      case Opcode::kRng:
      case Opcode::kRngBitGenerator:
        return All(instruction, true);
      case Opcode::kBroadcastInDim:
        return OfBroadcast(instruction);
      case Opcode::kTranspose:
        return OfTranspose(instruction);
      case Opcode::kDotGeneral:
        return OfDot(instruction);
      default:
        return All(instruction,
                   std::ranges::any_of(instruction.operands(), [&](const Instruction* operand) {
                     return std::ranges::find(Of(operand), true) != Of(operand).end();
                   }));
    }
  }

  // Operands have equal sizes: one that a parameter gives is none that was made.
  MadeDimensions OfElementwise(const Instruction& instruction) const {
    MadeDimensions made = All(instruction, true);
    for (const Instruction* operand : instruction.operands()) {
      if (operand->shape().is_scalar()) continue;
      for (size_t d = 0; d < made.size(); ++d) made[d] = made[d] && Of(operand)[d];
    }
    return made;
  }

  MadeDimensions OfBroadcast(const Instruction& broadcast) const {
    const Instruction* operand = broadcast.operand(0);
    const Dimensions& map = broadcast.as<hlo::DimensionsAttributes>().dimensions;
    MadeDimensions made = All(broadcast, true);
    for (size_t i = 0; i < map.size(); ++i) {
      const auto d = static_cast<size_t>(map[i]);
      if (operand->dimensions()[i] == broadcast.dimensions()[d]) made[d] = Of(operand)[i];
    }
    return made;
  }

  MadeDimensions OfTranspose(const Instruction& transpose) const {
    MadeDimensions made;
    Append(Of(transpose.operand(0)), transpose.as<hlo::DimensionsAttributes>().dimensions, made);
    return made;
  }

  MadeDimensions OfDot(const Instruction& instruction) const {
    const auto& dot = instruction.as<hlo::DotAttributes>();
    const Instruction *lhs = instruction.operand(0), *rhs = instruction.operand(1);
    MadeDimensions made;
    Append(Of(lhs), dot.lhs_batching_dimensions, made);
    Append(Of(lhs),
           OtherDimensions(lhs->shape().rank(), dot.lhs_contracting_dimensions,
                           dot.lhs_batching_dimensions),
           made);
    Append(Of(rhs),
           OtherDimensions(rhs->shape().rank(), dot.rhs_contracting_dimensions,
                           dot.rhs_batching_dimensions),
           made);
    return made;
  }

  std::unordered_map<const Instruction*, MadeDimensions> of_;
};

// A value that may stretch: `map[i]` is the dimension of the result that its dimension i is.
struct Stretchable {
  Value value;
  Extents extents;
  Dimensions map;
  MadeDimensions made = {};

  bool Has(const Extents& sizes) const { return extents == sizes && std::ranges::is_sorted(map); }
};

// Writes the entry anew, behind the old one.
class Forgetter {
 public:
  Forgetter(const hlo::Computation& source, std::span<const ParameterDimension> forgotten,
            hlo::Computation& target)
      : source_(source),
        forgotten_(forgotten),
        made_(source),
        builder_(&target),
        unknown_(builder_) {}

  void Run() {
    for (const auto& instruction : source_.instructions()) {
      builder_.set_metadata(instruction->shared_metadata());
      Rewrite(*instruction);
    }
    std::vector<Value> results;
    for (const Instruction* result : source_.results()) results.push_back(values_.at(result));
    builder_.computation()->set_results(std::move(results));
    builder_.computation()->RemoveDeadInstructions();
  }

 private:
  [[noreturn]] static void Refuse(const Instruction& instruction, const std::string& why) {
    const std::string& name = instruction.metadata().op_name;
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     (name.empty() ? std::string(hlo::Name(instruction.opcode())) : name) + " " +
                         why + "; torch.export with dynamic_shapes exports such programs");
  }

  void Rewrite(const Instruction& instruction) {
    const bool is_open = std::ranges::any_of(
        instruction.operands(), [&](const Instruction* x) { return HasUnknown(Of(x)); });
    if (instruction.opcode() == Opcode::kParameter) {
      RewriteParameter(instruction);
    } else if (!is_open) {
      Keep(instruction, Copy(instruction, instruction.shape()), Recorded(instruction));
    } else if (hlo::IsElementwise(instruction.opcode())) {
      RewriteElementwise(instruction);
    } else {
      RewriteOther(instruction);
    }
  }

  const Extents& Of(const Instruction* source) const { return extents_.at(source); }

  static Extents Recorded(const Instruction& source) {
    return source.shape().is_array() ? source.dimensions() : Extents();
  }

  void Keep(const Instruction& source, Value value, Extents extents) {
    values_[&source] = value;
    extents_[&source] = std::move(extents);
  }

  Value Copy(const Instruction& source, Shape shape) {
    std::vector<Value> operands;
    for (const Instruction* operand : source.operands()) operands.push_back(values_.at(operand));
    const Value copy =
        builder_.computation()->Add(source.opcode(), std::move(shape), std::move(operands),
                                    source.attributes(), source.called_computations());
    copy->set_metadata(source.shared_metadata());
    return copy;
  }

  // The same operation, whose result has these sizes.
  void Keep(const Instruction& source, Extents extents) {
    const Value copy = Copy(source, source.shape().WithDimensions(KnownDimensions(extents)));
    Keep(source, copy, std::move(extents));
  }

  void RewriteParameter(const Instruction& parameter) {
    Extents extents = Recorded(parameter);
    std::vector<int64_t> unknown;
    for (const auto& [number, dimension] : forgotten_) {
      if (number == parameter.parameter_number()) unknown.push_back(dimension);
    }
    Dimensions dimensions = extents;
    for (const int64_t d : unknown) dimensions[static_cast<size_t>(d)] = kDynamic;
    const Value value = unknown.empty()
                            ? Copy(parameter, parameter.shape())
                            : Copy(parameter, parameter.shape().WithDimensions(dimensions));
    for (const int64_t d : unknown) {
      extents[static_cast<size_t>(d)] = unknown_.OfDimension(value, d);
    }
    Keep(parameter, value, std::move(extents));
  }

  // What a broadcast stretches, so that it can stretch to another size.
  Stretchable Unstretched(const Instruction* source) const {
    Dimensions map(static_cast<size_t>(source->shape().rank()));
    std::iota(map.begin(), map.end(), 0);
    while (source->opcode() == Opcode::kBroadcastInDim) {
      Dimensions inner = source->as<hlo::DimensionsAttributes>().dimensions;
      for (int64_t& d : inner) d = map[static_cast<size_t>(d)];
      map = std::move(inner);
      source = source->operand(0);
    }
    return {values_.at(source), Of(source), std::move(map), made_.Of(source)};
  }

  // A constant with equal elements fills any size.
  Stretchable Filling(const Instruction* source) {
    Stretchable operand = Unstretched(source);
    if (!operand.value->IsConstant() || operand.map.empty()) return operand;
    const hlo::Literal& literal = operand.value->literal();
    if (!literal.IsSplat()) return operand;
    return {builder_.Constant(
                hlo::Literal(Shape::Scalar(operand.value->element_type()), literal.bytes())),
            {},
            {}};
  }

  void RewriteElementwise(const Instruction& source) {
    std::vector<Stretchable> operands;
    for (const Instruction* operand : source.operands()) operands.push_back(Filling(operand));
    Extents extents = Recorded(source);
    for (size_t d = 0; d < extents.size(); ++d) {
      extents[d] = CommonExtent(source, operands, static_cast<int64_t>(d));
    }
    // Those of select and clamp may be scalars for all elements.
    const auto is_for_all = [&](size_t i) { return source.operand(i)->shape().is_scalar(); };
    bool stretches = false;
    for (size_t i = 0; i < operands.size(); ++i) {
      stretches |= !is_for_all(i) && !operands[i].Has(extents);
    }
    std::vector<Value> values;
    for (size_t i = 0; i < operands.size(); ++i) {
      values.push_back(stretches && !is_for_all(i) ? Stretched(operands[i], extents)
                                                   : operands[i].value);
    }
    const Value value = builder_.computation()->Add(
        source.opcode(), source.shape().WithDimensions(KnownDimensions(extents)), std::move(values),
        source.attributes());
    value->set_metadata(source.shared_metadata());
    Keep(source, value, std::move(extents));
  }

  // What the operands' sizes that face each other at a dimension stretch to.
  int64_t CommonExtent(const Instruction& source, const std::vector<Stretchable>& operands,
                       int64_t dimension) {
    std::set<int64_t> unknown;
    int64_t known = 1;
    bool is_made = false;
    for (const Stretchable& operand : operands) {
      for (size_t i = 0; i < operand.map.size(); ++i) {
        if (operand.map[i] != dimension) continue;
        const int64_t extent = operand.extents[i];
        if (IsUnknown(extent)) unknown.insert(extent);
        if (IsUnknown(extent) || extent == 1) continue;
        known = extent;
        is_made |= operand.made[i];
      }
    }
    if (unknown.empty()) return source.dimensions()[static_cast<size_t>(dimension)];
    if (is_made)
      Refuse(source, "meets a size of the program's own, which may be one that was marked");
    return known != 1 ? known : unknown_.Common(unknown);
  }

  Value Stretched(const Stretchable& operand, const Extents& extents) {
    if (operand.Has(extents) && !HasUnknown(extents)) return operand.value;
    if (!HasUnknown(extents) && !HasUnknown(operand.extents)) {
      return builder_.BroadcastInDim(operand.value, extents, operand.map);
    }
    hlo::DynamicBroadcastAttributes attributes;
    attributes.broadcast_dimensions = operand.map;
    return builder_.Create(Opcode::kDynamicBroadcastInDim,
                           {operand.value, unknown_.Vector(extents)}, std::move(attributes), {},
                           operand.value->shape().WithDimensions(KnownDimensions(extents)));
  }

  void RewriteOther(const Instruction& source) {
    switch (source.opcode()) {
      case Opcode::kBroadcastInDim:
        return RewriteBroadcast(source);
      case Opcode::kTranspose:
        return Keep(source, Chosen(Of(source.operand(0)),
                                   source.as<hlo::DimensionsAttributes>().dimensions));
      case Opcode::kReduce:
        return RewriteReduce(source);
      case Opcode::kDotGeneral:
        return RewriteDot(source);
      default:
        Refuse(source, "may hold a size that was marked as unknown");
    }
  }

  static Extents Chosen(const Extents& extents, const Dimensions& dimensions) {
    Extents chosen;
    for (const int64_t d : dimensions) chosen.push_back(extents[static_cast<size_t>(d)]);
    return chosen;
  }

  // Where nothing else says to which size, to the recorded one.
  void RewriteBroadcast(const Instruction& source) {
    const Instruction* operand = source.operand(0);
    const Dimensions& map = source.as<hlo::DimensionsAttributes>().dimensions;
    Extents extents = Recorded(source);
    for (size_t i = 0; i < map.size(); ++i) {
      int64_t& extent = extents[static_cast<size_t>(map[i])];
      if (operand->dimensions()[i] == extent) extent = Of(operand)[i];
    }
    const Value value = Stretched({values_.at(operand), Of(operand), map}, extents);
    Keep(source, value, std::move(extents));
  }

  // A mean holds the number of elements as one of its numbers, so those may not be unknown.
  void RewriteReduce(const Instruction& source) {
    const Instruction* operand = source.operand(0);
    const Dimensions& reduced = source.as<hlo::DimensionsAttributes>().dimensions;
    if (HasUnknown(Chosen(Of(operand), reduced))) {
      Refuse(source, "reduces a dimension that was marked as unknown");
    }
    if (!source.shape().is_array()) Refuse(source, "reduces several values of unknown sizes");
    Keep(source, Chosen(Of(operand), OtherDimensions(operand->shape().rank(), reduced)));
  }

  void RewriteDot(const Instruction& source) {
    const auto& dot = source.as<hlo::DotAttributes>();
    const Instruction *lhs = source.operand(0), *rhs = source.operand(1);
    if (Chosen(Of(lhs), dot.lhs_contracting_dimensions) !=
            Chosen(Of(rhs), dot.rhs_contracting_dimensions) ||
        Chosen(Of(lhs), dot.lhs_batching_dimensions) !=
            Chosen(Of(rhs), dot.rhs_batching_dimensions)) {
      Refuse(source, "multiplies matrices of which one alone was marked as of unknown size");
    }
    Extents extents = Chosen(Of(lhs), dot.lhs_batching_dimensions);
    const auto append = [&](const Instruction* operand, const Dimensions& contracting,
                            const Dimensions& batch) {
      const Dimensions free = OtherDimensions(operand->shape().rank(), contracting, batch);
      for (const int64_t extent : Chosen(Of(operand), free)) extents.push_back(extent);
    };
    append(lhs, dot.lhs_contracting_dimensions, dot.lhs_batching_dimensions);
    append(rhs, dot.rhs_contracting_dimensions, dot.rhs_batching_dimensions);
    Keep(source, std::move(extents));
  }

  const hlo::Computation& source_;
  std::span<const ParameterDimension> forgotten_;
  MadeSizes made_;
  hlo::Builder builder_;
  UnknownSizes unknown_;
  std::unordered_map<const Instruction*, Value> values_;  // of the source's
  std::unordered_map<const Instruction*, Extents> extents_;
};

}  // namespace

std::unique_ptr<hlo::Module> ForgetSizes(const hlo::Module& module,
                                         std::span<const ParameterDimension> forgotten) {
  auto open = module.Clone();
  hlo::Computation* target = open->AddComputation(module.entry()->name());
  Forgetter(*open->entry(), forgotten, *target).Run();
  open->set_entry(target);
  open->RemoveUnreachableComputations();
  return open;
}

}  // namespace passes
