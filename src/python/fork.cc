#include "python/fork.h"

#include <pybind11/pybind11.h>

#include "lazy/fork.h"
#include "process/fork.h"

namespace torch_xla {

namespace py = pybind11;

void OrderForks() {
  lazy::SetForkWaiter([](void (*wait)()) {
    if (!Py_IsInitialized() || !PyGILState_Check()) return wait();
    py::gil_scoped_release unlocked;
    wait();
  });
  py::module_::import("os").attr("register_at_fork")(
      py::arg("before") = py::cpp_function(&process::PrepareFork),
      py::arg("after_in_parent") = py::cpp_function(&process::EndForkInParent));
}

}  // namespace torch_xla
