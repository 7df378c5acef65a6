// What an operation of a kernel costs, roughly.
#pragma once

#include "hlo/module.h"

namespace cpu {

bool IsExpensive(const hlo::Instruction& instruction);
// Nanoseconds for an element, vectorized and in cache.
double ElementCost(const hlo::Computation& body);

}  // namespace cpu
