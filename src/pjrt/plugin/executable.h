// Compiled programs and their execution.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/executable.h"
#include "pjrt/boundary/buffer_description.h"
#include "pjrt/boundary/program_description.h"
#include "pjrt/c_api.h"
#include "pjrt/plugin/client.h"
#include "pjrt/plugin/compile_options.h"

namespace pjrt::plugin {

using namespace boundary;

// What an execution does to a parameter's buffer.
enum class Donation : uint8_t { kNone, kMay, kMust };

// A compiled program, immutable. Shared by the handles of both kinds and by what runs.
class CompiledProgram : public ProgramDescription {
 public:
  // `options`: a CompileOptionsProto. Throws for formats other than StableHLO, for programs that
  // need more than `num_devices`, and what cpu::Compile throws. `rank`: this process's among
  // several.
  static std::shared_ptr<const CompiledProgram> Compile(const PJRT_Program& program,
                                                        std::string_view options,
                                                        int64_t num_devices,
                                                        std::optional<int64_t> rank = {});
  // The same of what was handed over as a module (pjrt/module_extension.h). It has no code, so it
  // cannot be serialized.
  static std::shared_ptr<const CompiledProgram> Compile(std::unique_ptr<hlo::Module> module,
                                                        std::string_view options,
                                                        int64_t num_devices,
                                                        std::optional<int64_t> rank = {});
  // Throws what cpu::LoadExecutable throws. `options`, unless empty, replace those compiled with;
  // what the code depends on must agree, and `num_devices` must do.
  static std::shared_ptr<const CompiledProgram> Deserialize(std::string_view bytes,
                                                            std::string_view options,
                                                            int64_t num_devices);
  std::string Serialize() const;
  // The program as it came. Throws hlo::Error(kUnimplemented) if it came as a module.
  const std::string& code() const;

  CompileOptions options;
  std::unique_ptr<cpu::Executable> executable;
  std::vector<Donation> donations;  // by parameter
  std::vector<std::shared_ptr<const BufferDescription>> result_descriptions;
  bool communicates = false;  // runs collectives
  // How long the last execution took; what takes no longer than waking the queue's thread runs at
  // once.
  mutable std::atomic<int64_t> last_run_nanoseconds{std::numeric_limits<int64_t>::max()};

  const std::vector<hlo::Shape>& parameters() const { return executable->parameter_shapes(); }
  const std::vector<hlo::Shape>& results() const { return executable->result_shapes(); }

 private:
  void CompileFor(std::unique_ptr<hlo::Module> module, std::string_view options,
                  int64_t num_devices, std::optional<int64_t> rank);
  void Describe();

  std::string code_;  // empty if it came as a module
};

}  // namespace pjrt::plugin

struct PJRT_Executable {
  std::shared_ptr<const pjrt::plugin::CompiledProgram> program;
};

struct PJRT_LoadedExecutable : pjrt::boundary::ProgramDevices {
  PJRT_LoadedExecutable(PJRT_Client& client,
                        std::shared_ptr<const pjrt::plugin::CompiledProgram> program);
  // Throws if deleted.
  std::shared_ptr<const pjrt::plugin::CompiledProgram> Get() const;

  const std::shared_ptr<PJRT_Client> client;
  mutable std::mutex mutex;
  std::shared_ptr<const pjrt::plugin::CompiledProgram> program;  // null once deleted
  bool portable;
  int64_t num_replicas, num_partitions;
  // Replica-major, of all processes; empty if portable, as are the devices.
  std::vector<int64_t> device_ids;

 private:
  void CheckCollectives(const pjrt::plugin::CompiledProgram& program) const;
};
