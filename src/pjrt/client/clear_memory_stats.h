#pragma once

#include "pjrt/client/client.h"

namespace pjrt {

// The peaks of a device's memory statistics start anew from what is in use. Throws kUnimplemented
// where the plugin does not offer it.
void ClearMemoryStats(const Client& client, const Device& device);

}  // namespace pjrt
