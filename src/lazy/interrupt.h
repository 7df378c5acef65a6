// Waits that the user may end while the work that is waited for goes on: with Ctrl-C in a program
// in Python, say. Only the process's main thread is interrupted, where interpreters handle signals,
// and only where the user's code may run: not under SyncMutex, nor while a graph is captured. There
// a wait is a plain one.
#pragma once

#include "pjrt/client/event.h"

namespace lazy {

// Asks whether this thread is to stop waiting, and throws if so, whatever the layer above wants to
// see thrown. It may run the user's code.
using InterruptCheck = void (*)();
// Once, by a layer that has one, before others wait. Without one no wait is interrupted.
void SetInterruptCheck(InterruptCheck check);

// Whether this thread's waits may be interrupted here.
bool MayBeInterrupted();
// Blocks until the event is ready, whatever became of the work; asks from time to time. What was
// waited for is as before if it throws, and can be waited for again.
void AwaitOrInterrupt(const pjrt::Event& event);

}  // namespace lazy
