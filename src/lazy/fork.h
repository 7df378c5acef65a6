// Forked children: programs fork worker processes after the parent has computed. The order of a
// fork is in process/fork.h; this is the layer's part of it. A fork takes the locks under which
// others are waited for, SyncMutex, then RuntimeMutex, without the interpreter's lock, which their
// holders may want. Between them it ends the thread that compiles in the background, of which the
// next program starts another, and waits for the work in flight.
#pragma once

#include <mutex>

namespace lazy {

// Held while the runtime is started or left.
std::mutex& RuntimeMutex();

// How a forking thread waits: `waiter` calls its argument without the interpreter's lock.
void SetForkWaiter(void (*waiter)(void (*wait)()));

}  // namespace lazy
