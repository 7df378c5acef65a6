#include "passes/passes.h"

#include "hlo/builder.h"
#include "passes/inline_where.h"

namespace passes {
namespace {

using hlo::Builder;
using hlo::ElementType;
using hlo::Instruction;
using hlo::Opcode;
using hlo::Value;

// The arithmetic of one batch normalisation, over the elements of each feature.
class Expansion {
 public:
  explicit Expansion(Instruction& instruction)
      : instruction_(instruction),
        builder_(instruction.parent()),
        attributes_(instruction.as<hlo::BatchNormAttributes>()),
        type_(instruction.operand(0)->element_type()),
        wide_(type_ == ElementType::kF64 ? type_ : ElementType::kF32),
        x_(Operand(0)) {
    builder_.set_metadata(instruction.shared_metadata());
    for (int64_t i = 0; i < x_->shape().rank(); ++i) {
      if (i != attributes_.feature_index) reduced_.push_back(i);
    }
  }

  std::vector<Value> Training() {
    Value count = FeatureConstant(ElementsPerFeature());
    Value mean = builder_.Divide(Sum(x_), count);
    Value centered = builder_.Subtract(x_, Spread(mean));
    Value variance = builder_.Divide(Sum(builder_.Multiply(centered, centered)), count);
    Value output = ScaleAndShift(centered, Operand(1), variance, Operand(2));
    return {Narrow(output), Narrow(mean), Narrow(variance)};
  }

  std::vector<Value> Inference() {
    Value centered = builder_.Subtract(x_, Spread(Operand(3)));
    return {Narrow(ScaleAndShift(centered, Operand(1), Operand(4), Operand(2)))};
  }

  // With n elements a feature: dx = scale * inverse / n * (n dy - sum dy - centered * inverse^2 *
  // sum(dy * centered)).
  std::vector<Value> Grad() {
    Value scale = Operand(1), gradient = Operand(4);
    Value inverse = InverseDeviation(Operand(3));
    Value centered = builder_.Subtract(x_, Spread(Operand(2)));
    Value offset_gradient = Sum(gradient);
    Value projection = Sum(builder_.Multiply(gradient, centered));
    Value count = FeatureConstant(ElementsPerFeature());
    Value mean_gradient = builder_.Divide(offset_gradient, count);
    Value slope =
        builder_.Divide(builder_.Multiply(projection, builder_.Multiply(inverse, inverse)), count);
    Value inner = builder_.Subtract(builder_.Subtract(gradient, Spread(mean_gradient)),
                                    builder_.Multiply(centered, Spread(slope)));
    Value operand_gradient = builder_.Multiply(inner, Spread(builder_.Multiply(scale, inverse)));
    Value scale_gradient = builder_.Multiply(projection, inverse);
    return {Narrow(operand_gradient), Narrow(scale_gradient), Narrow(offset_gradient)};
  }

 private:
  Value Operand(size_t i) { return builder_.Convert(instruction_.operand(i), wide_); }
  Value Narrow(Value value) { return builder_.Convert(value, type_); }
  Value Sum(Value value) { return builder_.Reduce(Opcode::kAdd, value, reduced_); }

  Value Spread(Value feature) {
    return builder_.BroadcastInDim(feature, x_->dimensions(), {attributes_.feature_index});
  }

  Value FeatureConstant(double value) {
    int64_t features = x_->shape().dimension(attributes_.feature_index);
    return builder_.Full(hlo::Shape(wide_, {features}), value);
  }

  double ElementsPerFeature() const {
    double count = 1;
    for (int64_t i : reduced_) count *= static_cast<double>(x_->shape().dimension(i));
    return count;
  }

  Value InverseDeviation(Value variance) {
    return builder_.Rsqrt(
        builder_.Add(variance, FeatureConstant(static_cast<double>(attributes_.epsilon))));
  }

  Value ScaleAndShift(Value centered, Value scale, Value variance, Value offset) {
    Value factor = builder_.Multiply(scale, InverseDeviation(variance));
    return builder_.Add(builder_.Multiply(centered, Spread(factor)), Spread(offset));
  }

  Instruction& instruction_;
  Builder builder_;
  hlo::BatchNormAttributes attributes_;
  ElementType type_, wide_;  // of the operands, of the arithmetic
  Value x_;
  hlo::Dimensions reduced_;
};

bool IsBatchNorm(const Instruction& instruction) {
  return instruction.opcode() == Opcode::kBatchNormTraining ||
         instruction.opcode() == Opcode::kBatchNormInference ||
         instruction.opcode() == Opcode::kBatchNormGrad;
}

void Expand(Instruction& instruction) {
  Expansion expansion(instruction);
  switch (instruction.opcode()) {
    case Opcode::kBatchNormTraining:
      return ReplaceResults(instruction, expansion.Training());
    case Opcode::kBatchNormInference:
      return ReplaceResults(instruction, expansion.Inference());
    default:
      return ReplaceResults(instruction, expansion.Grad());
  }
}

}  // namespace

bool ExpandBatchNorm(hlo::Module& module) {
  bool changed = false;
  // By number: the arithmetic adds computations.
  for (size_t c = 0; c < module.computations().size(); ++c) {
    hlo::Computation& computation = *module.computations()[c];
    std::vector<Instruction*> found;
    for (const auto& instruction : computation.instructions()) {
      if (IsBatchNorm(*instruction)) found.push_back(instruction.get());
    }
    for (Instruction* instruction : found) Expand(*instruction);
    if (found.empty()) continue;
    computation.RemoveDeadInstructions();
    computation.SortTopologically();
    changed = true;
  }
  if (changed) {
    module.RemoveUnreachableComputations();
    module.SortComputations();
  }
  return changed;
}

}  // namespace passes
