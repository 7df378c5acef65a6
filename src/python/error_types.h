// The Python exceptions of errors that torch has no type for.
#pragma once

#include <Python.h>

namespace torch_xla {

// torch_xla._errors.IndexError and MissingValueError, borrowed references.
PyObject* OutOfRangeType();
PyObject* MissingValueType();

// Imports them, once, and makes operators raise them. The operators themselves know no Python, and
// throw c10::IndexError and c10::Error without this.
void RaiseOwnTypesInPython();

}  // namespace torch_xla
