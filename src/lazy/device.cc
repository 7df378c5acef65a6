#include "lazy/device.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "hlo/error.h"
#include "lazy/fork.h"
#include "lazy/job_secret.h"
#include "lazy/ordinal.h"
#include "lazy/profile.h"
#include "lazy/program_cache.h"
#include "pjrt/wire/option_names.h"
#include "process/fork.h"

namespace lazy {
namespace {

struct Plugins {
  process::Mutex mutex;
  std::map<std::string, Runtime::OptionsProvider> providers;
  static Plugins& Get() {
    static Plugins* plugins = new Plugins;
    return *plugins;
  }
};

// Never destroyed: tensors outlive static destructors.
std::atomic<Runtime*> runtime{nullptr};
Runtime* left_runtime = nullptr;  // under RuntimeMutex
// The first ordinal of a runtime that was left, whose tensors are still there.
std::atomic<int> kept_ordinal{-1};
Runtime::WorldProvider& ProviderOfWorld() {
  static auto* provider = new Runtime::WorldProvider;
  return *provider;
}

World CurrentWorld() {
  Runtime::WorldProvider provider;
  {
    std::lock_guard lock(RuntimeMutex());
    provider = ProviderOfWorld();
  }
  return provider ? provider() : World();
}

// The whole number that `text` is, from its first character to its last.
std::optional<int64_t> WholeNumber(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Of CPU_NUM_DEVICES; how many there may be is the engine's to say.
int64_t DeviceCount(const std::string& text) {
  if (const auto count = WholeNumber(text)) return *count;
  throw hlo::Error("CPU_NUM_DEVICES is '" + text + "', which is no number of devices");
}

// What a plugin is told of the world.
void JoinWorld(RuntimeOptions& options, const World& world) {
  if (world.size == 1) return;
  options.create_options.erase("cpu_device_count");
  options.create_options["node_id"] = world.rank;
  options.create_options["num_nodes"] = world.size;
  options.store = world.store;
}

// The secret goes to a plugin that takes it, and is kept nowhere else.
pjrt::NamedValues CreateOptions(const pjrt::Plugin& plugin, const RuntimeOptions& options,
                                const World& world) {
  pjrt::NamedValues given = options.create_options;
  std::string secret = world.size > 1 ? JobSecret() : "";
  if (!secret.empty() && plugin.attributes().contains(pjrt::kJobSecret)) {
    given[pjrt::kJobSecret] = std::move(secret);
  }
  return given;
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int64_t NumberFromEnvironment(const char* name, int64_t otherwise) {
  return WholeNumber(Environment(name)).value_or(otherwise);
}

int64_t ProcessesOfMachine() {
  return NumberFromEnvironment("LOCAL_WORLD_SIZE", NumberFromEnvironment("WORLD_SIZE", 1));
}

// Whether the processes of a machine number their devices by their ranks. Not if there are many:
// autograd keeps a thread in each process for each number, of which torch has 128.
bool CountsByRank() {
  constexpr int kMostProcesses = 32;
  return kept_ordinal < 0 && NumberFromEnvironment("WORLD_SIZE", 1) > 1 &&
         ProcessesOfMachine() <= kMostProcesses && Runtime::DeviceType() == "CPU";
}

int LocalRank() {
  const int64_t rank = NumberFromEnvironment("LOCAL_RANK", 0);
  return rank >= 0 && rank < ProcessesOfMachine() ? static_cast<int>(rank) : 0;
}

RuntimeOptions OptionsFromEnvironment() {
  RuntimeOptions options;
  options.device_type = Runtime::DeviceType();
  Runtime::OptionsProvider provider;
  {
    Plugins& plugins = Plugins::Get();
    std::lock_guard lock(plugins.mutex);
    auto it = plugins.providers.find(options.device_type);
    if (it != plugins.providers.end()) provider = it->second;
  }
  if (provider) {
    RuntimeOptions given = provider();
    given.device_type = options.device_type;
    return given;
  }
  if (options.device_type == "LIBRARY") {
    options.plugin_path = Environment("PJRT_LIBRARY_PATH");
    if (options.plugin_path.empty()) {
      throw hlo::Error(hlo::ErrorCode::kNotFound,
                       "PJRT_DEVICE=LIBRARY needs PJRT_LIBRARY_PATH, the path of a PJRT plugin");
    }
  } else if (options.device_type == "CPU") {
    options.plugin_path = Runtime::EmbeddedPluginPath();
    if (options.plugin_path.empty()) {
      throw hlo::Error(hlo::ErrorCode::kNotFound,
                       "this build has no CPU engine; name a plugin: PJRT_DEVICE=LIBRARY "
                       "PJRT_LIBRARY_PATH=/path/to/plugin.so");
    }
    if (const std::string count = Environment("CPU_NUM_DEVICES"); !count.empty()) {
      options.create_options["cpu_device_count"] = DeviceCount(count);
    }
  } else {
    throw hlo::Error(hlo::ErrorCode::kNotFound,
                     "No PjRtPlugin registered for: " + options.device_type +
                         ". Make sure the environment variable PJRT_DEVICE is set to a correct "
                         "device name. Packages register theirs by the entry point group "
                         "torch_xla.plugins");
  }
  return options;
}

}  // namespace

int FirstOrdinal() {
  if (const Runtime* started = runtime.load(std::memory_order_acquire)) {
    return started->devices()[0]->ordinal();
  }
  if (kept_ordinal >= 0) return kept_ordinal;
  return CountsByRank() ? LocalRank() : 0;
}

int OrdinalCount() {
  const Runtime* started = runtime.load(std::memory_order_acquire);
  const int own = started == nullptr ? 1 : static_cast<int>(started->devices().size());
  const int64_t others = CountsByRank() ? ProcessesOfMachine() : 0;
  return std::max(FirstOrdinal() + own, static_cast<int>(others));
}

void Device::Rebind(std::shared_ptr<pjrt::Client> client, pjrt::Device* device) {
  client_ = std::move(client);
  device_ = device;
}

void Runtime::SetWorldProvider(WorldProvider provider) {
  std::lock_guard lock(RuntimeMutex());
  ProviderOfWorld() = std::move(provider);
}

void Runtime::RegisterPlugin(const std::string& device_type, OptionsProvider provider) {
  Plugins& plugins = Plugins::Get();
  std::lock_guard lock(plugins.mutex);
  plugins.providers[device_type] = std::move(provider);
}

std::string Runtime::DeviceType() {
  std::string type = Environment("PJRT_DEVICE");
  return type.empty() ? "CPU" : type;
}

bool Runtime::IsStarted() { return runtime.load() != nullptr; }

Runtime& Runtime::Get() {
  if (Runtime* started = runtime.load(std::memory_order_acquire)) return *started;
  World world;
  bool may_try_again = false;
  const auto start = [&]() -> Runtime& {
    // Outside the lock: a provider may take Python's.
    RuntimeOptions options = OptionsFromEnvironment();
    world = CurrentWorld();
    may_try_again = options.starts_server && world.size == 1;  // nobody joins a world twice
    JoinWorld(options, world);
    std::lock_guard lock(RuntimeMutex());
    if (Runtime* started = runtime.load()) return *started;
    auto* started = new Runtime(std::move(options), world, left_runtime);
    runtime.store(started, std::memory_order_release);
    return *started;
  };
  try {
    return start();
  } catch (const hlo::Error& error) {
    if (error.code() != hlo::ErrorCode::kUnavailable || !may_try_again) throw;
  }
  return start();
}

void Runtime::MarkForked() {
  if (Runtime* started = runtime.load()) started->forked_ = !started->IsEmbeddedEngine();
}

void Runtime::Leave() {
  Runtime* started = runtime.load();
  if (started == nullptr) return;
  started->CheckNotForked();
  ClearComputationCache();
  std::lock_guard lock(RuntimeMutex());
  left_runtime = started;
  kept_ordinal = started->devices_[0]->ordinal();
  runtime.store(nullptr);
}

bool Runtime::IsEmbeddedEngine() const {
  if (options_.device_type == "CPU") return true;
  std::error_code error;
  return std::filesystem::equivalent(options_.plugin_path, EmbeddedPluginPath(), error);
}

void Runtime::CheckNotForked() const {
  if (!forked_) return;
  throw hlo::Error(
      hlo::ErrorCode::kFailedPrecondition,
      "this process was forked after its parent had started the runtime of " +
          options_.device_type +
          ", whose plugin does not work in a forked process; start the runtime after the "
          "fork (importing torch_xla does not start it), or use start_method='spawn'");
}

std::string Runtime::EmbeddedPluginPath() {
  // Beside the library that this code is linked into.
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&Runtime::DeviceType), &info) == 0) return "";
  auto folder = std::filesystem::path(info.dli_fname).parent_path();
  // The engine serves every minor version of torch and stands one folder up, or in the same.
  for (const auto& directory : {folder.parent_path(), folder}) {
    std::error_code error;
    auto path = directory / "libpjrt_cpu.so";
    if (std::filesystem::exists(path, error)) return path.string();
  }
  return "";
}

Runtime::Runtime(RuntimeOptions options, const World& world, Runtime* previous)
    : options_(std::move(options)) {
  pjrt::Plugin& plugin = pjrt::Plugin::Load(options_.plugin_path);
  process::RegisterForkHandlers();  // after the plugin's own: this library closes first
  client_ = pjrt::Client::Create(plugin, CreateOptions(plugin, options_, world), options_.store);
  const int first = FirstOrdinal();
  for (pjrt::Device* device : client_->addressable_devices()) {
    const size_t place = devices_.size();
    if (previous != nullptr && place < previous->devices_.size()) {
      // Tensors made before refer to it. The previous runtime is left as it is otherwise: it
      // holds the devices that this process has no longer.
      devices_.push_back(std::move(previous->devices_[place]));
      devices_.back()->Rebind(client_, device);
    } else {
      devices_.push_back(
          std::make_unique<Device>(client_, device, first + static_cast<int>(place)));
    }
  }
  if (devices_.empty()) {
    throw hlo::Error(hlo::ErrorCode::kNotFound,
                     "the plugin " + options_.plugin_path + " offers no device");
  }
  ListWorld(world);
  JoinProfile(plugin);
}

void Runtime::ListWorld(const World& world) {
  if (world.size == 1) {
    world_devices_ = {devices_[0]->pjrt_device().id()};
    return;
  }
  std::vector<pjrt::Device*> all = client_->devices();
  std::sort(all.begin(), all.end(), [](const pjrt::Device* a, const pjrt::Device* b) {
    return std::pair(a->process_index(), a->id()) < std::pair(b->process_index(), b->id());
  });
  for (const pjrt::Device* device : all) world_devices_.push_back(device->id());
  if (world_size() == world.size && devices_.size() == 1) return;
  throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                   "a world of " + std::to_string(world.size) +
                       " processes needs one device each, and the plugin " + options_.plugin_path +
                       " offers " + std::to_string(world_size()) + ", " +
                       std::to_string(devices_.size()) + " of them to this process");
}

Device* Runtime::device(int ordinal) const {
  const int first = devices_[0]->ordinal();
  const int count = static_cast<int>(devices_.size());
  if (ordinal >= first && ordinal < first + count) return devices_[ordinal - first].get();
  std::string own;
  for (const auto& device : devices_) {
    own += (own.empty() ? "xla:" : ", xla:") + std::to_string(device->ordinal());
  }
  throw hlo::Error(
      hlo::ErrorCode::kOutOfRange,
      "there is no device xla:" + std::to_string(ordinal) + "; this process has " + own);
}

}  // namespace lazy
