// What the files of the reference evaluator share. Internal to it.
//
// The values of an instruction are its leaves: one literal, or for a tuple those of its elements in
// order. Families of operations stand in evaluator_*.cc. Real numbers are computed in double and
// rounded to the element type once; for the four arithmetic operations and the square root that is
// exactly what arithmetic in the type itself gives, as double has more than twice the digits of
// f32.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hlo/module.h"
#include "hlo/number_conversion.h"

namespace hlo::evaluation {

using Leaves = std::vector<Literal>;

int64_t LeafCount(const Shape& shape);
void AppendLeafShapes(const Shape& shape, std::vector<Shape>& out);

// Throws kUnimplemented, naming the instruction and why.
[[noreturn]] void ThrowUnimplemented(const Instruction& instruction, const std::string& why);

// Steps to the next index in row-major order; false after the last.
inline bool NextIndex(Dimensions& index, const Dimensions& dimensions) {
  for (size_t i = index.size(); i-- > 0;) {
    if (++index[i] < dimensions[i]) return true;
    index[i] = 0;
  }
  return false;
}

// Calls f(index, row-major position) for every index.
template <typename F>
void ForEachIndex(const Dimensions& dimensions, F&& f) {
  for (int64_t size : dimensions) {
    if (size == 0) return;
  }
  Dimensions index(dimensions.size(), 0);
  int64_t position = 0;
  do {
    f(static_cast<const Dimensions&>(index), position++);
  } while (NextIndex(index, dimensions));
}

inline int64_t Dot(const Dimensions& index, const Dimensions& strides) {
  int64_t sum = 0;
  for (size_t i = 0; i < index.size(); ++i) sum += index[i] * strides[i];
  return sum;
}

// Copies one element.
void CopyElement(const Literal& from, int64_t from_index, std::byte* to, int64_t to_index);

// The type in which sums of products are kept: double for floats, complex<double>, and uint64_t for
// integers, whose low bits are right for every width and sign.
template <typename F>
decltype(auto) DispatchAccumulator(ElementType type, F&& f) {
  if (IsComplex(type)) return f.template operator()<std::complex<double>>();
  if (IsFloat(type)) return f.template operator()<double>();
  return f.template operator()<uint64_t>();
}

template <typename Accumulator>
std::vector<Accumulator> ReadAs(const Literal& literal) {
  return DispatchNative(literal.shape().element_type(), [&]<typename T>() {
    std::vector<Accumulator> values;
    values.reserve(literal.data<T>().size());
    for (T value : literal.data<T>()) values.push_back(ConvertNumber<Accumulator>(value));
    return values;
  });
}

template <typename Accumulator>
Literal WriteAs(const Shape& shape, const std::vector<Accumulator>& values) {
  return DispatchNative(shape.element_type(), [&]<typename T>() {
    Literal literal(shape);
    auto out = literal.mutable_data<T>();
    for (size_t i = 0; i < values.size(); ++i) out[i] = ConvertNumber<T>(values[i]);
    return literal;
  });
}

// Every element as StableHLO's convert makes it; `x` itself when it has the type.
Literal ConvertElements(const Literal& x, ElementType type);

// Numbers of a literal of integers.
Dimensions ReadIntegers(const Literal& literal);

// Computes one element of an element-wise instruction from those of its operands.
using ScalarKernel = void (*)(const Instruction& instruction, const std::byte* const* operands,
                              std::byte* result);
// Null if the instruction is not element-wise on native types.
ScalarKernel FindScalarKernel(const Instruction& instruction);

// A computation on scalars, applied many times: a reduction's body, a sort's comparator. If every
// instruction is element-wise, it runs without making literals.
class ScalarProgram {
 public:
  explicit ScalarProgram(const Computation& computation);

  // One address for each parameter and for each result. A result may overwrite a parameter.
  void Run(std::span<const std::byte* const> parameters, std::span<std::byte* const> results);
  // One of two parameters and a pred result: comparators and selections.
  bool Test(std::span<const std::byte* const> parameters);

 private:
  // Large enough for every native element.
  struct alignas(16) Cell {
    std::byte bytes[16];
  };
  struct Step {
    const Instruction* instruction;
    ScalarKernel kernel;
    std::vector<const std::byte*> operands;
    std::byte* result;
  };
  bool Compile();
  void RunGeneral(std::span<const std::byte* const> parameters,
                  std::span<std::byte* const> results);

  const Computation& computation_;
  std::vector<Cell> cells_;
  std::vector<Step> steps_;
  std::vector<const std::byte*> results_;
  std::vector<std::byte*> parameters_;
  bool compiled_;  // last: Compile fills the others
};

// True if the computation is add(parameter 0, parameter 1) on floats or complex numbers: its sums
// may be formed in any order, so they are formed in double.
bool IsFloatSum(const Computation& body);

// Whether it computes with numbers that no C++ type holds, rather than moving them.
bool ComputesNarrow(const Instruction& instruction);
Leaves EvaluateNarrow(const Instruction& instruction, const Leaves& operands);

// The families.
Leaves EvaluateElementwise(const Instruction& instruction, const Leaves& operands);
Leaves EvaluateRearrangement(const Instruction& instruction, const Leaves& operands);
Leaves EvaluateDot(const Instruction& instruction, const Leaves& operands);
Leaves EvaluateConvolution(const Instruction& instruction, const Leaves& operands);
Leaves EvaluateReduction(const Instruction& instruction, const Leaves& operands);
Leaves EvaluateWindow(const Instruction& instruction, const Leaves& operands);
Leaves EvaluateSort(const Instruction& instruction, const Leaves& operands);
Leaves EvaluateGather(const Instruction& instruction, const Leaves& operands);
Leaves EvaluateScatter(const Instruction& instruction, const Leaves& operands);
Leaves EvaluateLinearAlgebra(const Instruction& instruction, const Leaves& operands);
Leaves EvaluateFft(const Instruction& instruction, const Leaves& operands);
Leaves EvaluateBatchNorm(const Instruction& instruction, const Leaves& operands);
Leaves EvaluateRandom(const Instruction& instruction, const Leaves& operands);
Leaves EvaluateControl(const Instruction& instruction, const Leaves& operands);
Leaves EvaluateCollective(const Instruction& instruction, const Leaves& operands);

}  // namespace hlo::evaluation
