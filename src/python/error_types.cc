#include "python/error_types.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <string>

#include "aten/tensor.h"

namespace torch_xla {
namespace {

// torch asks for the type where it raises, with the interpreter's lock.
struct OutOfRange final : torch::PyTorchError {
  using PyTorchError::PyTorchError;
  PyObject* python_type() override { return OutOfRangeType(); }
};

}  // namespace

PyObject* OutOfRangeType() {
  namespace py = pybind11;
  // Kept for ever, so that the pointer stays good at the end of the interpreter.
  static PyObject* const type =
      py::object(py::module_::import("torch_xla._errors").attr("IndexError")).release().ptr();
  return type;
}

void RaiseOutOfRangeInPython() {
  SetOutOfRangeThrower([](const std::string& message) { throw OutOfRange(message); });
}

}  // namespace torch_xla
