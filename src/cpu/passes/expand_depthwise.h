// Depthwise convolutions along one dimension or three as operations that fuse.
#pragma once

#include "hlo/module.h"

namespace cpu {

// A convolution of each channel by itself, with windows of few positions, along one spatial
// dimension or three, becomes a sum of shifted operands times weights; its gradient by the weights
// a sum of products for each position. Both read their operands where they are, where a library
// wants the channels last. Sums are in f32 or f64. Returns true if the module changed.
bool ExpandDepthwise(hlo::Module& module);

}  // namespace cpu
