#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "hlo/evaluation.h"
#include "hlo/evaluator.h"

namespace hlo::evaluation {

ScalarProgram::ScalarProgram(const Computation& computation)
    : computation_(computation), compiled_(Compile()) {}

bool ScalarProgram::Compile() {
  // Reserved so that addresses of cells stay valid.
  cells_.resize(computation_.instructions().size());
  std::unordered_map<const Instruction*, std::byte*> where;
  size_t next = 0;
  for (const auto& instruction : computation_.instructions()) {
    std::byte* cell = cells_[next++].bytes;
    where.emplace(instruction.get(), cell);
    if (!instruction->shape().is_scalar()) return false;
    if (instruction->opcode() == Opcode::kParameter) continue;
    if (instruction->IsConstant()) {
      const Literal& literal = instruction->literal();
      std::memcpy(cell, literal.bytes(), literal.byte_size());
      continue;
    }
    ScalarKernel kernel = FindScalarKernel(*instruction);
    if (!kernel) return false;
    Step step{instruction.get(), kernel, {}, cell};
    for (const Instruction* operand : instruction->operands()) {
      step.operands.push_back(where.at(operand));
    }
    steps_.push_back(std::move(step));
  }
  for (const Instruction* parameter : computation_.parameters()) {
    parameters_.push_back(where.at(parameter));
  }
  for (const Instruction* result : computation_.results()) results_.push_back(where.at(result));
  return true;
}

void ScalarProgram::Run(std::span<const std::byte* const> parameters,
                        std::span<std::byte* const> results) {
  if (!compiled_) return RunGeneral(parameters, results);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    std::memcpy(parameters_[i], parameters[i],
                ByteWidth(computation_.parameter(i)->element_type()));
  }
  for (const Step& step : steps_) step.kernel(*step.instruction, step.operands.data(), step.result);
  for (size_t i = 0; i < results_.size(); ++i) {
    std::memcpy(results[i], results_[i], ByteWidth(computation_.result(i)->element_type()));
  }
}

void ScalarProgram::RunGeneral(std::span<const std::byte* const> parameters,
                               std::span<std::byte* const> results) {
  Leaves arguments;
  for (size_t i = 0; i < parameters.size(); ++i) {
    arguments.emplace_back(computation_.parameter(i)->shape(), parameters[i]);
  }
  Leaves values = EvaluateComputation(computation_, arguments);
  for (size_t i = 0; i < values.size(); ++i) {
    std::memcpy(results[i], values[i].bytes(), values[i].byte_size());
  }
}

bool ScalarProgram::Test(std::span<const std::byte* const> parameters) {
  std::byte answer{};
  std::byte* const results[] = {&answer};
  Run(parameters, results);
  return answer != std::byte{0};
}

bool IsFloatSum(const Computation& body) {
  if (body.results().size() != 1 || body.parameters().size() != 2) return false;
  const Instruction* sum = body.result();
  if (sum->opcode() != Opcode::kAdd) return false;
  const ElementType type = sum->element_type();
  if (!IsNative(type) || (!IsFloat(type) && !IsComplex(type))) return false;
  const auto& operands = sum->operands();
  return std::ranges::is_permutation(operands, body.parameters());
}

}  // namespace hlo::evaluation
