// A composite names an operation and carries its decomposition: an engine that knows the name may
// use a kernel of its own, every other one takes the decomposition.
#pragma once

#include <functional>

#include "hlo/module.h"

namespace passes {

// Replaces every `composite` for which `keep` returns false by a copy of its decomposition (whose
// own composites and calls are treated the same way). An empty `keep` keeps none. Returns true if
// the module changed.
bool ExpandComposites(hlo::Module& module,
                      const std::function<bool(const hlo::Instruction& composite)>& keep = {});

}  // namespace passes
