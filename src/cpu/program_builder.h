// From a fused computation to a Program: which buffer each value lives in, and the steps.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cpu/program.h"
#include "hlo/module.h"

namespace cpu {

struct CompiledKernel {
  std::string name;
  KernelFunction function = nullptr;
  int64_t units = 1;
  double unit_cost = 0;
};
// The kernel compiled for an instruction (see NeedsKernel).
using KernelTable = std::function<const CompiledKernel&(const hlo::Instruction&)>;

// True if the instruction runs as generated code.
bool NeedsKernel(const hlo::Instruction& instruction);

// `aliases[i]`: the parameter whose buffer may be passed as result i's too, or -1. Constants' data
// is not copied: the computation must outlive the program. Throws hlo::Error(kUnimplemented) naming
// the operation.
std::unique_ptr<Program> BuildProgram(const hlo::Computation& computation,
                                      const std::vector<int64_t>& aliases,
                                      const KernelTable& kernels);

}  // namespace cpu
