// get_dimension_size of static shapes is known.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Replaces get_dimension_size by the size, a constant. Returns true if the module changed.
bool ResolveDimensionSizes(hlo::Module& module);

}  // namespace cpu
