// Where in the user's program an operation is recorded.
#pragma once

#include <cstdint>

#include "hlo/instruction.h"

namespace torch_xla {

// From now on each recorded operation is noted with its line (lazy/location.h), and each tensor
// that a program takes with the name that the line has for it. Takes the interpreter's lock for a
// few microseconds at each operation: for debugging.
void KeepLocations(bool keep);

// The lines that this thread's functions are at, the `depth` outermost of them; null if it runs
// none. Needs the interpreter's lock.
const hlo::SourceFrame* OutermostFrames(int64_t depth);

// How long that has taken so far, in seconds, so that who measures a program can leave it out.
double LocationSeconds();

}  // namespace torch_xla
