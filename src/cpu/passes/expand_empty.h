// Operations over nothing whose result is something.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Replaces them, so that the stages behind need not think of them: a reduction of no elements is
// its initial value, padding around no elements is all padding, and a generator asked for no
// numbers keeps its state. What is no longer used stays. Returns true if the module changed.
bool ExpandEmpty(hlo::Module& module);

}  // namespace cpu
