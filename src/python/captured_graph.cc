#include "aten/captured_graph.h"

#include <torch/csrc/utils/pybind.h>

#include "python/bindings.h"

namespace torch_xla {

namespace py = pybind11;

void BindCapturedGraphs(py::module_& m) {
  py::class_<CapturedGraph>(m, "CapturedGraph")
      .def(py::init([](const std::vector<at::Tensor>& arguments) {
        return WithoutGil([&] { return std::make_unique<CapturedGraph>(arguments); });
      }))
      .def_property_readonly("placeholders", &CapturedGraph::placeholders)
      .def("finish",
           [](CapturedGraph& graph, const std::vector<at::Tensor>& outputs) {
             WithoutGil([&] { graph.Finish(outputs); });
           })
      .def("call", [](CapturedGraph& graph, const std::vector<at::Tensor>& arguments) {
        return WithoutGil([&] { return graph.Call(arguments); });
      });
}

}  // namespace torch_xla
