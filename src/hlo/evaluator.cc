#include "hlo/evaluator.h"

#include <cstring>
#include <unordered_map>

#include "hlo/error.h"
#include "hlo/evaluation.h"

namespace hlo {
namespace evaluation {

int64_t LeafCount(const Shape& shape) {
  if (!shape.is_tuple()) return 1;
  int64_t count = 0;
  for (const Shape& element : shape.tuple_shapes()) count += LeafCount(element);
  return count;
}

void AppendLeafShapes(const Shape& shape, std::vector<Shape>& out) {
  if (!shape.is_tuple()) {
    out.push_back(shape);
    return;
  }
  for (const Shape& element : shape.tuple_shapes()) AppendLeafShapes(element, out);
}

void ThrowUnimplemented(const Instruction& instruction, const std::string& why) {
  throw Error(ErrorCode::kUnimplemented,
              "the reference evaluator cannot run " + instruction.ToString() + ": " + why);
}

void CopyElement(const Literal& from, int64_t from_index, std::byte* to, int64_t to_index) {
  size_t width = ByteWidth(from.shape().element_type());
  std::memcpy(to + to_index * width, from.bytes() + from_index * width, width);
}

Literal ConvertElements(const Literal& x, ElementType type) {
  if (x.shape().element_type() == type) return x;
  return DispatchNative(x.shape().element_type(), [&]<typename From>() {
    return DispatchNative(type, [&]<typename To>() {
      Literal result(x.shape().WithElementType(type));
      auto out = result.mutable_data<To>();
      for (size_t i = 0; i < out.size(); ++i) out[i] = ConvertNumber<To>(x.data<From>()[i]);
      return result;
    });
  });
}

Dimensions ReadIntegers(const Literal& literal) {
  Dimensions numbers;
  for (uint64_t number : ReadAs<uint64_t>(literal)) {
    numbers.push_back(static_cast<int64_t>(number));
  }
  return numbers;
}

namespace {

Leaves Dispatch(const Instruction& instruction, const Leaves& operands) {
  if (ComputesNarrow(instruction)) return EvaluateNarrow(instruction, operands);
  switch (instruction.opcode()) {
    case Opcode::kBitcastConvert:
    case Opcode::kBroadcastInDim:
    case Opcode::kConcatenate:
    case Opcode::kDynamicBroadcastInDim:
    case Opcode::kDynamicIota:
    case Opcode::kDynamicPad:
    case Opcode::kDynamicReshape:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kGetDimensionSize:
    case Opcode::kIota:
    case Opcode::kPad:
    case Opcode::kRealDynamicSlice:
    case Opcode::kReshape:
    case Opcode::kReverse:
    case Opcode::kSetDimensionSize:
    case Opcode::kSlice:
    case Opcode::kTranspose:
      return EvaluateRearrangement(instruction, operands);
    case Opcode::kDotGeneral:
      return EvaluateDot(instruction, operands);
    case Opcode::kConvolution:
    case Opcode::kDynamicConv:
      return EvaluateConvolution(instruction, operands);
    case Opcode::kMap:
    case Opcode::kReduce:
      return EvaluateReduction(instruction, operands);
    case Opcode::kReduceWindow:
    case Opcode::kSelectAndScatter:
      return EvaluateWindow(instruction, operands);
    case Opcode::kSort:
      return EvaluateSort(instruction, operands);
    case Opcode::kDynamicGather:
    case Opcode::kGather:
      return EvaluateGather(instruction, operands);
    case Opcode::kScatter:
      return EvaluateScatter(instruction, operands);
    case Opcode::kCholesky:
    case Opcode::kTriangularSolve:
      return EvaluateLinearAlgebra(instruction, operands);
    case Opcode::kFft:
      return EvaluateFft(instruction, operands);
    case Opcode::kBatchNormGrad:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormTraining:
      return EvaluateBatchNorm(instruction, operands);
    case Opcode::kRng:
    case Opcode::kRngBitGenerator:
      return EvaluateRandom(instruction, operands);
    case Opcode::kAllGather:
    case Opcode::kAllReduce:
    case Opcode::kAllToAll:
    case Opcode::kCollectiveBroadcast:
    case Opcode::kCollectivePermute:
    case Opcode::kPartitionId:
    case Opcode::kReduceScatter:
    case Opcode::kReplicaId:
      return EvaluateCollective(instruction, operands);
    case Opcode::kUniformDequantize:
    case Opcode::kUniformQuantize:
      ThrowUnimplemented(instruction, "quantized types are not supported");
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
    case Opcode::kRecv:
    case Opcode::kSend:
      ThrowUnimplemented(instruction, "there is no host to exchange data with");
    default:
      return IsElementwise(instruction.opcode()) ? EvaluateElementwise(instruction, operands)
                                                 : EvaluateControl(instruction, operands);
  }
}

// Shapes that are known to disagree; a dynamic dimension agrees with any size.
bool Agree(const Shape& stated, const Shape& actual) {
  if (stated.element_type() != actual.element_type() || stated.rank() != actual.rank()) {
    return false;
  }
  for (int64_t i = 0; i < stated.rank(); ++i) {
    if (stated.dimension(i) != kDynamic && stated.dimension(i) != actual.dimension(i)) return false;
  }
  return true;
}

void RequireLeaves(const std::vector<Shape>& expected, const Leaves& leaves,
                   const std::string& whose) {
  bool fits = expected.size() == leaves.size();
  std::vector<Shape> actual;
  for (size_t i = 0; i < leaves.size(); ++i) {
    actual.push_back(leaves[i].shape());
    fits = fits && Agree(expected[i], leaves[i].shape());
  }
  if (fits) return;
  throw Error(whose + " takes " + Shape::Tuple(expected).ToString() + ", but was given " +
              Shape::Tuple(actual).ToString());
}

}  // namespace
}  // namespace evaluation

std::vector<Literal> EvaluateInstruction(const Instruction& instruction,
                                         const std::vector<Literal>& operands) {
  std::vector<Shape> expected;
  for (const Instruction* operand : instruction.operands()) {
    evaluation::AppendLeafShapes(operand->shape(), expected);
  }
  evaluation::RequireLeaves(expected, operands, instruction.ToString());
  bool host_exchange =
      instruction.opcode() == Opcode::kInfeed || instruction.opcode() == Opcode::kRecv;
  if (instruction.shape().is_dynamic() && !host_exchange) {
    evaluation::ThrowUnimplemented(instruction, "its result's shape is known only at run time");
  }
  return evaluation::Dispatch(instruction, operands);
}

std::vector<Literal> EvaluateComputation(const Computation& computation,
                                         const std::vector<Literal>& arguments) {
  std::vector<Shape> expected;
  for (const Instruction* parameter : computation.parameters()) {
    evaluation::AppendLeafShapes(parameter->shape(), expected);
  }
  evaluation::RequireLeaves(expected, arguments, "@" + computation.name());

  std::unordered_map<const Instruction*, std::vector<Literal>> values;
  auto next_argument = arguments.begin();
  for (const Instruction* parameter : computation.parameters()) {
    auto end = next_argument + evaluation::LeafCount(parameter->shape());
    values.emplace(parameter, std::vector<Literal>(next_argument, end));
    next_argument = end;
  }
  auto append = [&](const Instruction* instruction, std::vector<Literal>& out) {
    const std::vector<Literal>& leaves = values.at(instruction);
    out.insert(out.end(), leaves.begin(), leaves.end());
  };
  for (const auto& instruction : computation.instructions()) {
    if (instruction->opcode() == Opcode::kParameter) continue;
    std::vector<Literal> operands;
    for (const Instruction* operand : instruction->operands()) append(operand, operands);
    values.emplace(instruction.get(), EvaluateInstruction(*instruction, operands));
  }
  std::vector<Literal> results;
  for (const Instruction* result : computation.results()) append(result, results);
  return results;
}

std::vector<Literal> Evaluate(const Module& module, const std::vector<Literal>& arguments) {
  if (!module.entry()) throw Error("module " + module.name() + " has no entry to evaluate");
  return EvaluateComputation(*module.entry(), arguments);
}

}  // namespace hlo
