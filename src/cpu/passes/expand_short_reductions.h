// Reductions of pairs at the end of an array.
#pragma once

#include "hlo/module.h"

namespace cpu {

// A reduction along the last dimensions, of one element or two, becomes operations on the slices
// that hold the first elements and the second ones. A kernel then has a row in each lane, where its
// vectors would be filled by the elements of one row. Sums of 16-bit floats are carried in f32.
// Returns true if the module changed.
bool ExpandShortReductions(hlo::Module& module);

}  // namespace cpu
