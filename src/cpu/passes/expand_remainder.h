// The remainder of floats by one division.
#pragma once

#include "hlo/module.h"

namespace cpu {

// What is left of an f32 by an f32 is computed in f64 from their quotient, exactly, where that is
// small; the remainder as it was is left for other elements, and a kernel passes over it where it
// has none. Returns true if the module changed.
bool ExpandRemainder(hlo::Module& module);

}  // namespace cpu
