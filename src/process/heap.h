// The memory that malloc keeps after it was freed.
#pragma once

namespace process {

// Returns it to the system, where the C library can: milliseconds for each 100 MB, and as much
// again for who then needs it.
void ReleaseFreeMemory();

}  // namespace process
