// Forked children: programs fork worker processes after the parent has computed.
#pragma once

namespace lazy {

// From now on a fork waits for the work in flight and takes the layer's locks, so that a child
// finds them free and no work half done. Called when the runtime starts.
void RegisterForkHandlers();

}  // namespace lazy
