// The kinds of kernels, one file each; kernel_emitter.h chooses among them by the composite's name.
#pragma once

#include "cpu/emit/kernel_emitter.h"

namespace cpu {

KernelInfo EmitLoopKernel(llvm::Module& module, const std::string& name,
                          const hlo::Instruction& composite);
KernelInfo EmitReduceKernel(llvm::Module& module, const std::string& name,
                            const hlo::Instruction& composite);
KernelInfo EmitScanKernel(llvm::Module& module, const std::string& name,
                          const hlo::Instruction& composite);
KernelInfo EmitScatterKernel(llvm::Module& module, const std::string& name,
                             const hlo::Instruction& composite);
KernelInfo EmitComparatorKernel(llvm::Module& module, const std::string& name,
                                const hlo::Instruction& composite);

}  // namespace cpu
