// The memory behind tensors: which have some, what it is called, and who may take it over.
#include <ATen/WrapDimUtils.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>

#include "aten/hlo_operations.h"
#include "aten/placeholder.h"
#include "aten/tensor.h"
#include "lazy/data.h"
#include "lazy/graph.h"
#include "lazy/metrics.h"
#include "lazy/sync.h"
#include "lazy/sync_mutex.h"
#include "pjrt/client/wait.h"
#include "python/bindings.h"
#include "python/xla_builder.h"

namespace torch_xla {
namespace {

namespace py = pybind11;

// The data that a tensor's value is; null for recorded work.
lazy::Reference<lazy::Data> DataOf(const at::Tensor& tensor) {
  const lazy::Value value = ReadValue(tensor);
  if (value.node->role() != lazy::Node::Role::kData) return {};
  return value.node->data();
}

at::Tensor PlaceholderTensor(const UserShape& shape) {
  TORCH_CHECK_VALUE(!shape.is_tuple, "a placeholder is an array, not the tuple ", shape.ToString());
  lazy::Device* device = DeviceFromString("");
  const lazy::SharedShape interned = lazy::InternShape(shape.array);
  return MakeTensor(device, PlaceholderValue(device, interned.get()));
}

int64_t HandleOf(const at::Tensor& tensor) {
  const lazy::Reference<lazy::Data> data = DataOf(tensor);
  TORCH_CHECK(data, "a tensor of shape ", tensor.sizes(),
              " is recorded work and has no buffer yet; call torch_xla.sync() first");
  TORCH_CHECK(data->has_buffer() || !data->may_be_donated(), "the buffer of a tensor of shape ",
              tensor.sizes(), " is deleted: it was donated to a computation");
  return data->id();
}

bool SetDonation(const at::Tensor& tensor, bool wish) {
  static auto* counter = lazy::Counter("XlaSetBufferDonation");
  const lazy::Reference<lazy::Data> data = DataOf(tensor);
  if (!data) return false;
  lazy::Count(counter);
  if (!data->has_buffer()) return false;
  data->set_may_be_donated(wish);
  return true;
}

// The leaves of the tensors' recorded work, as ids and tensors: of `inputs` where they are such.
std::pair<std::vector<int64_t>, std::vector<at::Tensor>> DataLeaves(
    const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& inputs) {
  std::lock_guard lock(lazy::SyncMutex());
  std::vector<lazy::Value> values;
  for (const at::Tensor& tensor : tensors) values.push_back(ReadValue(tensor));
  const lazy::Graph graph = lazy::Graph::ToShow(values);
  std::vector<int64_t> ids;
  std::vector<at::Tensor> leaves;
  for (lazy::Node* leaf : graph.data_leaves()) {
    const auto input = std::find_if(inputs.begin(), inputs.end(), [&](const at::Tensor& t) {
      return IsXla(t) && ReadValue(t).node.get() == leaf;
    });
    leaves.push_back(input != inputs.end() ? *input
                                           : MakeTensor(leaf->data()->device(),
                                                        {lazy::Reference<lazy::Node>(leaf), 0}));
    ids.push_back(leaf->data()->holder());
  }
  return {ids, leaves};
}

// Calls `callback` on a thread of the runtime when the tensor's storage is computed. What is
// recorded for it is started.
void OnReady(const at::Tensor& tensor, const py::function& callback) {
  const lazy::Reference<lazy::Storage> storage = CheckedImpl(tensor)->xla_storage();
  const lazy::Reference<lazy::Data> data = WithoutGil([&] { return lazy::Materialized(storage); });
  auto* kept = new py::function(callback);
  const auto call = [kept](const hlo::Error*) {
    if (!Py_IsInitialized()) return;
    const py::gil_scoped_acquire gil;
    try {
      (*kept)();
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("a callback of torch_xla.experimental.callback");
    }
    delete kept;
  };
  WithoutGil([&] { pjrt::OnReadyOrWait(data->SharedBuffer()->ReadyEvent(), call); });
}

// `position` is "first" or "second".
void CheckDotOperand(const at::Tensor& tensor, const char* position) {
  TORCH_CHECK(IsXla(tensor), "Expected input tensor (", position,
              " argument) to be an actual XLA tensor. Got: ", tensor.toString(),
              ". Consider moving it (", position, " argument) to XLA.");
}

// With those that count from the last dimension counted from the first.
std::vector<int64_t> FromTheFirst(const at::Tensor& operand, std::vector<int64_t> dimensions) {
  for (int64_t& dimension : dimensions) dimension = at::maybe_wrap_dim(dimension, operand.dim());
  return dimensions;
}

// `dimensions` is ((lhs contracting, rhs contracting), (lhs batching, rhs batching)), the second
// pair possibly empty.
at::Tensor DotGeneral(const at::Tensor& lhs, const at::Tensor& rhs,
                      const std::vector<std::vector<std::vector<int64_t>>>& dimensions,
                      const py::object&, std::optional<at::ScalarType> type) {
  TORCH_CHECK_VALUE(!dimensions.empty() && dimensions[0].size() == 2,
                    "dimension_numbers are ((lhs contracting, rhs contracting), "
                    "(lhs batching, rhs batching))");
  CheckDotOperand(lhs, "first");
  CheckDotOperand(rhs, "second");
  DotDimensions places{.lhs_contracting = FromTheFirst(lhs, dimensions[0][0]),
                       .rhs_contracting = FromTheFirst(rhs, dimensions[0][1])};
  if (dimensions.size() > 1 && dimensions[1].size() == 2) {
    places.lhs_batching = FromTheFirst(lhs, dimensions[1][0]);
    places.rhs_batching = FromTheFirst(rhs, dimensions[1][1]);
  }
  return WithoutGil([&] { return RecordDotGeneral(lhs, rhs, places, type); });
}

}  // namespace

void BindBuffers(py::module_& m) {
  m.def("_xla_create_placeholder_tensor", [](const py::object& shape) {
    const UserShape array = ShapeFromPython(shape);
    return WithoutGil([&] { return PlaceholderTensor(array); });
  });
  m.def("_is_placecholder", [](const at::Tensor& tensor) {
    const lazy::Reference<lazy::Data> data = DataOf(tensor);
    return data && !data->has_buffer();
  });
  m.def("_get_tensors_handle", [](const std::vector<at::Tensor>& tensors) {
    std::vector<int64_t> handles;
    for (const at::Tensor& tensor : tensors) handles.push_back(HandleOf(tensor));
    return handles;
  });
  m.def("_unsafe_buffer_pointer", [](const at::Tensor& tensor) {
    const lazy::Reference<lazy::Data> data = DataOf(tensor);
    TORCH_CHECK(data, "a tensor of shape ", tensor.sizes(),
                " is recorded work and has no buffer yet; call torch_xla.sync() first");
    return WithoutGil([&] { return data->Address(); });
  });
  m.def("_check_tensor_need_materialization", [](const std::vector<at::Tensor>& tensors) {
    std::vector<bool> needs;
    for (const at::Tensor& tensor : tensors) needs.push_back(IsXla(tensor) && !DataOf(tensor));
    return needs;
  });
  m.def("_set_buffer_donation", &SetDonation);
  m.def("_get_buffer_donation", [](const at::Tensor& tensor) {
    const lazy::Reference<lazy::Data> data = DataOf(tensor);
    return data && data->may_be_donated();
  });
  m.def(
      "_get_tensors_xla_device_data_node",
      [](const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& inputs) {
        return WithoutGil([&] { return DataLeaves(tensors, inputs); });
      },
      py::arg("tensors"), py::arg("input_tensors") = std::vector<at::Tensor>());
  m.def("_on_ready_callback", &OnReady);
  m.def("_xla_dot_general", &DotGeneral, py::arg("lhs"), py::arg("rhs"), py::arg("dim_numbers"),
        py::arg("precision_config") = py::none(), py::arg("preferred_element_type") = py::none());
}

}  // namespace torch_xla
