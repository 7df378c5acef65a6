#include "passes/instantiate_sizes.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "hlo/builder.h"
#include "hlo/error.h"
#include "hlo/evaluator.h"
#include "hlo/verifier.h"

namespace passes {
namespace {

using hlo::Computation;
using hlo::Dimensions;
using hlo::Instruction;
using hlo::kDynamic;
using hlo::Literal;
using hlo::Opcode;
using hlo::Shape;
using hlo::Value;

// What sizes are computed of: vectors of a shape's length, and scalars.
constexpr int64_t kMostKnownElements = 64;

bool Takes(const Shape& declared, const Shape& given) {
  if (declared.element_type() != given.element_type() || declared.rank() != given.rank()) {
    return false;
  }
  if (declared.is_tuple()) return declared == given;
  for (int64_t d = 0; d < declared.rank(); ++d) {
    if (declared.dimension(d) != kDynamic && declared.dimension(d) != given.dimension(d)) {
      return false;
    }
  }
  return true;
}

class Instantiator {
 public:
  explicit Instantiator(hlo::Module& target) : target_(target) {}

  Computation* Run(const Computation& source, const std::vector<Shape>& parameters,
                   const Computation* before) {
    Computation* computation = target_.AddComputation(source.name(), before);
    hlo::Builder builder(computation);
    Values values;
    for (const auto& instruction : source.instructions()) {
      builder.set_metadata(instruction->shared_metadata());
      const Value value = instruction->opcode() == Opcode::kParameter
                              ? Parameter(builder, *instruction, parameters)
                              : Instantiated(builder, *instruction, values);
      values.emplace(instruction.get(), value);
      NoteNumbers(value);
    }
    std::vector<Value> results;
    for (const Instruction* result : source.results()) results.push_back(values.at(result));
    computation->set_results(std::move(results));
    return computation;
  }

 private:
  using Values = std::unordered_map<const Instruction*, Value>;

  static Value Parameter(hlo::Builder& builder, const Instruction& parameter,
                         const std::vector<Shape>& shapes) {
    const auto number = static_cast<size_t>(parameter.parameter_number());
    if (number >= shapes.size() || !Takes(parameter.shape(), shapes[number])) {
      throw hlo::Error("argument " + std::to_string(number) + " is to be " +
                       parameter.shape().ToString() +
                       (number < shapes.size() ? ", not " + shapes[number].ToString() : ""));
    }
    return builder.computation()->Add(Opcode::kParameter, shapes[number], {},
                                      parameter.attributes());
  }

  // Evaluates what sizes can be computed of.
  void NoteNumbers(Value value) {
    if (!value->shape().is_array() || value->shape().num_elements() > kMostKnownElements) return;
    if (value->IsConstant()) {
      numbers_.emplace(value, value->literal());
      return;
    }
    if (value->operand_count() == 0 || !value->called_computations().empty()) return;
    std::vector<Literal> operands;
    for (const Instruction* operand : value->operands()) {
      const auto known = numbers_.find(operand);
      if (known == numbers_.end()) return;
      operands.push_back(known->second);
    }
    if (value->HasSideEffect() || value->opcode() == Opcode::kCustomCall) return;
    numbers_.emplace(value, hlo::EvaluateInstruction(*value, operands)[0]);
  }

  Dimensions Numbers(const Instruction& user, Value value) const {
    const auto known = numbers_.find(value);
    if (known == numbers_.end()) {
      throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                       user.ToString() +
                           ": a size that depends on more than the arguments' sizes is unknown "
                           "before the program runs");
    }
    Dimensions numbers;
    for (int64_t i = 0; i < value->shape().num_elements(); ++i) {
      numbers.push_back(known->second.AsInt(i));
    }
    return numbers;
  }

  Value Instantiated(hlo::Builder& b, const Instruction& source, const Values& values) {
    std::vector<Value> operands;
    for (const Instruction* operand : source.operands()) operands.push_back(values.at(operand));
    const auto numbers = [&](size_t i) { return Numbers(source, operands[i]); };
    switch (source.opcode()) {
      case Opcode::kGetDimensionSize:
        return b.ConstantScalar(
            hlo::ElementType::kS32,
            operands[0]->shape().dimension(source.as<hlo::DimensionAttributes>().dimension));
      case Opcode::kDynamicBroadcastInDim:
        return b.BroadcastInDim(operands[0], numbers(1),
                                source.as<hlo::DynamicBroadcastAttributes>().broadcast_dimensions);
      case Opcode::kDynamicReshape:
        return b.Reshape(operands[0], numbers(1));
      case Opcode::kDynamicIota:
        return b.Iota(Shape(source.element_type(), numbers(0)),
                      source.as<hlo::DimensionAttributes>().dimension);
      case Opcode::kDynamicPad:
        return b.Pad(operands[0], operands[1], numbers(2), numbers(3), numbers(4));
      case Opcode::kRealDynamicSlice:
        return b.Slice(operands[0], numbers(1), numbers(2), numbers(3));
      case Opcode::kDynamicGather: {
        auto attributes = source.as<hlo::GatherAttributes>();
        attributes.slice_sizes = numbers(2);
        return b.Gather(operands[0], operands[1], std::move(attributes));
      }
      default:
        return Inferred(b, source, std::move(operands));
    }
  }

  // An operation whose result's sizes follow from its operands'.
  Value Inferred(hlo::Builder& b, const Instruction& source, std::vector<Value> operands) {
    switch (source.opcode()) {
      case Opcode::kConvert:
        return b.Convert(operands[0], source.element_type());
      case Opcode::kBitcastConvert:
        return b.BitcastConvert(operands[0], source.element_type());
      case Opcode::kDotGeneral:
        return b.DotGeneral(operands[0], operands[1], source.as<hlo::DotAttributes>(),
                            source.element_type());
      case Opcode::kConvolution:
        return b.Convolution(operands[0], operands[1], source.as<hlo::ConvolutionAttributes>(),
                             source.element_type());
      default:
        break;
    }
    const bool is_fixed = source.shape().is_array() && !source.shape().is_dynamic();
    std::vector<Computation*> called;
    for (const Computation* computation : source.called_computations()) {
      called.push_back(
          Run(*computation, ArgumentShapes(source, *computation, operands), b.computation()));
    }
    return b.Create(source.opcode(), std::move(operands), source.attributes(), std::move(called),
                    is_fixed || source.opcode() == Opcode::kCustomCall
                        ? std::optional(source.shape())
                        : std::nullopt);
  }

  // Of a computation that the instruction calls with these operands.
  static std::vector<Shape> ArgumentShapes(const Instruction& source, const Computation& called,
                                           const std::vector<Value>& operands) {
    std::vector<Shape> shapes;
    switch (source.opcode()) {
      case Opcode::kCall:
      case Opcode::kComposite:
      case Opcode::kWhile:
        for (const Value operand : operands) shapes.push_back(operand->shape());
        break;
      case Opcode::kIf:
      case Opcode::kCase:
        for (size_t i = 1; i < operands.size(); ++i) shapes.push_back(operands[i]->shape());
        break;
      default:
        for (const Instruction* parameter : called.parameters()) {
          shapes.push_back(parameter->shape());
        }
    }
    return shapes;
  }

  hlo::Module& target_;
  std::unordered_map<const Instruction*, Literal> numbers_;  // of the target's values
};

}  // namespace

std::unique_ptr<hlo::Module> InstantiateSizes(const hlo::Module& module,
                                              const std::vector<Shape>& parameters) {
  auto instance = std::make_unique<hlo::Module>(module.name());
  instance->set_entry(Instantiator(*instance).Run(*module.entry(), parameters, nullptr));
  instance->entry()->RemoveDeadInstructions();
  instance->RemoveUnreachableComputations();
  instance->num_replicas = module.num_replicas;
  instance->num_partitions = module.num_partitions;
  instance->input_output_aliases = module.input_output_aliases;
  instance->buffer_donors = module.buffer_donors;
  hlo::VerifyModule(*instance);
  return instance;
}

}  // namespace passes
