// Counter-based random bits as integer arithmetic on the element's number.
#pragma once

#include "hlo/module.h"

namespace cpu {

// rng_bit_generator (ThreeFry2x32-20 and Philox4x32-10, with XLA's numbering of elements, so that
// the bits are the same ones) becomes element-wise operations, which fuse with what uses the bits.
// Returns true if the module changed.
bool ExpandRandom(hlo::Module& module);

}  // namespace cpu
