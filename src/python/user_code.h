// Calls of the user's functions.
#pragma once

#include <c10/util/Exception.h>
#include <torch/csrc/utils/pybind.h>

#include "lazy/sync_mutex.h"

namespace torch_xla {

// While it lives this thread has the interpreter's lock, and functions of the user's may be called:
// these may record, sync and read, wait for other threads, and be interrupted by signals. So no
// graph may be in the midst of being cut. Observers alone are called then, and told to read nothing
// (lazy/graph_observer.h).
class UserCode {
 public:
  UserCode() {
    TORCH_INTERNAL_ASSERT(!lazy::SyncLock::IsHeldHere(),
                          "the user's code is called while a graph is cut");
  }

 private:
  const pybind11::gil_scoped_acquire gil_;
};

}  // namespace torch_xla
