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

KernelInfo EmitKernel(llvm::Module& module, const std::string& name,
                      const hlo::Instruction& composite);

}  // namespace cpu
