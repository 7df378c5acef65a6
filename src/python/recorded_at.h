// Where in the user's program an operation is recorded.
#pragma once

namespace torch_xla {

// From now on each recorded operation is noted with its line (lazy/location.h), and each tensor
// that a program takes with the name that the line has for it. Takes the interpreter's lock for a
// few microseconds at each operation: for debugging.
void KeepLocations(bool keep);

// How long that has taken so far, in seconds, so that who measures a program can leave it out.
double LocationSeconds();

}  // namespace torch_xla
