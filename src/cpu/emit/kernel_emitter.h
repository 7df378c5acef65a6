// Emits one kernel: the code of one fused composite (passes/engine_passes.h) as a function
//   void name(void* const* buffers, int64_t begin, int64_t end)
// over part of its units of work. `buffers` are the composite's operands, then its results, then
// the slots of its sizes (extent.h), if it has any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/instruction.h"

namespace llvm {
class Module;
}

namespace cpu {

class KernelSizes;

struct KernelInfo {
  int64_t units = 1;           // begin and end lie within [0, units]
  double unit_cost = 1;        // estimated nanoseconds for each
  std::vector<int64_t> slots;  // their values
};

using KernelEmitter = KernelInfo(llvm::Module& module, const std::string& name,
                                 const hlo::Instruction& composite, KernelSizes& sizes);
// One file each; kernel_kind.h says which belongs to a composite. They throw
// hlo::Error(kUnimplemented) for what they cannot compute.
KernelEmitter EmitLoopKernel, EmitReduceKernel, EmitScanKernel, EmitScatterKernel,
    EmitComparatorKernel;

}  // namespace cpu
