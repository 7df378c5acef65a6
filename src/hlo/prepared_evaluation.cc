#include "hlo/prepared_evaluation.h"

#include <algorithm>
#include <functional>
#include <type_traits>
#include <utility>

#include "hlo/evaluator.h"

namespace hlo {
namespace {

// Arithmetic in the type itself rounds as the evaluator's does (evaluation.h).
template <typename T, typename Operation>
void ArithmeticLoop(const std::byte* x_bytes, int64_t x_step, const std::byte* y_bytes,
                    int64_t y_step, std::byte* result_bytes, int64_t count) {
  const auto* x = reinterpret_cast<const T*>(x_bytes);
  const auto* y = reinterpret_cast<const T*>(y_bytes);
  auto* result = reinterpret_cast<T*>(result_bytes);
  for (int64_t i = 0; i < count; ++i) result[i] = Operation()(x[i * x_step], y[i * y_step]);
}

template <typename T>
auto ArithmeticLoopOf(Opcode opcode) -> decltype(&ArithmeticLoop<T, std::plus<T>>) {
  switch (opcode) {
    case Opcode::kAdd:
      return &ArithmeticLoop<T, std::plus<T>>;
    case Opcode::kSubtract:
      return &ArithmeticLoop<T, std::minus<T>>;
    case Opcode::kMultiply:
      return &ArithmeticLoop<T, std::multiplies<T>>;
    case Opcode::kDivide:
      return &ArithmeticLoop<T, std::divides<T>>;
    default:
      return nullptr;
  }
}

// What depends on nothing but the operands' values, which may then be computed ahead of time.
bool IsFoldable(const Instruction& instruction) {
  const Opcode opcode = instruction.opcode();
  return instruction.IsConstant() || IsElementwise(opcode) || opcode == Opcode::kIota ||
         opcode == Opcode::kBroadcastInDim || opcode == Opcode::kReshape;
}

}  // namespace

PreparedEvaluation::Loop PreparedEvaluation::LoopOf(const Instruction& instruction) {
  if (instruction.operands().size() != 2) return nullptr;
  switch (instruction.element_type()) {
    case ElementType::kF32:
      return ArithmeticLoopOf<float>(instruction.opcode());
    case ElementType::kF64:
      return ArithmeticLoopOf<double>(instruction.opcode());
    default:
      return nullptr;
  }
}

PreparedEvaluation::PreparedEvaluation(const Computation& computation) {
  for (const auto& instruction : computation.instructions()) {
    if (!instruction->shape().is_dynamic()) continue;
    evaluation::ThrowUnimplemented(*instruction, "its result's shape is known only at run time");
  }
  for (const Instruction* parameter : computation.parameters()) {
    Leaves leaves = NewLeaves(parameter->shape());
    for (const Leaf& leaf : leaves) parameters_.push_back(leaf.place);
    leaves_.emplace(parameter, std::move(leaves));
  }
  for (const auto& instruction : computation.instructions()) {
    if (instruction->opcode() == Opcode::kParameter) continue;
    leaves_.emplace(instruction.get(), Add(*instruction));
  }
  for (const Instruction* result : computation.results()) {
    const Leaves& leaves = leaves_.at(result);
    results_.insert(results_.end(), leaves.begin(), leaves.end());
  }
  leaves_.clear();
}

PreparedEvaluation::Leaves PreparedEvaluation::OperandsOf(const Instruction& instruction) const {
  Leaves operands;
  for (const Instruction* operand : instruction.operands()) {
    const Leaves& leaves = leaves_.at(operand);
    operands.insert(operands.end(), leaves.begin(), leaves.end());
  }
  return operands;
}

PreparedEvaluation::Leaves PreparedEvaluation::NewLeaves(const Shape& shape) {
  std::vector<Shape> shapes;
  evaluation::AppendLeafShapes(shape, shapes);
  Leaves leaves;
  for (Shape& leaf : shapes) leaves.push_back({place_count_++, false, std::move(leaf)});
  return leaves;
}

// Null where the operands are not all known.
std::optional<Literal> PreparedEvaluation::Fold(const Instruction& instruction,
                                                const Leaves& operands) const {
  if (!IsFoldable(instruction)) return std::nullopt;
  std::vector<Literal> literals;
  for (const Leaf& operand : operands) {
    const auto found = std::ranges::find(constants_, operand.place, &Constant::place);
    if (found == constants_.end()) return std::nullopt;
    literals.push_back(LiteralOf(operand, found->literal.bytes()));
  }
  return EvaluateInstruction(instruction, literals).at(0);
}

// What names elements that are there already; empty if the instruction makes new ones.
PreparedEvaluation::Leaves PreparedEvaluation::Alias(const Instruction& instruction,
                                                     const Leaves& operands) {
  switch (instruction.opcode()) {
    case Opcode::kGetTupleElement: {
      const auto index = static_cast<size_t>(instruction.as<TupleIndexAttributes>().index);
      const std::vector<Shape>& shapes = instruction.operand(0)->shape().tuple_shapes();
      int64_t first = 0;
      for (size_t i = 0; i < index; ++i) first += evaluation::LeafCount(shapes[i]);
      const auto begin = operands.begin() + first;
      return {begin, begin + evaluation::LeafCount(shapes[index])};
    }
    case Opcode::kReshape:
      return {{operands[0].place, operands[0].is_number, instruction.shape()}};
    case Opcode::kBroadcastInDim:
      if (!operands[0].is_number && !operands[0].shape.is_scalar()) return {};
      return {{operands[0].place, true, instruction.shape()}};
    default:
      return {};
  }
}

PreparedEvaluation::Leaves PreparedEvaluation::Add(const Instruction& instruction) {
  Leaves operands = OperandsOf(instruction);
  if (Leaves leaves = Alias(instruction, operands); !leaves.empty()) return leaves;
  Leaves results = NewLeaves(instruction.shape());
  if (std::optional<Literal> known = Fold(instruction, operands)) {
    Leaf& result = results[0];
    result.is_number = known->IsSplat();
    if (result.is_number) {
      known = Literal(Shape::Scalar(result.shape.element_type()), known->bytes());
    }
    constants_.push_back({result.place, *std::move(known)});
    return results;
  }
  evaluation::ScalarKernel kernel = evaluation::FindScalarKernel(instruction);
  if (kernel != nullptr) {
    constexpr size_t kAlignment = 16;
    computed_.push_back({results[0].place, computed_bytes_});
    const auto bytes = static_cast<size_t>(results[0].shape.byte_size());
    computed_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  steps_.push_back({&instruction, kernel, kernel == nullptr ? nullptr : LoopOf(instruction),
                    std::move(operands), results});
  return results;
}

Literal PreparedEvaluation::LiteralOf(const Leaf& leaf, const std::byte* bytes) {
  if (leaf.shape.byte_size() == 0) return Literal(leaf.shape);
  if (!leaf.is_number) return Literal(leaf.shape, bytes);
  return Literal::Splat(leaf.shape, Literal(Shape::Scalar(leaf.shape.element_type()), bytes));
}

void PreparedEvaluation::RunElements(const Step& step, Values& values) {
  const Leaf& result = step.results[0];
  const int64_t count = result.shape.num_elements();
  auto* out = const_cast<std::byte*>(values.addresses[result.place]);
  const auto advances = [&](const Leaf& leaf) {
    return !leaf.is_number && (!leaf.shape.is_scalar() || result.shape.is_scalar());
  };
  if (step.loop != nullptr) {
    const Leaf &x = step.operands[0], &y = step.operands[1];
    step.loop(values.addresses[x.place], advances(x) ? 1 : 0, values.addresses[y.place],
              advances(y) ? 1 : 0, out, count);
    return;
  }
  constexpr size_t kMostOperands = 3;
  const std::byte* in[kMostOperands] = {};
  size_t widths[kMostOperands] = {};
  const size_t operand_count = step.operands.size();
  for (size_t k = 0; k < operand_count; ++k) {
    const Leaf& operand = step.operands[k];
    in[k] = values.addresses[operand.place];
    widths[k] = advances(operand) ? ByteWidth(operand.shape.element_type()) : 0;
  }
  const size_t width = ByteWidth(result.shape.element_type());
  for (int64_t i = 0; i < count; ++i, out += width) {
    step.kernel(*step.instruction, in, out);
    for (size_t k = 0; k < operand_count; ++k) in[k] += widths[k];
  }
}

void PreparedEvaluation::RunWhole(const Step& step, Values& values) {
  std::vector<Literal> operands;
  for (const Leaf& operand : step.operands)
    operands.push_back(LiteralOf(operand, values.addresses[operand.place]));
  values.literals.push_back(EvaluateInstruction(*step.instruction, operands));
  const std::vector<Literal>& made = values.literals.back();
  for (size_t i = 0; i < made.size(); ++i) {
    values.addresses[step.results[i].place] = made[i].bytes();
  }
}

std::vector<Literal> PreparedEvaluation::Run(std::span<const Literal> arguments) const {
  Values values;
  values.addresses.resize(place_count_);
  values.computed.resize(computed_bytes_);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    values.addresses[parameters_[i]] = arguments[i].bytes();
  }
  for (const Constant& constant : constants_) {
    values.addresses[constant.place] = constant.literal.bytes();
  }
  for (const Computed& computed : computed_) {
    values.addresses[computed.place] = values.computed.data() + computed.offset;
  }
  for (const Step& step : steps_) {
    step.kernel != nullptr ? RunElements(step, values) : RunWhole(step, values);
  }
  std::vector<Literal> results;
  for (const Leaf& leaf : results_)
    results.push_back(LiteralOf(leaf, values.addresses[leaf.place]));
  return results;
}

}  // namespace hlo
