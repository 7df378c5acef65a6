#include "cpu/emit/kernel_emitter.h"

#include "cpu/emit/kernel_kinds.h"

namespace cpu {

KernelInfo EmitKernel(llvm::Module& module, const std::string& name,
                      const hlo::Instruction& composite) {
  const std::string& kind = composite.as<hlo::CompositeAttributes>().name;
  if (kind == "cpu.reduce") return EmitReduceKernel(module, name, composite);
  if (kind == "cpu.scan") return EmitScanKernel(module, name, composite);
  if (kind == "cpu.scatter") return EmitScatterKernel(module, name, composite);
  if (kind == "cpu.sort") return EmitComparatorKernel(module, name, composite);
  return EmitLoopKernel(module, name, composite);
}

}  // namespace cpu
