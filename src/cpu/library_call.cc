#include "cpu/library_call.h"

#include "cpu/collective/bind_collective.h"
#include "cpu/library/bind.h"

namespace cpu {
namespace {

std::unique_ptr<LibraryCall> BindContraction(const hlo::Instruction& contraction,
                                             const Epilogue* epilogue, const hlo::Shape& result) {
  return contraction.opcode() == hlo::Opcode::kDotGeneral
             ? BindDot(contraction, epilogue, result)
             : BindConvolution(contraction, epilogue, result);
}

std::unique_ptr<LibraryCall> BindComposite(const hlo::Instruction& composite) {
  if (auto attention = BindAttention(composite)) return attention;
  if (auto slices = BindSlicesOfSort(composite)) return slices;
  auto epilogue = Epilogue::FromBody(*composite.called_computations().at(0));
  if (!epilogue) return nullptr;
  return BindContraction(epilogue->contraction(), &*epilogue, composite.shape());
}

}  // namespace

std::unique_ptr<LibraryCall> BindLibraryCall(const hlo::Instruction& instruction) {
  switch (instruction.opcode()) {
    case hlo::Opcode::kDotGeneral:
    case hlo::Opcode::kConvolution:
      return BindContraction(instruction, nullptr, instruction.shape());
    case hlo::Opcode::kComposite:
      return BindComposite(instruction);
    case hlo::Opcode::kFft:
      return BindFft(instruction);
    case hlo::Opcode::kCholesky:
    case hlo::Opcode::kTriangularSolve:
      return BindLinearAlgebra(instruction);
    case hlo::Opcode::kReplicaId:
    case hlo::Opcode::kPartitionId:
      return BindDeviceNumber(instruction);
    case hlo::Opcode::kCustomCall:
      if (auto call = BindLinearAlgebra(instruction)) return call;
      if (auto call = BindTopK(instruction)) return call;
      return BindForeignCall(instruction);
    default:
      return nullptr;
  }
}

}  // namespace cpu
