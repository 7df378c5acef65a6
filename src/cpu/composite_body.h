// The body of a composite: a copy of some of a computation's instructions.
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

}  // namespace cpu
