// A plugin's devices in this process, and what is made on them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/literal.h"
#include "hlo/module.h"
#include "pjrt/client/buffer.h"
#include "pjrt/client/compile_options.h"
#include "pjrt/client/executable.h"
#include "pjrt/client/named_value.h"
#include "pjrt/client/plugin.h"
#include "pjrt/client/topology.h"

namespace pjrt {

class Client;

// A memory space. Owned by its client.
class Memory {
 public:
  PJRT_Memory* handle() const { return memory_; }
  int id() const { return id_; }
  const std::string& kind() const { return kind_; }  // "device", "pinned_host", …
  std::string ToString() const;

 private:
  friend class Client;
  Memory(const Plugin& plugin, PJRT_Memory* memory);
  const Plugin& plugin_;
  PJRT_Memory* memory_;
  int id_;
  std::string kind_;
};

// Bytes; absent where the plugin does not say.
struct MemoryStats {
  int64_t bytes_in_use = 0;
  std::optional<int64_t> peak_bytes_in_use, num_allocations, largest_allocation, bytes_limit,
      bytes_reserved, pool_bytes;
};

// Owned by its client.
class Device {
 public:
  PJRT_Device* handle() const { return device_; }
  int id() const { return id_; }  // unique over all processes
  int process_index() const { return process_index_; }
  int local_hardware_id() const {
    return local_hardware_id_;
  }  // -1 if it belongs to another process
  bool is_addressable() const { return is_addressable_; }
  const std::string& kind() const { return kind_; }  // "cpu", "NVIDIA H100", "TPU v5 lite"
  std::string ToString() const;
  const NamedValues& attributes() const { return attributes_; }
  const std::vector<Memory*>& memories() const { return memories_; }
  Memory* default_memory() const { return default_memory_; }
  // Throws kUnimplemented where not offered.
  MemoryStats memory_stats() const;
  // Peaks start anew from what is in use. Throws kUnimplemented where not offered.
  void ClearMemoryStats() const;

 private:
  friend class Client;
  Device(const Plugin& plugin, PJRT_Device* device);
  const Plugin& plugin_;
  PJRT_Device* device_;
  PJRT_DeviceDescription* description_ = nullptr;
  int id_ = 0, process_index_ = 0, local_hardware_id_ = -1;
  bool is_addressable_ = false;
  std::string kind_;
  NamedValues attributes_;
  std::vector<Memory*> memories_;
  Memory* default_memory_ = nullptr;
};

// What clients that span processes find each other by. All functions are called from any thread.
struct KeyValueStore {
  // Blocks until the key is there; throws hlo::Error(kDeadlineExceeded) after the timeout.
  std::function<std::string(std::string_view key, std::chrono::milliseconds timeout)> get;
  std::function<std::optional<std::string>(std::string_view key)> try_get;
  std::function<void(std::string_view key, std::string_view value)> put;
};

// What the plugin may do with the host's array.
enum class HostBufferSemantics {
  kImmutableOnlyDuringCall,          // it is copied before the call returns
  kImmutableUntilTransferCompletes,  // it must stay as it is until `done` is called
  kImmutableZeroCopy,  // it must stay as it is until `done` is called, which may be when the buffer
                       // dies
  kMutableZeroCopy,    // the same, and the plugin may write to it
};

struct HostBufferOptions {
  HostBufferSemantics semantics = HostBufferSemantics::kImmutableOnlyDuringCall;
  // Bytes from one element to the next, by dimension; empty: dense row-major.
  std::span<const int64_t> byte_strides = {};
  // Called once on any thread when the plugin needs the array no more. Exceptions must not leave
  // it.
  std::function<void()> done = {};
};

class Client : public std::enable_shared_from_this<Client> {
 public:
  // `options` are the plugin's; names that it does not know are errors with most plugins.
  static std::shared_ptr<Client> Create(const Plugin& plugin, const NamedValues& options = {},
                                        std::optional<KeyValueStore> store = {});
  ~Client();
  Client(const Client&) = delete;

  const Plugin& plugin() const { return plugin_; }
  PJRT_Client* handle() const { return client_; }
  const std::string& platform_name() const { return platform_name_; }  // "cpu", "cuda", "tpu"
  const std::string& platform_version() const { return platform_version_; }
  int process_index() const { return process_index_; }

  // In the plugin's order: all processes' devices, and this process's.
  const std::vector<Device*>& devices() const { return all_devices_; }
  const std::vector<Device*>& addressable_devices() const { return addressable_devices_; }
  Device& device(PJRT_Device* handle) const;
  // Throws kNotFound.
  Device& LookupDevice(int id) const;
  Memory& memory(PJRT_Memory* handle) const;
  // Global device ids, replica-major.
  std::vector<int64_t> DefaultDeviceAssignment(int num_replicas, int num_partitions) const;
  std::unique_ptr<Topology> topology() const;

  std::unique_ptr<Buffer> BufferFromHost(const void* data, const hlo::Shape& shape,
                                         const Device& device,
                                         const HostBufferOptions& options = {});
  std::unique_ptr<Buffer> BufferFromHost(const void* data, const hlo::Shape& shape,
                                         const Memory& memory,
                                         const HostBufferOptions& options = {});
  std::unique_ptr<Buffer> BufferFromLiteral(const hlo::Literal& literal, const Device& device);
  // Sees memory of the device that another library holds, dense row-major, until `done` is called,
  // once, on any thread. Exceptions must not leave it; it is not called where this one throws.
  std::unique_ptr<Buffer> ViewOf(void* memory, const hlo::Shape& shape, const Device& device,
                                 std::function<void()> done);
  std::unique_ptr<Buffer> CreateUninitializedBuffer(const hlo::Shape& shape, const Device& device);

  // Sends the program as StableHLO: bytecode, or text to plugins older than the bytecode that we
  // write. TORCH_XLA_PROGRAM_FORMAT=text or =bytecode forces either.
  std::unique_ptr<LoadedExecutable> Compile(const hlo::Module& module,
                                            const CompileOptions& options = {});
  // `format`: "mlir" (text or bytecode), or "hlo" (plugins built from XLA).
  std::unique_ptr<LoadedExecutable> Compile(std::string_view code, std::string_view format,
                                            const CompileOptions& options = {});
  // `options`: a CompileOptionsProto, as CompileOptions::Serialize writes it.
  std::unique_ptr<LoadedExecutable> CompileWith(std::string_view code, std::string_view format,
                                                std::string_view options);
  // Throws if the bytes come from another version of the plugin. `options`, unless empty, replace
  // those compiled with.
  std::unique_ptr<LoadedExecutable> DeserializeAndLoad(std::string_view bytes,
                                                       std::string_view options = {});
  // What was compiled for this client's topology.
  std::unique_ptr<LoadedExecutable> Load(const Executable& executable,
                                         const CompileOptions& options = {});

 private:
  explicit Client(const Plugin& plugin) : plugin_(plugin) {}
  void Describe();
  std::unique_ptr<Buffer> BufferFromHost(const void* data, const hlo::Shape& shape,
                                         PJRT_Device* device, PJRT_Memory* memory,
                                         const HostBufferOptions& options);

  const Plugin& plugin_;
  PJRT_Client* client_ = nullptr;
  std::unique_ptr<KeyValueStore> store_;
  std::string platform_name_, platform_version_;
  int process_index_ = 0;
  std::vector<std::unique_ptr<Memory>> memories_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Device*> all_devices_, addressable_devices_;
};

// Whether TORCH_XLA_PROGRAM_FORMAT said, when the first client was made, how programs are sent.
bool FormatIsForced();
// The program as it is sent to the plugin, in format "mlir".
std::string SerializeProgram(const hlo::Module& module, const Plugin& plugin);

}  // namespace pjrt
