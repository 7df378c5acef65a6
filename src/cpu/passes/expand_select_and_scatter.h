// select_and_scatter (the gradient of pooling) as operations that fuse and run on all threads.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Becomes a reduce_window that finds each window's winner (the position in the operand) and, for
// each position in a window, a select that gives the source to the winner. Nothing is scattered, so
// that elements are independent; windows that overlap accumulate in the order of StableHLO's
// description. Returns true if the module changed.
bool ExpandSelectAndScatter(hlo::Module& module);

}  // namespace cpu
