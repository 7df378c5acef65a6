// The Python exceptions of errors that torch has no type for.
#pragma once

#include <Python.h>

namespace torch_xla {

// torch_xla._errors.IndexError, a borrowed reference.
PyObject* OutOfRangeType();

// Imports it, once, and makes operators raise it. The operators themselves know no Python, and
// throw c10::IndexError without this.
void RaiseOutOfRangeInPython();

}  // namespace torch_xla
