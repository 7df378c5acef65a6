#include "aten/captured_graph.h"

#include <torch/csrc/utils/pybind.h>

#include "python/bindings.h"

namespace torch_xla {

namespace py = pybind11;

void BindCapturedGraphs(py::module_& m) {
  py::class_<CapturedGraph>(m, "CapturedGraph")
      .def(py::init([](const std::vector<at::Tensor>& arguments, const py::function& function) {
        auto call = [&](const std::vector<at::Tensor>& placeholders) {
          const py::gil_scoped_acquire gil;
          return function(placeholders).cast<std::vector<at::Tensor>>();
        };
        return WithoutGil([&] { return std::make_unique<CapturedGraph>(arguments, call); });
      }))
      .def("call", [](CapturedGraph& graph, const std::vector<at::Tensor>& arguments) {
        return WithoutGil([&] { return graph.Call(arguments); });
      });
  m.def("_run_captured_graphs_apart", &CapturedGraph::SetRunApart);
}

}  // namespace torch_xla
