#include "cpu/passes/engine_passes.h"

#include <vector>

#include "cpu/control_flow.h"
#include "cpu/fusible.h"
#include "cpu/passes/composite.h"

namespace cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// The kind of its kernel; null if it needs none.
const KernelKind* KindFor(const Instruction& instruction) {
  if (instruction.IsConstant() || IsView(instruction)) return nullptr;
  if (IsReduction(instruction)) return &kReduceKernel;
  if (IsFusible(instruction)) return &kLoopKernel;
  if (!HasNativeOperands(instruction)) return nullptr;
  switch (instruction.opcode()) {
    case Opcode::kReduceWindow:
      return IsScan(instruction) ? &kScanKernel : nullptr;
    case Opcode::kScatter:
      return &kScatterKernel;
    case Opcode::kSort:
      return &kSortKernel;
    default:
      return nullptr;
  }
}

bool WrapIn(hlo::Computation& computation) {
  std::vector<Instruction*> found;
  for (const auto& instruction : computation.instructions()) {
    if (KindFor(*instruction)) found.push_back(instruction.get());
  }
  if (found.empty()) return false;
  for (Instruction* instruction : found) {
    for (const Replacement& replacement :
         AddComposite({{instruction}}, {{instruction}}, *KindFor(*instruction))) {
      replacement.value->ReplaceAllUsesWith(replacement.by);
    }
  }
  computation.SortTopologically();
  computation.RemoveDeadInstructions();
  return true;
}

}  // namespace

bool WrapSingleKernels(hlo::Module& module) { return RewriteSteps(module, WrapIn); }

}  // namespace cpu
