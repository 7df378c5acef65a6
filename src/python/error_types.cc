#include "python/error_types.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <string>

#include "aten/tensor.h"

namespace torch_xla {
namespace {

PyObject* out_of_range_type = nullptr;

// torch asks for the type where it raises: where nothing may throw, nor wait for a thread that has
// given the interpreter's lock away.
struct OutOfRange final : torch::PyTorchError {
  using PyTorchError::PyTorchError;
  PyObject* python_type() override { return OutOfRangeType(); }
};

}  // namespace

PyObject* OutOfRangeType() { return out_of_range_type; }

void RaiseOutOfRangeInPython() {
  namespace py = pybind11;
  // Kept for ever, so that the pointer stays good at the end of the interpreter.
  out_of_range_type =
      py::object(py::module_::import("torch_xla._errors").attr("IndexError")).release().ptr();
  SetOutOfRangeThrower([](const std::string& message) { throw OutOfRange(message); });
}

}  // namespace torch_xla
