// What torch asks a backend of: the current device, how many there are, generators.
#pragma once

#include "lazy/device.h"

namespace torch_xla {

// The device that "xla" without a number means, per thread.
int CurrentDevice();
void SetCurrentDevice(int ordinal);
// How many devices this process has. Starts the runtime.
int DeviceCount();

// What runs all that is pending on a device and waits for it, where torch asks for it (streams,
// events). Whoever binds to an interpreter sets one that waits without the interpreter's lock.
using Synchronizer = void (*)(lazy::Device* device);
void Synchronize(lazy::Device* device);
void SetSynchronizer(Synchronizer synchronizer);

}  // namespace torch_xla
