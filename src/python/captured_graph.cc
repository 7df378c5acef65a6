#include "aten/captured_graph.h"

#include <torch/csrc/utils/pybind.h>

#include <cstring>

#include "aten/cached_graph.h"
#include "python/bindings.h"
#include "python/user_code.h"

namespace torch_xla {

namespace py = pybind11;

namespace {

py::bytes HashOf(const std::vector<at::Tensor>& tensors) {
  const uint64_t hash = WithoutGil([&] { return GraphHash(tensors, HeedsDonations()); });
  return {reinterpret_cast<const char*>(&hash), sizeof(hash)};
}

std::vector<at::Tensor> RunByHash(const std::string& bytes, const std::vector<at::Tensor>& inputs) {
  uint64_t hash = 0;
  TORCH_CHECK_VALUE(bytes.size() == sizeof(hash), "a hash of _get_graph_hash has ", sizeof(hash),
                    " bytes, not ", bytes.size());
  std::memcpy(&hash, bytes.data(), sizeof(hash));
  return WithoutGil([&] { return RunKeptGraph(hash, inputs); });
}

}  // namespace

void BindCapturedGraphs(py::module_& m) {
  py::class_<CapturedGraph>(m, "CapturedGraph")
      .def(py::init([](const std::vector<at::Tensor>& arguments, const py::function& function) {
        auto call = [&](const std::vector<at::Tensor>& placeholders) {
          const UserCode user_code;
          return function(placeholders).cast<std::vector<at::Tensor>>();
        };
        return WithoutGil([&] { return std::make_unique<CapturedGraph>(arguments, call); });
      }))
      .def("call", [](CapturedGraph& graph, const std::vector<at::Tensor>& arguments) {
        return WithoutGil([&] { return graph.Call(arguments); });
      });
  m.def("_get_graph_hash", &HashOf);
  m.def("_xla_warm_up_cache",
        [](const std::vector<at::Tensor>& tensors, const std::vector<std::string>& /*devices*/) {
          WithoutGil([&] { KeepGraph(tensors, HeedsDonations()); });
        });
  m.def("_run_cached_graph", &RunByHash);
  m.def("_clear_pending_irs", [](const std::string& device) {
    WithoutGil([&] { ForgetPending(DeviceFromString(device)); });
  });
  m.def("_run_captured_graphs_apart", &CapturedGraph::SetRunApart);
}

}  // namespace torch_xla
