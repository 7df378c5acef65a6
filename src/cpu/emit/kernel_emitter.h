// Emits one kernel: the code of one fused composite (see fusion.h) as a function
//   void name(void* const* buffers, int64_t begin, int64_t end)
// over part of its units of work. `buffers` are the composite's operands, then its results.
#pragma once

#include <cstdint>
#include <string>

#include "hlo/module.h"

namespace llvm {
class Module;
}

namespace cpu {

struct KernelInfo {
  int64_t units = 1;     // begin and end lie within [0, units]
  double unit_cost = 1;  // estimated nanoseconds for each
};

using KernelEmitter = KernelInfo(llvm::Module& module, const std::string& name,
                                 const hlo::Instruction& composite);
// One file each; kernel_kind.h says which belongs to a composite. They throw
// hlo::Error(kUnimplemented) for what they cannot compute.
KernelEmitter EmitLoopKernel, EmitReduceKernel, EmitScanKernel, EmitScatterKernel,
    EmitComparatorKernel;

}  // namespace cpu
