// The one mechanism behind InlineCalls and ExpandComposites (passes.h).
#pragma once

#include <functional>
#include <vector>

#include "hlo/module.h"

namespace passes {

// Replaces every instruction with a single called computation for which `chosen` returns true (a
// call or composite) by a copy of that computation, callees first. Returns true if the module
// changed. Throws Error(kResourceExhausted) when the copies would make the module unreasonably
// large.
bool InlineWhere(hlo::Module& module,
                 const std::function<bool(const hlo::Instruction& instruction)>& chosen);

// What uses `instruction`'s results uses `values` instead: get_tuple_element by index when it has
// several.
void ReplaceResults(hlo::Instruction& instruction, const std::vector<hlo::Instruction*>& values);

}  // namespace passes
