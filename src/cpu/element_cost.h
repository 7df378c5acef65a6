// What an operation of a kernel costs, roughly.
#pragma once

#include "hlo/module.h"

namespace cpu {

bool IsExpensive(const hlo::Instruction& instruction);
// A map of which each element takes turns of its own: MakeElementLoops (passes/engine_passes.h).
bool HasLoop(const hlo::Instruction& instruction);
// In operations of a processor for a vector: nothing for what only moves elements.
int OperationCost(const hlo::Instruction& instruction);
// Nanoseconds for an element, vectorized and in cache.
double ElementCost(const hlo::Computation& body);

}  // namespace cpu
