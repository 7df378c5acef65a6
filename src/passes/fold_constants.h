// Arithmetic on constants, done once at compile time.
#pragma once

#include <cstdint>

#include "hlo/module.h"

namespace passes {

// Replaces instructions whose operands are all constants by their value, computed by the reference
// evaluator, when the result has at most `max_elements` elements. iota and broadcast_in_dim of a
// scalar stay as they are: they are cheaper to compute than to load, and other passes read them.
// Control flow, composites, custom calls and whatever has side effects or random numbers stay.
// Returns true if the module changed.
bool FoldConstants(hlo::Module& module, int64_t max_elements = 1024);

}  // namespace passes
