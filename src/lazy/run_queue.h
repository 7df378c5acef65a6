// The executions that were started on each device and are not known to be over. Everything under
// SyncMutex.
#pragma once

#include <functional>

#include "lazy/device.h"
#include "pjrt/client/event.h"

namespace lazy {

// Adds an execution, and waits until few enough are in flight; with `wait`, for all of them. Throws
// the error of one that it waited for. `over`, if any, is called once, when the execution is over,
// and before whoever waits for it goes on.
void LimitInFlight(Device* device, pjrt::Event done, bool wait, std::function<void()> over);
// Waits for all of one device; throws the first error, with the rest left in the queue.
void WaitFor(Device* device);
// Waits for everything started on all devices, and takes the lock for it; throws the first error.
void WaitForAll();
// The same; then throws that of a check of values (check_queue.h).
void WaitDeviceOps();
// Waits for everything, whatever becomes of it: errors belong to whoever reads a result.
void FinishWork();
// At the end of the process: of checks that nobody came to be told of.
void WarnOfFailedChecks();

}  // namespace lazy
