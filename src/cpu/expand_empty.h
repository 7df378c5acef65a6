// Removes the operations over nothing whose result is something, so that the stages behind need not
// think of them: a reduction of no elements is its initial value, padding around no elements is all
// padding, and a generator asked for no numbers keeps its state.
#pragma once

#include "hlo/module.h"

namespace cpu {

void ExpandEmpty(hlo::Computation& computation);

}  // namespace cpu
