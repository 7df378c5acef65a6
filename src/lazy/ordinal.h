// By which numbers torch knows the devices of this process.
//
// With the CPU engine and a process for each device, that of a process is "xla:r", where r is the
// process's rank on its machine, as PyTorch/XLA has it. Other plugins' processes, and those of more
// than 32 on a machine, have an "xla:0" each.
#pragma once

namespace lazy {

// The number of this process's first device. Starts nothing: before the runtime has started, the
// environment says it.
int FirstOrdinal();
// One more than the largest number that a device of this machine's processes has. Starts nothing;
// before the runtime has started a process is taken to have one device.
int OrdinalCount();

}  // namespace lazy
