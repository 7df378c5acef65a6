// Makes a composite, one kernel or library call, of some of a computation's instructions.
#pragma once

#include <span>
#include <vector>

#include "cpu/kernel_kind.h"
#include "hlo/instruction.h"

namespace cpu {

struct Replacement {
  hlo::Instruction* value;
  hlo::Instruction* by;
};

// Adds to the members' computation a composite of the kind whose body are `members` (operands
// before users) and whose results are those of `outputs`, some of the members. What it replaces is
// still used: the caller replaces that, when all composites are there that copy it.
std::vector<Replacement> AddComposite(std::span<hlo::Instruction* const> members,
                                      std::span<hlo::Instruction* const> outputs,
                                      const KernelKind& kind);

}  // namespace cpu
