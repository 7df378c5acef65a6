// Sorts of which little is read.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Makes a kTopKCall of each sort and the slices of its results, where these are all that is read of
// it and hold its first elements only, or a few neighbours. Returns true if the module changed.
bool MakeTopKCalls(hlo::Module& module);

}  // namespace cpu
