#include "python/error_types.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <string>

#include "aten/tensor.h"

namespace torch_xla {
namespace {

PyObject* out_of_range_type = nullptr;
PyObject* missing_value_type = nullptr;

// torch asks for the type where it raises: where nothing may throw, nor wait for a thread that has
// given the interpreter's lock away.
template <PyObject** kType>
struct OwnError final : torch::PyTorchError {
  using PyTorchError::PyTorchError;
  PyObject* python_type() override { return *kType; }
};

template <PyObject** kType>
void Throw(const std::string& message) {
  throw OwnError<kType>(message);
}

constexpr ErrorThrowers kThrowers{.out_of_range = &Throw<&out_of_range_type>,
                                  .missing_value = &Throw<&missing_value_type>};

// Kept for ever, so that the pointer stays good at the end of the interpreter.
PyObject* ErrorType(const char* name) {
  namespace py = pybind11;
  return py::object(py::module_::import("torch_xla._errors").attr(name)).release().ptr();
}

}  // namespace

PyObject* OutOfRangeType() { return out_of_range_type; }

PyObject* MissingValueType() { return missing_value_type; }

void RaiseOwnTypesInPython() {
  out_of_range_type = ErrorType("IndexError");
  missing_value_type = ErrorType("MissingValueError");
  SetErrorThrowers(&kThrowers);
}

}  // namespace torch_xla
