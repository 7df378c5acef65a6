// Makes a composite, one kernel or library call, of some of a computation's instructions.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace cpu {

struct CompositeBody {
  hlo::Computation* computation;            // its results are still to be set
  std::vector<hlo::Instruction*> operands;  // what the members read from outside, one a parameter
  std::unordered_map<const hlo::Instruction*, hlo::Instruction*> copies;  // of members and operands
};

// Copies `members` into a new computation `name` of their module; one that comes twice is copied
// once. What they read and is no member before them becomes a parameter, in the order in which they
// read it.
CompositeBody CopyIntoBody(std::span<hlo::Instruction* const> members, std::string name);

struct Replacement {
  hlo::Instruction* value;
  hlo::Instruction* by;
};

// Adds to the members' computation a composite of the kind, "cpu.loop", whose body are `members`
// (operands before users) and whose results are those of `outputs`, some of the members. What it
// replaces is still used: the caller replaces that, when all composites are there that copy it.
std::vector<Replacement> AddComposite(std::span<hlo::Instruction* const> members,
                                      std::span<hlo::Instruction* const> outputs,
                                      const std::string& kind);

}  // namespace cpu
