#include "python/interrupt.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/utils/pybind.h>

#include "lazy/interrupt.h"
#include "python/user_code.h"

namespace torch_xla {
namespace {

namespace py = pybind11;

// A wait lies within an operator, below the layers in which torch records for gradients: code that
// is no part of the operator begins above them, as the program does.
c10::impl::LocalDispatchKeySet AboveOperators() {
  c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
  if (c10::InferenceMode::is_enabled()) return keys;
  keys.included_ = keys.included_ | c10::default_included_set;
  keys.excluded_ = keys.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
  return keys;
}

// The interpreter only notes a signal, and handles it between two instructions of the program. What
// a handler raises, KeyboardInterrupt for one, both the binding and torch's operators hand on.
void HandleSignals() {
  if (!Py_IsInitialized() || PyGILState_GetThisThreadState() == nullptr) return;
  const UserCode user_code;
  const c10::impl::ForceDispatchKeyGuard keys(AboveOperators());
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace

void HandleSignalsInWaits() { lazy::SetInterruptCheck(&HandleSignals); }

}  // namespace torch_xla
