// The kernels of a fused module: found where the process has them, and otherwise compiled, equal
// ones once, on several threads.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/step_emission.h"
#include "hlo/module.h"

namespace cpu {

class Dump;
class KernelCache;

// Which sizes kernels read from slots.
enum class SlotsFor {
  kNothing,
  kWhatVaries,  // as programs before this one have shown
  kAllSizes,
};

struct GeneratedCode {
  std::vector<CompiledKernel> kernels;
  std::vector<int32_t> kernel_of_instruction;  // in the order of KernelInstructions
  std::vector<int32_t> object_of_kernel;       // kernels may share one

  // The machine code, as ELF files.
  std::vector<std::string_view> Objects() const;
  // Of distinct objects.
  int64_t code_bytes() const;
  // All but the objects.
  std::string SerializeTable() const;
  // Without the kernels' code.
  static GeneratedCode ParseTable(const std::string& bytes);
};

// The instructions that need kernels, in an order that only depends on the module's structure.
std::vector<const hlo::Instruction*> KernelInstructions(const hlo::Module& module);

// `varying_sizes` have slots beside what has varied.
GeneratedCode GenerateCode(const hlo::Module& module, const Dump& dump, KernelCache& cache,
                           SlotsFor slots = SlotsFor::kWhatVaries,
                           const std::set<int64_t>& varying_sizes = {});

// Gives the kernels of a table that was parsed their code. Throws hlo::Error(kInvalidArgument) if
// it does not belong to the module.
void LoadObjects(const hlo::Module& module, const std::vector<std::string_view>& objects,
                 GeneratedCode& code, KernelCache& cache);

}  // namespace cpu
