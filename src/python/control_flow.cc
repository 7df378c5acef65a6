#include "aten/control_flow.h"

#include <torch/csrc/utils/pybind.h>

#include "python/bindings.h"
#include "python/user_code.h"

namespace torch_xla {

namespace py = pybind11;

namespace {

using Tensors = std::vector<at::Tensor>;

std::unique_ptr<CapturedFunction> Capture(const c10::Device& device, const Tensors& like,
                                          const py::function& function) {
  auto call = [&](const Tensors& placeholders) {
    const UserCode user_code;
    return function(placeholders).cast<Tensors>();
  };
  return WithoutGil([&] { return std::make_unique<CapturedFunction>(device, like, call); });
}

}  // namespace

void BindControlFlow(py::module_& m) {
  py::class_<CapturedFunction>(m, "CapturedFunction")
      .def(py::init(&Capture))
      .def("does_the_same", &CapturedFunction::DoesTheSame)
      .def_property_readonly("keeps_data", &CapturedFunction::KeepsData);
  m.def("_xla_scan", [](const CapturedFunction& body, const Tensors& carries, const Tensors& xs,
                        const Tensors& invariants, int64_t length, bool reverse) {
    return WithoutGil([&] { return Scan(body, carries, xs, invariants, length, reverse); });
  });
  m.def("_xla_while", [](const CapturedFunction& condition, const CapturedFunction& body,
                         const Tensors& carries, const Tensors& invariants) {
    return WithoutGil([&] { return WhileLoop(condition, body, carries, invariants); });
  });
  m.def("_xla_branch", [](const at::Tensor& predicate, const CapturedFunction& on_true,
                          const CapturedFunction& on_false, const Tensors& operands) {
    return WithoutGil([&] { return Branch(predicate, on_true, on_false, operands); });
  });
}

}  // namespace torch_xla
