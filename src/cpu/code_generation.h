// Compiles a fused module's kernels, equal ones once, on several threads.
#pragma once

#include <string>
#include <vector>

#include "cpu/step_emission.h"
#include "hlo/module.h"

namespace cpu {

class Dump;

struct GeneratedCode {
  std::vector<CompiledKernel> kernels;         // function is null until the objects are loaded
  std::vector<int32_t> kernel_of_instruction;  // in the order of KernelInstructions
  std::vector<std::string> objects;

  // All but the objects.
  std::string SerializeTable() const;
  static GeneratedCode ParseTable(const std::string& bytes);
};

// The instructions that need kernels, in an order that only depends on the module's structure.
std::vector<const hlo::Instruction*> KernelInstructions(const hlo::Module& module);

GeneratedCode GenerateCode(const hlo::Module& module, const Dump& dump);

}  // namespace cpu
