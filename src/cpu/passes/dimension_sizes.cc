#include "cpu/passes/engine_passes.h"

#include <vector>

#include "hlo/builder.h"
#include "passes/for_each_computation.h"

namespace cpu {
namespace {

bool ResolveSizes(hlo::Computation& computation) {
  std::vector<hlo::Instruction*> sizes;
  for (const auto& instruction : computation.instructions()) {
    if (instruction->opcode() == hlo::Opcode::kGetDimensionSize) sizes.push_back(instruction.get());
  }
  hlo::Builder builder(&computation);
  for (hlo::Instruction* size : sizes) {
    const int64_t dimension = size->as<hlo::DimensionAttributes>().dimension;
    size->ReplaceAllUsesWith(
        builder.ConstantScalar(size->element_type(), size->operand(0)->dimensions()[dimension]));
    computation.Remove(size);
  }
  if (!sizes.empty()) computation.SortTopologically();
  return !sizes.empty();
}

}  // namespace

bool ResolveDimensionSizes(hlo::Module& module) {
  return passes::ForEachComputation(module, ResolveSizes);
}

}  // namespace cpu
