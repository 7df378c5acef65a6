// Where in memory a value is to lie: the engine's devices have one memory, which is the host's.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Replaces the custom calls that only move a value between memories (annotate_device_placement,
// MoveToHost, MoveToDevice) by their operand. Returns true if the module changed.
bool ResolvePlacements(hlo::Module& module);

}  // namespace cpu
