// Gives large reductions with few results enough independent parts for several threads.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Replaces a reduction of many elements to few results by one that reduces equal parts and one that
// reduces those, if a divisor of the reduced size allows. The parts depend on the shapes alone, so
// that results do not depend on the number of threads. Returns true if the module changed.
bool SplitReductions(hlo::Module& module);

}  // namespace cpu
