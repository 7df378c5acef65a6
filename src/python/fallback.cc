#include "aten/fallback.h"

#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include "lazy/metrics.h"
#include "python/bindings.h"

namespace torch_xla {
namespace {

namespace py = pybind11;

// Never destroyed: an operator may run while the interpreter shuts down.
py::object& Decomposition() {
  static auto* function = new py::object;
  return *function;
}

// The Python function receives the operator's qualified name and overload and its arguments as
// keywords; it returns the results, or NotImplemented.
bool Decompose(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  py::gil_scoped_acquire gil;
  if (!Decomposition()) return false;
  const auto& schema = op.schema();
  size_t count = schema.arguments().size();
  py::dict arguments;
  for (size_t i = 0; i < count; ++i) {
    c10::IValue value = (*stack)[stack->size() - count + i];
    arguments[py::str(schema.arguments()[i].name())] = torch::jit::toPyObject(std::move(value));
  }
  py::object result = Decomposition()(schema.name(), schema.overload_name(), arguments);
  if (result.is(py::handle(Py_NotImplemented))) return false;
  torch::jit::drop(*stack, count);
  if (schema.returns().size() == 1) {
    stack->push_back(torch::jit::toIValue(result, schema.returns()[0].type()));
    return true;
  }
  auto results = py::cast<py::sequence>(result);
  for (size_t i = 0; i < schema.returns().size(); ++i) {
    stack->push_back(torch::jit::toIValue(results[i], schema.returns()[i].type()));
  }
  return true;
}

}  // namespace

void BindFallback(py::module_& m) {
  m.def("_set_decomposition", [](py::object function) {
    Decomposition() = std::move(function);
    SetDecomposer(&Decompose);
  });
  m.def("_set_fallback_observer", [](py::object observer) {
    if (observer.is_none()) {
      SetFallbackObserver(nullptr);
      return;
    }
    // Kept for ever, as the decomposition.
    auto* kept = new py::object(std::move(observer));
    SetFallbackObserver([kept](const std::string& name) {
      py::gil_scoped_acquire gil;
      (*kept)(name);
    });
  });
  m.def("_get_executed_fallback_ops", [] {
    std::vector<std::string> names;
    for (const std::string& name : lazy::CounterNames()) {
      bool is_lazy = name.rfind("xla::", 0) == 0 || name.find("::") == std::string::npos;
      if (!is_lazy) names.push_back(name);
    }
    return names;
  });
}

}  // namespace torch_xla
