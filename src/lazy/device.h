// The runtime: the plugin that this process uses, its client and its devices. Nothing of it starts
// before the first use of a device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lazy/check_queue.h"
#include "lazy/collective.h"
#include "pjrt/client/client.h"
#include "process/fork.h"

namespace lazy {

class Storage;

class Device {
 public:
  Device(std::shared_ptr<pjrt::Client> client, pjrt::Device* device, int ordinal)
      : client_(std::move(client)), device_(device), ordinal_(ordinal) {}
  Device(const Device&) = delete;

  int ordinal() const { return ordinal_; }  // the n of "xla:n"
  pjrt::Client& client() const { return *client_; }
  const pjrt::Device& pjrt_device() const { return *device_; }
  // Moves to another client (Runtime::Leave); the data of the old one is copied when it is used.
  void Rebind(std::shared_ptr<pjrt::Client> client, pjrt::Device* device);

  // Storages whose value is recorded and not computed, in the order in which they became so. See
  // storage.h; guarded by `pending_mutex`.
  process::Mutex pending_mutex;
  Storage* pending_head = nullptr;
  Storage* pending_tail = nullptr;
  // Recorded operations that other processes take part in, in the order of recording: they run
  // whether or not their results are wanted here, as do assertions. Guarded by `pending_mutex`.
  std::vector<PendingCollective> pending_collectives;
  // What programs found wrong with their values.
  CheckQueue value_checks;

 private:
  std::shared_ptr<pjrt::Client> client_;
  pjrt::Device* device_;
  int ordinal_;
};

// What to load, decided by whoever configures the process (the Python package, or the environment
// when nobody did: PJRT_DEVICE, PJRT_LIBRARY_PATH).
struct RuntimeOptions {
  std::string device_type;  // "CPU", "LIBRARY", "CUDA", …
  std::string plugin_path;
  pjrt::NamedValues create_options;
  std::optional<pjrt::KeyValueStore> store;
  // Whether the provider starts a server for the plugin when it finds none. One that it found at
  // work may end before it is used; it is then asked once more.
  bool starts_server = false;
};

// This process's place among those that compute together, each with one device.
struct World {
  int64_t rank = 0;
  int64_t size = 1;
  pjrt::KeyValueStore store;  // of a world of several
};

class Runtime {
 public:
  // Called when the runtime starts, to learn of which world it becomes a member. The plugin is
  // then created with the options node_id and num_nodes, and one device.
  using WorldProvider = std::function<World()>;
  static void SetWorldProvider(WorldProvider provider);
  // A device type's plugin; called when the runtime starts, if PJRT_DEVICE names that type.
  using OptionsProvider = std::function<RuntimeOptions()>;
  static void RegisterPlugin(const std::string& device_type, OptionsProvider provider);

  // PJRT_DEVICE, "CPU" if it is not set; without starting anything.
  static std::string DeviceType();
  // True once a client exists.
  static bool IsStarted();
  // Starts it if need be. Throws hlo::Error that says what is missing.
  static Runtime& Get();
  // The path of the plugin that comes with this library, or empty.
  static std::string EmbeddedPluginPath();

  // Called in a forked child of a process whose runtime was started. The engine of this package
  // goes on working there; other plugins' threads are gone, and CheckNotForked throws hlo::Error.
  static void MarkForked();
  void CheckNotForked() const;
  // In a forked child: the next use of a device starts the runtime anew, as a member of the world
  // that the provider then names. Tensors made before keep their values. Throws hlo::Error if the
  // plugin was started before the fork and cannot be used after it.
  static void Leave();

  const RuntimeOptions& options() const { return options_; }
  pjrt::Client& client() const { return *client_; }
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }
  // The number of processes, and the ids of their devices in the order of ranks.
  int64_t world_size() const { return static_cast<int64_t>(world_devices_.size()); }
  const std::vector<int64_t>& world_devices() const { return world_devices_; }
  // Throws hlo::Error(kOutOfRange).
  Device* device(int ordinal) const;

 private:
  Runtime(RuntimeOptions options, const World& world, Runtime* previous);
  void ListWorld(const World& world);
  bool IsEmbeddedEngine() const;

  RuntimeOptions options_;
  std::vector<int64_t> world_devices_;
  std::shared_ptr<pjrt::Client> client_;
  std::vector<std::unique_ptr<Device>> devices_;
  bool forked_ = false;
};

}  // namespace lazy
