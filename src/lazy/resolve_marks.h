// The marks of a program's author (hlo/marks.h) become what they say.
#pragma once

#include "hlo/module.h"

namespace lazy {

// Replaces what lies between the marked inputs and outputs of each name and id by one `composite`,
// whose decomposition, "<name>.impl", it becomes. Its operands are the marked inputs in their
// order, then the computation's parameters that the outputs need otherwise; constants and other
// operations that they need are copied. Marks of locations become their operand's metadata. No
// mark stays. Throws hlo::Error (kInvalidArgument) where two outputs of a composite have one
// position. Returns true if the module changed.
bool ResolveMarks(hlo::Module& module);

}  // namespace lazy
