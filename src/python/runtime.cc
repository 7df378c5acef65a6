#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "aten/captured_graph.h"
#include "aten/generator.h"
#include "aten/host_tensor.h"
#include "aten/runtime_hooks.h"
#include "aten/tensor.h"
#include "lazy/background_compile.h"
#include "lazy/cut_reason.h"
#include "lazy/data.h"
#include "lazy/device.h"
#include "lazy/eager.h"
#include "lazy/interpreter.h"
#include "lazy/location.h"
#include "lazy/metrics.h"
#include "lazy/ordinal.h"
#include "lazy/persistent_cache.h"
#include "lazy/program_cache.h"
#include "lazy/run_queue.h"
#include "lazy/settings.h"
#include "lazy/sync.h"
#include "lazy/sync_mutex.h"
#include "lazy/warning.h"
#include "process/fork.h"
#include "process/limits.h"
#include "python/bindings.h"
#include "python/error_types.h"
#include "python/fork.h"
#include "python/interrupt.h"

namespace torch_xla {
namespace {

namespace py = pybind11;

class PjRtPlugin {
 public:
  virtual ~PjRtPlugin() = default;
  virtual std::string library_path() {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "a plugin must override library_path()");
  }
  virtual std::map<std::string, pjrt::NamedValue> client_create_options() { return {}; }
  virtual bool requires_xla_coordinator() { return false; }
  virtual bool starts_server() { return false; }
};

class PyPjRtPlugin : public PjRtPlugin {
 public:
  std::string library_path() override { PYBIND11_OVERRIDE(std::string, PjRtPlugin, library_path); }
  std::map<std::string, pjrt::NamedValue> client_create_options() override {
    py::gil_scoped_acquire gil;
    py::function override =
        py::get_override(static_cast<PjRtPlugin*>(this), "client_create_options");
    std::map<std::string, pjrt::NamedValue> options;
    if (!override) return options;
    for (auto [key, value] : py::cast<py::dict>(override())) {
      options[py::cast<std::string>(key)] = ToNamedValue(value);
    }
    return options;
  }
  bool requires_xla_coordinator() override {
    PYBIND11_OVERRIDE(bool, PjRtPlugin, requires_xla_coordinator);
  }
  bool starts_server() override { PYBIND11_OVERRIDE(bool, PjRtPlugin, starts_server); }

 private:
  static pjrt::NamedValue ToNamedValue(py::handle value) {
    if (py::isinstance<py::bool_>(value)) return py::cast<bool>(value);
    if (py::isinstance<py::int_>(value)) return py::cast<int64_t>(value);
    if (py::isinstance<py::float_>(value)) return py::cast<float>(value);
    if (py::isinstance<py::str>(value)) return py::cast<std::string>(value);
    return py::cast<std::vector<int64_t>>(value);
  }
};

void RegisterPlugin(const std::string& name, std::shared_ptr<PjRtPlugin> plugin) {
  lazy::Runtime::RegisterPlugin(name, [plugin] {
    py::gil_scoped_acquire gil;
    lazy::RuntimeOptions options;
    options.plugin_path = plugin->library_path();
    options.create_options = plugin->client_create_options();
    options.starts_server = plugin->starts_server();
    return options;
  });
}

std::string RealName(const lazy::Device* device) {
  return lazy::Runtime::DeviceType() + ":" + std::to_string(device->pjrt_device().id());
}

std::vector<lazy::Device*> Devices(const std::vector<std::string>& names) {
  std::vector<lazy::Device*> devices;
  if (names.empty()) {
    for (const auto& device : lazy::Runtime::Get().devices()) devices.push_back(device.get());
  }
  for (const std::string& name : names) devices.push_back(DeviceFromString(name));
  return devices;
}

py::dict Attributes(const std::string& name) {
  lazy::Device* device = WithoutGil([&] { return DeviceFromString(name); });
  py::dict out;
  for (const auto& [key, value] : device->pjrt_device().attributes()) {
    std::visit([&, &k = key](const auto& v) { out[py::str(k)] = py::cast(v); }, value);
  }
  out["name"] = RealName(device);
  return out;
}

py::dict MemoryInfo(const std::string& name) {
  const pjrt::MemoryStats stats = WithoutGil([&] {
    try {
      return DeviceFromString(name)->pjrt_device().memory_stats();
    } catch (const hlo::Error& error) {
      if (error.code() != hlo::ErrorCode::kUnimplemented) throw;
      return pjrt::MemoryStats();
    }
  });
  py::dict out;
  // What small results take lies beside it. The two peaks need not have been at one time.
  const int64_t used = stats.bytes_in_use + ResultBytes::Total();
  out["bytes_used"] = used;
  out["bytes_limit"] = stats.bytes_limit.value_or(0);
  const int64_t peak = stats.peak_bytes_in_use.value_or(stats.bytes_in_use);
  out["peak_bytes_used"] = peak + ResultBytes::Most();
  return out;
}

void ClearMemoryStatistics(const std::string& name) {
  WithoutGil([&] {
    const pjrt::Device& device = DeviceFromString(name)->pjrt_device();
    device.ClearMemoryStats();
    ResultBytes::ForgetMost();
  });
}

// Events and streams wait for a device; torch calls some of them with the interpreter's lock.
void SynchronizeWithoutGil(lazy::Device* device) {
  if (PyGILState_Check() == 0) return Synchronize(device);
  WithoutGil([&] { Synchronize(device); });
}

// Sections of the program are parts of a step.
void CheckNoSection() {
  const lazy::Sections sections = lazy::CurrentSections();
  if (sections == nullptr) return;
  TORCH_CHECK(false, "Expecting scope to be empty but it is ",
              sections->substr(0, sections->size() - 1),
              ": end the step after the profiler's Trace, or say sync(reset_scope=False)");
}

void StepMarker(const std::string& device, const std::vector<std::string>& devices, bool wait,
                bool reset_scope, const std::string& cause) {
  static auto* steps = lazy::Counter("MarkStep");
  if (reset_scope) CheckNoSection();
  const lazy::CutScope scope(lazy::CutReason::Kind::kCaller, cause);
  // Nothing is pending before there is a runtime.
  if (!lazy::Runtime::IsStarted()) return;
  WithoutGil([&] {
    std::vector<lazy::Device*> targets{DeviceFromString(device)};
    if (!devices.empty()) targets = Devices(devices);
    for (lazy::Device* target : targets) lazy::Sync(target, wait);
  });
  lazy::Count(steps);
}

void SetSeed(uint64_t seed, const std::string& device) {
  if (device.empty()) {
    SeedDefaultGenerators(seed);
    return;
  }
  DefaultGenerator(c10::Device(device).has_index() ? c10::Device(device).index() : CurrentDevice())
      .set_current_seed(seed);
}

// One number that names the stream and the place in it, so that setting it brings both back.
uint64_t GetSeed(const std::string& device) {
  int ordinal = CurrentDevice();
  if (!device.empty() && c10::Device(device).has_index()) ordinal = c10::Device(device).index();
  return DefaultGenerator(ordinal).get<XlaGeneratorImpl>()->state();
}

using OptionValue = std::variant<bool, int64_t, double, std::string>;

void SetCompileOptions(const std::map<std::string, OptionValue>& options) {
  std::map<std::string, std::variant<std::string, bool, int64_t, double>> converted;
  for (const auto& [name, value] : options) {
    std::visit([&, &n = name](const auto& v) { converted[n] = v; }, value);
  }
  lazy::SetCustomCompileOptions(std::move(converted));
}

// Starts the runtime. What its first call has found wrong it says again, as PyTorch/XLA's does;
// whatever else starts the runtime looks at the environment as it is by then.
void InitComputationClient() {
  static auto* mutex = new process::Mutex;
  static auto* first_error = new std::exception_ptr;
  if (lazy::Runtime::IsStarted()) return;
  {
    std::lock_guard lock(*mutex);
    if (*first_error) std::rethrow_exception(*first_error);
  }
  try {
    lazy::Runtime::Get();
  } catch (...) {
    std::lock_guard lock(*mutex);
    *first_error = std::current_exception();
    throw;
  }
}

void BindDevices(py::module_& m) {
  SetSynchronizer(&SynchronizeWithoutGil);
  m.def("_init_computation_client", [] { WithoutGil(&InitComputationClient); });
  m.def("_usable_cpus", &process::UsableCpus);
  m.def("_xla_runtime_is_initialized", [] { return lazy::Runtime::IsStarted(); });
  m.def("_prepare_to_exit", [] {
    WithoutGil([] {
      lazy::BackgroundCompiler::Get().Close();
      lazy::FinishWork();
      lazy::WarnOfFailures();
    });
  });
  m.def("_xla_get_devices", [] {
    std::vector<std::string> names;
    for (const auto* device : WithoutGil([] { return Devices({}); })) {
      names.push_back(DeviceToString(device));
    }
    return names;
  });
  m.def("_xla_num_devices", [] { return WithoutGil([] { return DeviceCount(); }); });
  m.def("_xla_ordinal_count", [] { return lazy::OrdinalCount(); });
  m.def(
      "_xla_real_devices",
      [](const std::vector<std::string>& names) {
        std::vector<std::string> out;
        for (const auto* device : WithoutGil([&] { return Devices(names); })) {
          out.push_back(RealName(device));
        }
        return out;
      },
      py::arg("devices") = std::vector<std::string>());
  m.def(
      "_xla_device_kind",
      [](const std::string& device) {
        return WithoutGil([&] { return DeviceFromString(device)->pjrt_device().kind(); });
      },
      py::arg("device") = "");
  m.def("_xla_device_attributes", &Attributes);
  m.def("_xla_memory_info", &MemoryInfo);
  m.def("_xla_clear_memory_statistics", &ClearMemoryStatistics);
  m.def("_xla_get_default_device", [] { return "xla:" + std::to_string(CurrentDevice()); });
  m.def("_xla_get_default_device_ordinal", [] { return CurrentDevice(); });
  m.def("_xla_set_default_device", [](const std::string& name) {
    std::string old = "xla:" + std::to_string(CurrentDevice());
    SetCurrentDevice(WithoutGil([&] { return DeviceFromString(name)->ordinal(); }));
    return old;
  });
}

std::atomic<bool> heeds_donations{false};

// What is recorded already is started first: operations of eager mode take data.
void ChangeExecution(lazy::Execution execution) {
  if (execution == lazy::CurrentExecution()) return;
  const lazy::CutScope scope(lazy::CutReason::Kind::kCaller, "torch_xla changing to eager mode");
  WithoutGil([&] {
    if (execution != lazy::Execution::kAtSync && lazy::Runtime::IsStarted()) {
      for (const auto& device : lazy::Runtime::Get().devices()) lazy::Sync(device.get());
    }
    lazy::SetExecution(execution);
  });
}

lazy::Donating WishesOrNothing() {
  return heeds_donations ? lazy::Donating::kWishes : lazy::Donating::kNothing;
}

// In the order of the tensors.
std::vector<lazy::Device*> DevicesOf(const std::vector<at::Tensor>& tensors) {
  std::vector<lazy::Device*> devices;
  for (const at::Tensor& tensor : tensors) {
    if (!IsXla(tensor)) continue;
    lazy::Device* device = Impl(tensor)->xla_device();
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      devices.push_back(device);
    }
  }
  return devices;
}

// What these tensors need, and no other recorded work.
void SyncTensors(const std::vector<at::Tensor>& tensors, const std::vector<std::string>&, bool wait,
                 bool sync_xla_data) {
  const lazy::Donating donating = sync_xla_data ? lazy::Donating::kAll : WishesOrNothing();
  const lazy::CutScope scope(lazy::CutReason::Kind::kCaller, "torch_xla syncing tensors");
  WithoutGil([&] {
    std::vector<lazy::Reference<lazy::Storage>> storages;
    for (const at::Tensor& tensor : tensors) {
      if (IsXla(tensor)) storages.push_back(Impl(tensor)->xla_storage());
    }
    for (lazy::Device* device : DevicesOf(tensors)) {
      lazy::SyncOnly(device, storages, wait, donating);
    }
  });
}

// For tensors that are about to be saved: what is pending beside them is computed with them, as it
// would compute again what it has in common with them.
void SyncDevicesOf(const std::vector<at::Tensor>& tensors, bool wait) {
  const lazy::CutScope scope(lazy::CutReason::Kind::kCaller, "torch_xla saving tensors");
  WithoutGil([&] {
    for (lazy::Device* device : DevicesOf(tensors)) lazy::Sync(device, wait, WishesOrNothing());
  });
}

void BindSteps(py::module_& m) {
  m.def("_xla_set_enable_alias_with_buffer_donor_config",
        [](bool enabled) { heeds_donations = enabled; });
  m.def("_xla_get_enable_alias_with_buffer_donor_config", &HeedsDonations);
  m.def("_xla_step_marker", &StepMarker, py::arg("device") = "",
        py::arg("devices") = std::vector<std::string>(), py::arg("wait") = false,
        py::arg("reset_scope") = true, py::arg("cause") = "user torch_xla.sync");
  m.def("_xla_sync_multi", &SyncTensors, py::arg("tensors"),
        py::arg("devices") = std::vector<std::string>(), py::arg("wait") = true,
        py::arg("sync_xla_data") = true);
  m.def("_sync_devices_of", &SyncDevicesOf, py::arg("tensors"), py::arg("wait") = false);
  m.def(
      "_xla_wait_device_ops",
      [](const std::vector<std::string>&) {
        WithoutGil([] {
          CapturedGraph::StartCalls();
          lazy::WaitDeviceOps();
        });
      },
      py::arg("devices") = std::vector<std::string>());
  m.def("_set_execution",
        [](const std::string& word) { ChangeExecution(lazy::ExecutionOf(word)); });
  m.def("_get_execution", [] { return lazy::WordFor(lazy::CurrentExecution()); });
  m.def("_set_use_eager_mode", [](bool use) {
    ChangeExecution(use ? lazy::Execution::kAsCalled : lazy::Execution::kAtSync);
  });
  m.def("_get_use_eager_mode", [] { return lazy::CurrentExecution() != lazy::Execution::kAtSync; });
  m.def("_set_allow_execution", &lazy::SetAllowExecution);
  m.def("_get_allow_execution", &lazy::AllowExecution);
  // An observer may hold the lock that these take, and wait for the interpreter's.
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  m.def("_set_current_graph_name", &lazy::SetGraphName, Unlocked());
  m.def("_get_current_graph_name", &lazy::GraphName, Unlocked());
  m.def("_xla_set_custom_compile_options", &SetCompileOptions, Unlocked());
  m.def("_xla_computation_cache_is_initialized", &lazy::HasPersistentCache, Unlocked());
  m.def(
      "_xla_get_num_cached_compilation_graph",
      [] { return lazy::ComputationCacheStatistics().entries; }, Unlocked());
  m.def("_xla_clear_computation_cache", &lazy::ClearComputationCache, Unlocked());
  m.def(
      "_xla_computation_cache_bytes", [] { return lazy::ComputationCacheStatistics().bytes; },
      Unlocked());
  m.def("_xla_interned_counts",
        [] { return std::pair(lazy::OperationTable::TotalCount(), lazy::InternedShapeCount()); });
  m.def("_xla_initialize_cache", &lazy::InitializePersistentCache, Unlocked());
}

}  // namespace

lazy::Device* DeviceFromString(const std::string& name) {
  return ToLazyDevice(name.empty() ? c10::Device(c10::DeviceType::XLA) : c10::Device(name));
}

std::string DeviceToString(const lazy::Device* device) {
  return "xla:" + std::to_string(device->ordinal());
}

bool HeedsDonations() { return heeds_donations; }

void BindRuntime(py::module_& m) {
  {
    std::lock_guard lock(lazy::SyncMutex());
    lazy::BackgroundCompiler::Get().Open();  // _prepare_to_exit closes it
  }
  OrderForks();
  RaiseOwnTypesInPython();
  HandleSignalsInWaits();
  py::register_exception_translator([](std::exception_ptr pending) {
    try {
      if (pending) std::rethrow_exception(pending);
    } catch (const hlo::Error& error) {
      PyObject* type = PyExc_RuntimeError;
      if (error.code() == hlo::ErrorCode::kUnimplemented) type = PyExc_NotImplementedError;
      if (error.code() == hlo::ErrorCode::kOutOfRange) type = OutOfRangeType();
      if (dynamic_cast<const lazy::MissingValue*>(&error) != nullptr) type = MissingValueType();
      PyErr_SetString(type, error.what());
    }
  });
  py::class_<PjRtPlugin, PyPjRtPlugin, std::shared_ptr<PjRtPlugin>>(m, "PjRtPlugin")
      .def(py::init<>())
      .def("library_path", &PjRtPlugin::library_path)
      .def("client_create_options", [](PjRtPlugin&) { return py::dict(); })
      .def("requires_xla_coordinator", &PjRtPlugin::requires_xla_coordinator)
      .def("starts_server", &PjRtPlugin::starts_server);
  lazy::SetWarningHandler([](const std::string& text) { TORCH_WARN(text); });
  m.def("_register_pjrt_plugin", &RegisterPlugin);
  BindDevices(m);
  BindSteps(m);
  m.def("_xla_set_rng_seed", &SetSeed, py::arg("seed"), py::arg("device") = "");
  m.def("_xla_get_rng_seed", &GetSeed, py::arg("device") = "");
  m.def("_xla_default_generator", [](int ordinal) { return DefaultGenerator(ordinal); });
  using Unlocked = py::call_guard<py::gil_scoped_release>;
  m.def("_set_dynamic_mode", &lazy::SetDynamicMode, Unlocked());
  m.def("_get_dynamic_mode", &lazy::DynamicModeWord, Unlocked());
  m.def("_xla_set_mat_mul_precision", &lazy::SetMatMulPrecision, Unlocked());
  m.def(
      "_xla_set_interpretation",
      [](const std::string& word) { lazy::SetInterpretation(lazy::InterpretationOf(word)); },
      Unlocked());
  m.def(
      "_xla_get_interpretation", [] { return lazy::WordFor(lazy::CurrentInterpretation()); },
      Unlocked());
  m.def(
      "_xla_finish_background_compiles",
      [] {
        std::lock_guard lock(lazy::SyncMutex());
        lazy::BackgroundCompiler::Get().Finish();
      },
      Unlocked());
  m.def("_xla_get_mat_mul_precision", &lazy::MatMulPrecision, Unlocked());
}

}  // namespace torch_xla
