#include "passes/forget_sizes.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "passes/made_sizes.h"
#include "passes/size_classes.h"
#include "passes/unknown_sizes.h"

namespace passes {
namespace {

using hlo::Dimensions;
using hlo::Instruction;
using hlo::kDynamic;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;

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
                                    source.shared_attributes(), source.called_computations());
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
