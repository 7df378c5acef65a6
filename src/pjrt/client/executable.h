// Compiled programs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hlo/shape.h"
#include "pjrt/client/buffer.h"
#include "pjrt/client/event.h"
#include "pjrt/client/named_value.h"
#include "pjrt/client/owned.h"

namespace pjrt {

class Client;
class Device;

// Bytes.
struct CompiledMemoryStats {
  int64_t generated_code = 0, arguments = 0, outputs = 0, aliased = 0, temporaries = 0;
  int64_t host_generated_code = 0, host_arguments = 0, host_outputs = 0, host_aliased = 0,
          host_temporaries = 0;
  int64_t peak = 0, total = 0;
};

struct OptimizedProgram {
  std::string format;  // "mlir", "hlo" or "hlo_with_config"
  std::string code;
};

// What is known about a compiled program. Comes from a LoadedExecutable or from compiling for a
// topology.
class Executable {
 public:
  explicit Executable(OwnedExecutable executable)
      : plugin_(executable.plugin()), executable_(std::move(executable)) {}
  Executable(const Executable&) = delete;

  PJRT_Executable* handle() const { return executable_.get(); }
  std::string name() const;
  int64_t num_replicas() const;
  int64_t num_partitions() const;
  std::vector<hlo::Shape> output_shapes() const;
  std::vector<std::string> output_memory_kinds() const;
  int64_t generated_code_bytes() const;
  std::string fingerprint() const;
  CompiledMemoryStats memory_stats() const;
  // Such as "flops" and "bytes accessed"; throws kUnimplemented where not offered.
  NamedValues cost_analysis() const;
  OptimizedProgram optimized_program() const;
  // Bytes for Client::DeserializeAndLoad with the same plugin version.
  std::string Serialize() const;

 private:
  const Plugin& plugin_;
  OwnedExecutable executable_;
};

struct ExecuteOptions {
  // Where to run a portable executable; null: where it was compiled for.
  const Device* device = nullptr;
  // Arguments that the program may consume (by its aliases or donors) but must not.
  std::span<const int64_t> non_donatable_inputs;
  // Equal numbers mark the launches of one program on several devices.
  int launch_id = 0;
  // Where the results go, for plugins that have the extension; valid during the call.
  PJRT_ResultMemory_Extension* result_memory = nullptr;
  // The caller goes on only when the results are there: the call itself may take until then.
  bool caller_waits = false;
};

struct ExecuteResult {
  std::vector<std::unique_ptr<Buffer>> outputs;
  Event done;  // the outputs are there, and the arguments are no longer read
};

// A program that can run on devices of its client. Thread-safe. Keeps its client alive.
class LoadedExecutable {
 public:
  LoadedExecutable(std::shared_ptr<Client> client, OwnedLoadedExecutable executable);
  LoadedExecutable(const LoadedExecutable&) = delete;

  PJRT_LoadedExecutable* handle() const { return loaded_.get(); }
  const Executable& executable() const { return *executable_; }
  const std::vector<hlo::Shape>& output_shapes() const { return output_shapes_; }
  std::vector<Device*> addressable_devices() const;
  // Drops the code; what runs goes on.
  void Delete();
  bool IsDeleted() const;

  // Starts one execution on one device. The arguments may still be in the making. Throws what is
  // wrong at once (number, shapes, deleted arguments); failures while running appear in the outputs
  // and in `done`.
  ExecuteResult Execute(std::span<const Buffer* const> arguments,
                        const ExecuteOptions& options = {}) const;
  // One list of arguments per device of the assignment, in addressable_devices()' order.
  std::vector<ExecuteResult> ExecuteSharded(
      const std::vector<std::vector<const Buffer*>>& arguments,
      const ExecuteOptions& options = {}) const;

 private:
  using ArgumentList = std::span<const Buffer* const>;
  std::vector<ExecuteResult> Start(std::span<const ArgumentList> arguments,
                                   const ExecuteOptions& options) const;

  std::shared_ptr<Client> client_;
  std::unique_ptr<Executable> executable_;
  OwnedLoadedExecutable loaded_;  // is destroyed first
  std::vector<hlo::Shape> output_shapes_;
  std::vector<std::shared_ptr<const hlo::Shape>> shared_output_shapes_;  // the same, for buffers
};

}  // namespace pjrt
