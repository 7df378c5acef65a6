// select_and_scatter (the gradient of pooling) as operations that fuse and run on all threads.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Becomes a reduce_window that finds each window's winner (the position in the operand) and selects
// that give the source to the winners: one where windows do not overlap, else one for each position
// in a window. Then nothing is scattered, so that elements are independent. Only of large windows
// that overlap the winners are gone through. In all forms what an element gets from several windows
// accumulates in the order of StableHLO's description. Returns true if the module changed.
bool ExpandSelectAndScatter(hlo::Module& module);

}  // namespace cpu
