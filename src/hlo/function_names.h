// Which of a module's computations are functions when it is written as a file, and their names.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace hlo {

// True for what names the computations that it calls: calls, composites and custom calls. What
// other instructions call are their regions.
bool CallsByName(Opcode opcode);

struct FunctionNames {
  std::vector<const Computation*> functions;  // the entry first
  std::unordered_map<const Computation*, std::string> names;
};

// The entry is "main"; where several have one name, later ones get a number.
FunctionNames NameFunctions(const Module& module);

}  // namespace hlo
