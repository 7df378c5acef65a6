// What torch asks a backend of: the current device, how many there are, generators.
#pragma once

namespace torch_xla {

// The device that "xla" without a number means, per thread.
int CurrentDevice();
void SetCurrentDevice(int ordinal);
// How many devices this process has. Starts the runtime.
int DeviceCount();

}  // namespace torch_xla
