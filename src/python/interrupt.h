// Signals that come while the program waits for the device.
#pragma once

namespace torch_xla {

// From here on the main thread's waits handle them: Ctrl-C raises KeyboardInterrupt where the
// program waits, and what was waited for goes on.
void HandleSignalsInWaits();

}  // namespace torch_xla
