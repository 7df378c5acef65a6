// The executions that were started on each device and are not known to be over, and those that have
// failed. A failure belongs to the values that the execution was to give: whoever reads one is
// told. It is raised once beside that, like that of a check (check_queue.h): at the end of a step
// of the thread that started the execution, or where somebody waits for all.
#pragma once

#include <functional>

#include "lazy/device.h"
#include "pjrt/client/event.h"

namespace lazy {

// Adds an execution. `over`, if any, is called once, when the execution is over, and before whoever
// waits for it goes on. Under SyncMutex.
void NoteRun(Device* device, pjrt::Event done, std::function<void()> over);
// Waits until few enough of one device are in flight; until all of one device are over that were
// started before the call. The user may interrupt both (interrupt.h).
void LimitInFlight(Device* device);
void WaitFor(Device* device);
// Waits for everything started on all devices, and takes the lock for it.
void FinishWork();

// Throws the error of an execution that is known to have failed and that nobody has been told of:
// one that this thread started, or, with `of_all`, else another one.
void RaiseFailedRuns(const Device* device, bool of_all);
// For a read that throws the error of a value: what that thread, which started the execution, has
// started until now is to be told to nobody again.
void ForgetFailedRuns(const Device* device, int64_t thread);

// Waits for everything, unless the user interrupts it; then throws what there is to be told, of
// executions and of checks of values.
void WaitDeviceOps();
// At the end of the process: of what nobody came to be told of.
void WarnOfFailures();

}  // namespace lazy
