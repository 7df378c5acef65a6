// The engine's two steps as its users see them: compile a module, run the result.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "hlo/module.h"

namespace cpu {

class ThreadPool;
class Communicator;

struct CompileOptions {
  // What the module runs on, for replica_id, partition_id and the collectives.
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  // Kernels read all sizes at run time, as if each had varied: for tests.
  bool all_sizes_vary = false;
  // Sizes of this program's that are other ones in programs of its structure: kernels read them at
  // run time, as they do those in which it differs from programs before it (varying_sizes.h).
  std::set<int64_t> varying_sizes;
  // Passes to leave out (pipeline.h), beside those of TORCH_XLA_DISABLE_PASSES.
  std::set<std::string, std::less<>> disabled_passes;
  // This process's among several, for the names of what TORCH_XLA_DUMP writes. The code does not
  // depend on it.
  std::optional<int64_t> rank;
};

// One step of a program, for profiles. Empty texts and zeros where nothing is known.
struct StepDescription {
  std::string name;       // "fusion.12", unique in the program
  std::string text;       // the instruction
  std::string category;   // "dot", "loop fusion", "all-reduce"
  std::string operation;  // the framework's, "aten::add"
  std::string source_file;
  int32_t source_line = 0;
  int64_t flops = 0;
  int64_t bytes_read = 0, bytes_written = 0;
};

// When a step ran, on std::chrono::steady_clock. The description lives as long as the executable.
struct StepTime {
  const StepDescription* description = nullptr;
  int64_t start_ns = 0, end_ns = 0;
};

// What whoever runs a program lets the foreign functions that it calls find, under the number of
// its type (foreign_handlers.h).
struct ForeignData {
  int64_t type_id = 0;
  void* data = nullptr;
};

struct RunOptions {
  ThreadPool* threads = nullptr;  // null: ThreadPool::Default()
  // What the program's collectives run on, if it has any; its ranks are the replicas.
  Communicator* communicator = nullptr;
  int64_t replica_id = 0;
  int64_t partition_id = 0;
  // For foreign functions.
  std::span<const ForeignData> foreign_data;
  int32_t device_ordinal = 0;
  // Where the steps' times go, in the order of their ends; null: nowhere.
  std::vector<StepTime>* step_times = nullptr;
};

// Immutable after compilation; Run may be called from several threads at once (each call takes its
// own arena from a pool).
class Executable {
 public:
  virtual ~Executable() = default;

  virtual const std::vector<hlo::Shape>& parameter_shapes() const = 0;
  virtual const std::vector<hlo::Shape>& result_shapes() const = 0;
  // For each result the parameter whose buffer it takes over when the caller donates it, or -1.
  virtual const std::vector<int64_t>& aliased_parameters() const = 0;

  // Runs to completion. Buffers are dense, row-major, 64-byte aligned. results[i] may be the same
  // buffer as arguments[aliased_parameters()[i]] (donated: updated in place) and overlaps nothing
  // else. Throws hlo::Error.
  virtual void Run(std::span<const void* const> arguments, std::span<void* const> results,
                   const RunOptions& options) const = 0;

  // True if it runs collectives, and so may wait for other processes.
  virtual bool communicates() const = 0;

  virtual int64_t arena_bytes() const = 0;
  virtual int64_t code_bytes() const = 0;
  // The optimized program for people: kernels, library calls, buffers.
  virtual std::string ToString() const = 0;
  // Bytes that LoadExecutable accepts in a process with the same build of the engine on the same
  // kind of CPU; loading compiles nothing. They hold machine code.
  virtual std::string Serialize() const = 0;
};

// Throws hlo::Error: kInvalidArgument for a malformed module or a pass that cannot be left out,
// kUnimplemented naming the operation.
std::unique_ptr<Executable> Compile(std::unique_ptr<hlo::Module> module,
                                    const CompileOptions& options = {});
// The same of a copy.
std::unique_ptr<Executable> Compile(const hlo::Module& module, const CompileOptions& options = {});

// Throws hlo::Error: kFailedPrecondition for bytes of another build of the engine, another kind of
// CPU or other options, kInvalidArgument for what is damaged or something else. Whoever wrote bytes
// that pass runs code in this process: take them from nobody who may not.
std::unique_ptr<Executable> LoadExecutable(std::string_view bytes,
                                           const CompileOptions& options = {});

// Names the build of the engine (the library's build id), the CPU and the passes that
// TORCH_XLA_DISABLE_PASSES leaves out: all that decides about generated code beside the program and
// the options. Throws hlo::Error if the variable names a pass that cannot be left out.
std::string EngineFingerprint();

}  // namespace cpu
