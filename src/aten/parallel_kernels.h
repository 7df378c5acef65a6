// torch's CPU kernels on several threads, in a process that may fork.
#pragma once

#include <functional>

namespace torch_xla {

// Runs `work` on a thread that is nobody's, with as many of torch's threads beside it as torch and
// the engine are set to; throws what it throws. False, and nothing was done, if they are
// set to one, or no thread can be started.
//
// A pool of OpenMP's belongs to the thread that opened the first parallel region. That of a thread
// that forks is dead in the child, whose first region hangs; so none belongs to a thread of the
// user's program.
bool OnAnotherThread(const std::function<void()>& work);

}  // namespace torch_xla
