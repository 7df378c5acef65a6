#include "cpu/fusible.h"

#include <algorithm>

#include "hlo/opcode.h"
#include "hlo/size_arithmetic.h"

namespace cpu {

using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// Numbers of less than a byte are in a program's arguments and results only: WidenTypes has made
// wider ones of them in between.
bool IsConvertible(hlo::ElementType type) {
  return hlo::IsNative(type) || (hlo::IsInteger(type) && hlo::ByteWidth(type) == 1);
}

bool HasKernelTypes(const Instruction& instruction) {
  if (instruction.opcode() == Opcode::kConvert) {
    return IsConvertible(instruction.element_type()) &&
           IsConvertible(instruction.operand(0)->element_type());
  }
  return hlo::IsNative(instruction.element_type()) && HasNativeOperands(instruction);
}

bool HasElements(const Instruction* operand) {
  return operand->shape().is_array() && operand->shape().num_elements() > 0;
}

}  // namespace

bool HasNativeOperands(const Instruction& instruction) {
  return std::ranges::all_of(instruction.operands(), [](const Instruction* operand) {
    return operand->shape().is_array() && hlo::IsNative(operand->element_type());
  });
}

bool IsReduction(const Instruction& instruction) {
  return instruction.opcode() == Opcode::kReduce && HasNativeOperands(instruction) &&
         instruction.operand(0)->shape().num_elements() > 0;
}

bool IsScan(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kReduceWindow) return false;
  const auto& window = instruction.as<hlo::Window>();
  const Dimensions& dimensions = instruction.operand(0)->dimensions();
  const hlo::Shape& shape =
      instruction.shape().is_tuple() ? instruction.shape().tuple_shapes()[0] : instruction.shape();
  if (dimensions != shape.dimensions()) return false;
  int64_t scanned = 0;
  for (size_t d = 0; d < dimensions.size(); ++d) {
    auto one = [&](const Dimensions& list) { return list.empty() || list[d] == 1; };
    if (!one(window.strides) || !one(window.base_dilations) || !one(window.window_dilations))
      return false;
    const int64_t size = window.dimensions[d];
    const int64_t low = window.padding_low.empty() ? 0 : window.padding_low[d];
    const int64_t high = window.padding_high.empty() ? 0 : window.padding_high[d];
    if (size == 1 && low == 0 && high == 0) continue;
    const bool whole =
        size == dimensions[d] && ((low == size - 1 && high == 0) || (low == 0 && high == size - 1));
    if (!whole || size < 8) return false;
    ++scanned;
  }
  return scanned == 1;
}

bool ScattersRows(const Instruction& instruction) {
  constexpr int64_t kLeastRow = 8;
  if (instruction.opcode() != Opcode::kScatter || instruction.operand_count() != 3) return false;
  if (!HasNativeOperands(instruction)) return false;
  const auto& attributes = instruction.as<hlo::ScatterAttributes>();
  const Dimensions& updates = instruction.operand(2)->dimensions();
  const int64_t last = instruction.shape().rank() - 1;
  const auto holds_last = [&](const Dimensions& list) {
    return std::ranges::find(list, last) != list.end();
  };
  return !attributes.update_window_dims.empty() &&
         attributes.update_window_dims.back() == std::ssize(updates) - 1 &&
         !holds_last(attributes.inserted_window_dims) &&
         !holds_last(attributes.input_batching_dims) && updates.back() >= kLeastRow;
}

bool IsView(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kReshape:
    case Opcode::kOptimizationBarrier:
    case Opcode::kBitcastConvert:
      return true;
    default:
      return false;
  }
}

bool IsBlockTranspose(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kTranspose) return false;
  const auto& permutation = instruction.as<hlo::DimensionsAttributes>().dimensions;
  const Dimensions& dimensions = instruction.dimensions();
  // The innermost dimension that is not of size 1, here and in the operand.
  int64_t here = -1, there = -1;
  for (size_t i = 0; i < permutation.size(); ++i) {
    if (dimensions[i] == 1) continue;
    here = permutation[i];
    there = std::max(there, permutation[i]);
  }
  return here != there && instruction.shape().num_elements() > 64;
}

bool IsFusibleConcatenate(const Instruction& instruction) {
  constexpr size_t kMostParts = 4;
  constexpr int64_t kLeastRun = 32;
  if (instruction.opcode() != Opcode::kConcatenate || instruction.operand_count() > kMostParts ||
      !HasKernelTypes(instruction) || !std::ranges::all_of(instruction.operands(), HasElements)) {
    return false;
  }
  const auto d = static_cast<size_t>(instruction.as<hlo::DimensionAttributes>().dimension);
  const Dimensions& dimensions = instruction.dimensions();
  const bool is_innermost = d + 1 == dimensions.size();
  if (!is_innermost) return hlo::Product(dimensions, d + 1, dimensions.size()) >= kLeastRun;
  return dimensions[d] >= kLeastRun * static_cast<int64_t>(instruction.operand_count());
}

bool IsFusible(const Instruction& instruction) {
  if (instruction.opcode() == Opcode::kReduceWindow) {
    if (IsScan(instruction)) return false;
    const hlo::Shape& shape = instruction.shape();
    const int64_t count =
        shape.is_tuple() ? shape.tuple_shapes()[0].num_elements() : shape.num_elements();
    for (const Instruction* operand : instruction.operands()) {
      if (!hlo::IsNative(operand->element_type()) || operand->shape().num_elements() == 0)
        return false;
    }
    return count > 0;
  }
  if (!instruction.shape().is_array() || !HasKernelTypes(instruction)) return false;
  if (instruction.shape().is_dynamic() || instruction.shape().num_elements() == 0) return false;
  if (!std::ranges::all_of(instruction.operands(), HasElements)) return false;
  switch (instruction.opcode()) {
    case Opcode::kBitcastConvert:
      return hlo::ByteWidth(instruction.element_type()) ==
                 hlo::ByteWidth(instruction.operand(0)->element_type()) &&
             !hlo::IsComplex(instruction.element_type()) &&
             !hlo::IsComplex(instruction.operand(0)->element_type());
    case Opcode::kBroadcastInDim:
    case Opcode::kConstant:
    case Opcode::kDynamicSlice:
    case Opcode::kGather:
    case Opcode::kIota:
    case Opcode::kMap:
    case Opcode::kPad:
    case Opcode::kReshape:
    case Opcode::kReverse:
    case Opcode::kSlice:
      return true;
    case Opcode::kTranspose:
      return !IsBlockTranspose(instruction);
    case Opcode::kComposite:
      return instruction.as<hlo::CompositeAttributes>().name == "chlo.erf" &&
             hlo::IsFloat(instruction.element_type());
    default:
      return hlo::IsElementwise(instruction.opcode());
  }
}

}  // namespace cpu
