// What an operation's work takes the framework's own kernel, so that heavy graphs are compiled
// before they are run (interpreter.h).
#pragma once

#include "lazy/operation.h"

namespace lazy {

// In nanoseconds, on one thread: roughly, and rather too much than too little. Infinite where the
// shapes do not bound it. Called under SyncMutex.
double WorkOf(const Operation& operation);

}  // namespace lazy
