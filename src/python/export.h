// Programs for others: exports, and the operations that only they understand.
#pragma once

#include <pybind11/pybind11.h>

namespace torch_xla {

void BindExport(pybind11::module_& m);

}  // namespace torch_xla
