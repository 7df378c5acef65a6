#include <ATen/WrapDimUtils.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/utils/pybind.h>

#include <cstring>

#include "aten/dtype.h"
#include "aten/hlo_operations.h"
#include "aten/layout.h"
#include "aten/set_data.h"
#include "aten/storage_face.h"
#include "aten/tensor.h"
#include "hlo/bytecode.h"
#include "hlo/hlo_json_writer.h"
#include "hlo/hlo_text_writer.h"
#include "hlo/text_writer.h"
#include "lazy/data.h"
#include "lazy/device.h"
#include "lazy/graph.h"
#include "lazy/live_data.h"
#include "lazy/location.h"
#include "lazy/programs_of_any_size.h"
#include "lazy/sync.h"
#include "lazy/sync_mutex.h"
#include "python/bindings.h"
#include "python/recorded_at.h"

namespace torch_xla {
namespace {

namespace py = pybind11;

std::vector<lazy::Value> ReadValues(const std::vector<at::Tensor>& tensors) {
  std::vector<lazy::Value> values;
  for (const at::Tensor& tensor : tensors) values.push_back(CheckedImpl(tensor)->Read());
  return values;
}

// What these tensors' pending work looks like to `f`.
template <typename F>
auto WithGraph(const std::vector<at::Tensor>& tensors, F f) {
  py::gil_scoped_release unlocked;  // who has the other lock may wait for the interpreter's
  std::lock_guard lock(lazy::SyncMutex());
  std::vector<lazy::Value> values = ReadValues(tensors);
  lazy::Graph graph = lazy::Graph::ToShow(values);
  return f(graph);
}

// All pending work of a device, for an empty list of tensors.
std::vector<lazy::Value> PendingValues(lazy::Device* device) {
  std::vector<lazy::Value> values;
  for (const auto& storage : lazy::PendingStorages(device)) values.push_back(storage->value());
  return values;
}

py::object StableHlo(const std::vector<at::Tensor>& tensors, const std::string& device,
                     const std::vector<std::string>&, bool emit_bytecode) {
  std::string text;
  {
    py::gil_scoped_release release;
    std::lock_guard lock(lazy::SyncMutex());
    std::vector<lazy::Value> values =
        tensors.empty() ? PendingValues(DeviceFromString(device)) : ReadValues(tensors);
    const lazy::Graph graph = lazy::Graph::ToShow(values);
    const auto module = lazy::LowerForAnySize(graph, "IrToHlo");
    text = emit_bytecode
               ? hlo::WriteBytecode(*module)
               : hlo::WriteStablehloText(*module, {.locations = true, .location_aliases = true});
  }
  if (emit_bytecode) return py::bytes(text);
  return py::str(text);
}

std::string DebugInfo(const at::Tensor& tensor) {
  if (!IsXla(tensor)) return "Not a XLATensor\n";
  py::gil_scoped_release unlocked;
  XlaTensor impl = CheckedImpl(tensor);
  lazy::Value value = impl->Read();
  std::string out = "XLATensor {\nTensorID: " + std::to_string(impl->xla_storage()->id()) +
                    "\nAliasID: " + std::to_string(impl->xla_storage()->id()) +
                    "\nDevice: " + DeviceToString(impl->xla_device()) +
                    "\nXLA Shape: " + value.shape().ToString() + "\nShardingSpec: None";
  bool is_data = value.node->role() == lazy::Node::Role::kData;
  out += "\nIR: " + (is_data ? std::string("None") : value.node->operation()->kind().name);
  out += "\nXLAData: ";
  if (is_data) {
    const auto& data = value.node->data();
    const bool is_given_up = data->may_be_donated() && !data->has_buffer();
    out += "\n  Data Device: " + DeviceToString(impl->xla_device()) +
           "\n  Data Shape: " + value.shape().ToString() +
           "\n  Data Handle: " + (is_given_up ? "Deleted" : std::to_string(data->id()));
  } else {
    out += "None";
  }
  return out + "\nTensor on host: None\n}\n";
}

std::string FramesText(const lazy::CallPath* path) {
  if (path == nullptr) return "";
  std::string text = "Python Frames:\n";
  for (; path != nullptr; path = path->caller) {
    const lazy::SourceLocation& line = *path->location;
    text += "  " + line.function + " (" + line.file + ":" + std::to_string(line.line) + ")\n";
  }
  return text;
}

std::string ReportLine(const std::string& shape, const lazy::Device* device, size_t nodes) {
  return "Tensor: shape=" + shape + ", device=" + DeviceToString(device) +
         ", ir_nodes=" + std::to_string(nodes) + "\n";
}

// The tensors of a device that take more than so many nodes of a graph, with these graphs, and who
// recorded them. Data is one node.
std::string TensorsReport(int64_t nodes_threshold, const std::string& device_name) {
  const lazy::Device* device = DeviceFromString(device_name);
  std::string text;
  py::gil_scoped_release unlocked;  // who has the other lock may wait for the interpreter's
  std::lock_guard lock(lazy::SyncMutex());
  for (const lazy::Value& value : PendingValues(DeviceFromString(device_name))) {
    const lazy::Graph graph = lazy::Graph::ToShow(std::span(&value, 1));
    if (std::ssize(graph.nodes()) <= nodes_threshold) continue;
    text += ReportLine(value.shape().ToString(), device, graph.nodes().size()) +
            FramesText(lazy::CallPathOf(value.node.get())) + graph.ToText() + "\n";
  }
  if (nodes_threshold >= 1) return text;
  for (const lazy::LiveTensors& data : lazy::ListLiveTensors()) {
    if (data.device != device) continue;
    const lazy::CallPath path{data.location};
    const std::string scope =
        data.sections.empty() ? "" : ", scope=" + data.sections.substr(0, data.sections.size() - 1);
    for (int64_t i = 0; i < data.count; ++i) {
      text += ReportLine(data.shape->ToString(), device, 1) +
              FramesText(data.location != nullptr ? &path : nullptr) +
              "IR {\n  %0 = " + data.shape->ToString() + " xla::device_data()" + scope + "\n}\n\n";
    }
  }
  return text;
}

// Names the operation that a tensor is recorded as: `prefix` stands before its name in programs,
// with the `depth` outermost lines that this thread's functions are at. False if it is no xla
// tensor.
bool SetOperationPrefix(const at::Tensor& tensor, const std::string& prefix, int64_t depth) {
  if (!IsXla(tensor)) return false;
  const hlo::SourceFrame* frame = OutermostFrames(depth);
  py::gil_scoped_release unlocked;
  const lazy::Value value = Impl(tensor)->Read();
  if (value.node->role() == lazy::Node::Role::kOperation) {
    lazy::SetOrigin(value.node.get(), prefix, frame);
  }
  return true;
}

at::Tensor HostTensor(const lazy::ScalarPack& pack) {
  at::Tensor tensor = at::empty({pack.count}, ToScalarType(pack.type));
  std::memcpy(tensor.data_ptr(), pack.bytes.data(), pack.bytes.size());
  return tensor;
}

// The program that computes the tensors, and what it takes: its bytecode, its HLO as JSON, the ids
// of its data, the same as tensors, and its numbers, packed, which come after them.
py::tuple LoweredTensors(const std::vector<at::Tensor>& tensors, const std::string& name) {
  std::string bytecode, json;
  std::vector<int64_t> ids;
  std::vector<at::Tensor> leaves, numbers;
  WithGraph(tensors, [&](const lazy::Graph& graph) {
    const auto module = graph.Lower(name);
    bytecode = hlo::WriteBytecode(*module);
    json = hlo::WriteHloJson(*module);
    for (lazy::Node* leaf : graph.data_leaves()) {
      ids.push_back(leaf->data()->id());
      leaves.push_back(MakeTensor(leaf->data()->device(), {lazy::Reference<lazy::Node>(leaf), 0}));
    }
    for (const auto& pack : graph.scalar_packs()) numbers.push_back(HostTensor(pack));
  });
  return py::make_tuple(py::bytes(bytecode), json, ids, leaves, numbers);
}

// Makes exports of what takes the tensor take any size of its dimension.
void MarkDynamic(const at::Tensor& tensor, int64_t dimension) {
  const XlaTensor impl = CheckedImpl(tensor);
  TORCH_CHECK(!impl->view(), "a dimension of a view cannot be marked as dynamic: mark it of ",
              "the tensor itself, or export the model by torch.export with dynamic_shapes");
  const int64_t place = at::maybe_wrap_dim(dimension, tensor.dim());
  py::gil_scoped_release unlocked;
  lazy::OpenSize(*lazy::Materialized(impl->xla_storage()), place);
}

void OptimizationBarrier(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return;
  py::gil_scoped_release unlocked;
  std::vector<at::Tensor> results = RecordBarrier(tensors);
  for (size_t i = 0; i < tensors.size(); ++i) WriteInto(tensors[i], results[i]);
}

}  // namespace

void BindTensors(py::module_& m) {
  m.def("_xla_get_tensor_id",
        [](const at::Tensor& tensor) { return CheckedImpl(tensor)->xla_storage()->id(); });
  m.def("_xla_can_set_data", [](const at::Tensor& variable, const at::Tensor& data) {
    return CanSetData(variable, data);
  });
  m.def("_xla_data_ptr", [](const at::Tensor& tensor) {
    XlaTensor impl = CheckedImpl(tensor);
    TORCH_CHECK(!IsTracedOnly(tensor), "A tensor that is traced with has no address.");
    if (tensor.numel() == 0) return uint64_t{0};
    return AddressOf(*impl->xla_storage()) + tensor.storage_offset() * tensor.element_size();
  });
  m.def("_xla_storage_data_ptr", [](uintptr_t cdata) {
    auto storage = StorageOf(reinterpret_cast<const c10::StorageImpl*>(cdata));  // NOLINT
    return storage ? AddressOf(*storage) : uint64_t{0};
  });
  m.def("_xla_storage_contents", [](uintptr_t cdata) {
    auto storage = StorageOf(reinterpret_cast<const c10::StorageImpl*>(cdata));  // NOLINT
    if (!storage) return at::empty({0}, at::kByte);
    return WithoutGil(
        [&] { return DownloadTensor(at::detail::make_tensor<XlaTensorImpl>(std::move(storage))); });
  });
  m.def("_xla_get_cpu_tensors", [](const std::vector<at::Tensor>& tensors) {
    return WithoutGil([&] { return DownloadTensors(tensors); });
  });
  m.def("_xla_tensors_from_aten",
        [](const std::vector<at::Tensor>& tensors, const std::vector<std::string>& devices) {
          TORCH_CHECK(devices.size() == tensors.size() || devices.size() == 1,
                      "one device for each tensor, or one for all");
          return WithoutGil([&] {
            std::vector<at::Tensor> out;
            for (size_t i = 0; i < tensors.size(); ++i) {
              lazy::Device* device = DeviceFromString(devices[devices.size() == 1 ? 0 : i]);
              out.push_back(MakeTensor(device, UploadTensor(device, tensors[i])));
              LayOut(out.back(), StridesLike(tensors[i], std::nullopt));
            }
            return out;
          });
        });
  m.def("_xla_optimization_barrier_", &OptimizationBarrier);
  m.def("_replace_xla_tensor", [](const at::Tensor& tensor, const at::Tensor& source) {
    py::gil_scoped_release unlocked;  // the device may have something to say about what goes
    CheckedImpl(tensor)->ShareStorage(*CheckedImpl(source));
  });
  m.def("_get_xla_tensors_text", [](const std::vector<at::Tensor>& tensors) {
    return WithGraph(tensors, [](const lazy::Graph& graph) { return graph.ToText(); });
  });
  m.def("_get_xla_tensors_dot", [](const std::vector<at::Tensor>& tensors) {
    return WithGraph(tensors, [](const lazy::Graph& graph) { return graph.ToDot(); });
  });
  m.def("_get_xla_tensors_hlo", [](const std::vector<at::Tensor>& tensors) {
    return WithGraph(tensors, [](const lazy::Graph& graph) {
      return hlo::WriteHloText(*graph.Lower("IrToHlo"));
    });
  });
  m.def("_xla_tensors_report", &TensorsReport, py::arg("nodes_threshold"), py::arg("device"));
  m.def("_set_xla_custom_op_name_prefix", &SetOperationPrefix, py::arg("tensor"), py::arg("prefix"),
        py::arg("max_call_stack_depth"));
  m.def("_get_stablehlo", &StableHlo);
  m.def("_xla_mark_dynamic", &MarkDynamic);
  m.def("_lowered_tensors", &LoweredTensors);
  m.def("_get_xla_tensor_debug_info", &DebugInfo);
}

}  // namespace torch_xla
