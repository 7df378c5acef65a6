#include "hlo/shape_inference.h"

#include "hlo/shape_check.h"

namespace hlo {
namespace {

Shape InferUnchecked(const ShapeCheck& check) {
  switch (check.opcode) {
    case Opcode::kBroadcastInDim:
    case Opcode::kConcatenate:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kIota:
    case Opcode::kPad:
    case Opcode::kReshape:
    case Opcode::kReverse:
    case Opcode::kSlice:
    case Opcode::kTranspose:
      return InferRearrangement(check);
    case Opcode::kDynamicBroadcastInDim:
    case Opcode::kDynamicIota:
    case Opcode::kDynamicPad:
    case Opcode::kDynamicReshape:
    case Opcode::kGetDimensionSize:
    case Opcode::kRealDynamicSlice:
    case Opcode::kSetDimensionSize:
      return InferDynamic(check);
    case Opcode::kConvolution:
    case Opcode::kDotGeneral:
    case Opcode::kDynamicConv:
      return InferContraction(check);
    case Opcode::kMap:
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
    case Opcode::kSelectAndScatter:
    case Opcode::kSort:
      return InferReduction(check);
    case Opcode::kDynamicGather:
    case Opcode::kGather:
    case Opcode::kScatter:
      return InferIndexing(check);
    case Opcode::kBatchNormGrad:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormTraining:
    case Opcode::kCholesky:
    case Opcode::kFft:
    case Opcode::kRng:
    case Opcode::kRngBitGenerator:
    case Opcode::kTriangularSolve:
      return InferNumeric(check);
    case Opcode::kAllGather:
    case Opcode::kAllReduce:
    case Opcode::kAllToAll:
    case Opcode::kCollectiveBroadcast:
    case Opcode::kCollectivePermute:
    case Opcode::kInfeed:
    case Opcode::kOutfeed:
    case Opcode::kPartitionId:
    case Opcode::kRecv:
    case Opcode::kReduceScatter:
    case Opcode::kReplicaId:
    case Opcode::kSend:
      return InferCollective(check);
    case Opcode::kAfterAll:
    case Opcode::kCall:
    case Opcode::kCase:
    case Opcode::kComposite:
    case Opcode::kConstant:
    case Opcode::kCustomCall:
    case Opcode::kGetTupleElement:
    case Opcode::kIf:
    case Opcode::kOptimizationBarrier:
    case Opcode::kParameter:
    case Opcode::kTuple:
    case Opcode::kWhile:
      return InferControl(check);
    case Opcode::kUniformDequantize:
    case Opcode::kUniformQuantize:
      check.Fail(
          "quantized element types are not supported; quantize with multiply, round, clamp and "
          "convert",
          ErrorCode::kUnimplemented);
    default:
      return InferElementwise(check);
  }
}

}  // namespace

Shape InferShape(Opcode opcode, std::span<const Shape* const> operands,
                 const Attributes& attributes, std::span<Computation* const> called,
                 const std::optional<Shape>& given) {
  ShapeCheck check{opcode, operands, attributes, called, given};
  Shape inferred = InferUnchecked(check);
  if (!given) return inferred;
  check.Require(CompatibleShapes(inferred, *given), [&] {
    return "the stated result shape differs from what follows from the operands, " +
           inferred.ToString();
  });
  return *given;
}

}  // namespace hlo
