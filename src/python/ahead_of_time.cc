// Compiling for devices that are not here.
#include <torch/csrc/utils/pybind.h>

#include <string>
#include <vector>

#include "lazy/ahead_of_time.h"
#include "pjrt/client/plugin.h"
#include "pjrt/client/topology.h"
#include "python/bindings.h"

namespace torch_xla {
namespace {

namespace py = pybind11;

std::vector<std::string> Texts(const std::vector<hlo::Shape>& shapes) {
  std::vector<std::string> texts;
  for (const hlo::Shape& shape : shapes) texts.push_back(shape.ToString());
  return texts;
}

py::dict CompileFor(const std::string& library, const std::string& topology_name,
                    const pjrt::NamedValues& options, const std::string& bytecode) {
  py::dict described;
  auto [platform, kinds, outputs, serialized] = WithoutGil([&] {
    auto topology = pjrt::Topology::Create(pjrt::Plugin::Load(library), topology_name, options);
    auto executable = lazy::CompileAheadOfTime(*topology, bytecode);
    return std::tuple(topology->platform_name(), topology->device_kinds(),
                      Texts(executable->output_shapes()), executable->Serialize());
  });
  described["platform"] = platform;
  described["device_kinds"] = kinds;
  described["outputs"] = outputs;
  described["serialized"] = py::bytes(serialized);
  return described;
}

}  // namespace

void BindAheadOfTime(py::module_& m) {
  m.def("_xla_compile_for", &CompileFor, py::arg("library"), py::arg("topology"),
        py::arg("options"), py::arg("bytecode"));
}

}  // namespace torch_xla
