// The other processes: how the runtime joins them, and operations between them.
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aten/collective.h"
#include "hlo/error.h"
#include "lazy/collective.h"
#include "lazy/device.h"
#include "lazy/job_secret.h"
#include "python/bindings.h"
#include "python/user_line.h"

namespace torch_xla {
namespace {

namespace py = pybind11;
using Store = c10::intrusive_ptr<c10d::Store>;

std::string ToText(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// What is there under a key; a store that knows the job's secret refuses what strangers have set.
std::string StoredValue(const Store& store, const std::string& name) {
  try {
    return ToText(store->get(name));
  } catch (const std::exception& error) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "the value of '" + name + "' cannot be taken: " + error.what());
  }
}

// torch's store as plugins see it. It is called from the plugin's threads, and by the thread that
// starts the runtime, none of which holds the interpreter's lock.
pjrt::KeyValueStore Wrap(const Store& store) {
  pjrt::KeyValueStore wrapped;
  wrapped.get = [store](std::string_view key, std::chrono::milliseconds timeout) {
    const std::string name(key);
    try {
      store->wait({name}, timeout);
    } catch (const std::exception& error) {
      throw hlo::Error(hlo::ErrorCode::kDeadlineExceeded,
                       "no other process has given '" + name + "' within " +
                           std::to_string(timeout.count()) + " ms: " + error.what());
    }
    return StoredValue(store, name);
  };
  wrapped.try_get = [store](std::string_view key) -> std::optional<std::string> {
    const std::string name(key);
    if (!store->check({name})) return std::nullopt;
    return StoredValue(store, name);
  };
  wrapped.put = [store](std::string_view key, std::string_view value) {
    store->set(std::string(key), std::vector<uint8_t>(value.begin(), value.end()));
  };
  return wrapped;
}

// `provider` returns None for a process that is alone, or (rank, size, store, the job's secret or
// None).
void SetWorldProvider(py::object provider) {
  // Kept for ever: the runtime may start while the interpreter shuts down.
  auto* kept = new py::object(std::move(provider));
  auto ask = [kept] {
    py::gil_scoped_acquire gil;
    lazy::World world;
    py::object given = (*kept)();
    if (given.is_none()) return world;
    auto [rank, size, store, secret] =
        py::cast<std::tuple<int64_t, int64_t, Store, std::optional<py::bytes>>>(given);
    world.rank = rank;
    world.size = size;
    world.store = Wrap(store);
    lazy::SetJobSecret(secret ? std::string(*secret) : "");
    return world;
  };
  WithoutGil([&] { lazy::Runtime::SetWorldProvider(ask); });
}

// What the plugin says of each device, those of other processes included, by rank.
py::list GlobalDeviceAttributes() {
  auto* client = WithoutGil([] { return &lazy::Runtime::Get().client(); });
  std::vector<pjrt::Device*> devices = client->devices();
  std::sort(devices.begin(), devices.end(), [](const pjrt::Device* a, const pjrt::Device* b) {
    return std::pair(a->process_index(), a->id()) < std::pair(b->process_index(), b->id());
  });
  py::list out;
  for (const pjrt::Device* device : devices) {
    py::dict attributes;
    attributes["name"] = lazy::Runtime::DeviceType() + ":" + std::to_string(device->id());
    attributes["process_index"] = device->process_index();
    for (const auto& [key, value] : device->attributes()) {
      std::visit([&, &k = key](const auto& v) { attributes[py::str(k)] = py::cast(v); }, value);
    }
    out.append(attributes);
  }
  return out;
}

using Tensors = std::vector<at::Tensor>;

// Notes the user's line, and lets the interpreter go meanwhile.
template <typename Result, typename... Arguments>
auto Recording(Result (*function)(Arguments...)) {
  return [function](Arguments... arguments) -> Result {
    lazy::SourceScope scope(UserLine());
    py::gil_scoped_release unlocked;
    return function(arguments...);
  };
}

void BindCollectives(py::module_& m) {
  m.def("_xla_all_reduce", Recording(&AllReduce), py::arg("tensors"), py::arg("reduce_type"),
        py::arg("scale"), py::arg("groups"));
  m.def("_xla_all_reduce_", Recording(&AllReduceInPlace), py::arg("tensors"),
        py::arg("reduce_type"), py::arg("scale"), py::arg("groups"));
  m.def("_xla_all_gather", Recording(&AllGather), py::arg("tensors"), py::arg("dim"),
        py::arg("groups"));
  m.def("_xla_reduce_scatter", Recording(&ReduceScatter), py::arg("tensor"), py::arg("reduce_type"),
        py::arg("scale"), py::arg("dim"), py::arg("groups"));
  m.def("_xla_all_to_all", Recording(&AllToAll), py::arg("tensor"), py::arg("split_dim"),
        py::arg("concat_dim"), py::arg("split_count"), py::arg("groups"));
  m.def("_xla_collective_permute", Recording(&CollectivePermute), py::arg("tensor"),
        py::arg("pairs"));
  m.def("_xla_collective_broadcast", Recording(&CollectiveBroadcast), py::arg("tensor"),
        py::arg("groups"));
}

}  // namespace

void BindWorld(py::module_& m) {
  m.def("_set_world_provider", &SetWorldProvider);
  m.def("_leave_runtime", [] { WithoutGil([] { lazy::Runtime::Leave(); }); });
  m.def("_xla_global_device_attributes", &GlobalDeviceAttributes);
  m.def(
      "_xla_has_pending_collectives",
      [] {
        if (!lazy::Runtime::IsStarted()) return false;
        for (const auto& device : lazy::Runtime::Get().devices()) {
          std::lock_guard lock(device->pending_mutex);
          if (!device->pending_collectives.empty()) return true;
        }
        return false;
      },
      py::call_guard<py::gil_scoped_release>());
  BindCollectives(m);
}

}  // namespace torch_xla
