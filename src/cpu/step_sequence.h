// The runnable form of one computation: a list of steps over buffers in one arena.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cpu/collective/started_collectives.h"
#include "cpu/executable.h"
#include "cpu/library_call.h"
#include "cpu/thread_pool.h"
#include "hlo/instruction.h"

namespace cpu {

using KernelFunction = void (*)(void* const* buffers, int64_t begin, int64_t end);

// Where a buffer lives while a program runs.
struct BufferLocation {
  enum Kind : uint8_t { kArgument, kResult, kArena, kConstant } kind = kArena;
  int64_t index = 0;           // of the argument or result
  int64_t offset = 0;          // in the arena
  const void* data = nullptr;  // of the constant
};

struct RunState {
  ThreadPool& threads;
  const RunOptions& options;
  std::byte* arena;             // the program's part
  void* const* buffers;         // by the program's buffer numbers
  StartedCollectives* started;  // the collectives under way
};

// "b1, b2": for people.
std::string BufferNames(const std::vector<int32_t>& numbers);

// One action of a program. Immutable.
class Step {
 public:
  virtual ~Step() = default;
  virtual void Run(const RunState& state) const = 0;
  virtual std::string ToString() const = 0;

  // Made when a profile first asks for it, on any thread: most steps are never asked.
  const StepDescription& description() const;
  // What describes it: `describe` of the instruction that it computes a part of, which outlives it,
  // or of null.
  using Describer = StepDescription (*)(const hlo::Instruction*);
  void set_describer(Describer describe, const hlo::Instruction* instruction) {
    describe_ = describe;
    instruction_ = instruction;
  }

 private:
  Describer describe_ = nullptr;
  const hlo::Instruction* instruction_ = nullptr;
  mutable std::once_flag is_described_;
  mutable std::unique_ptr<const StepDescription> description_;
};

struct StepSequence {
  std::vector<BufferLocation> buffers;
  std::vector<std::unique_ptr<Step>> steps;
  int64_t arena_bytes = 0;
  int64_t num_asynchronous = 0;  // collectives that are started and awaited later
  std::string name;

  void Run(std::span<void* const> arguments, std::span<void* const> results, std::byte* arena,
           ThreadPool& threads, const RunOptions& options) const;
  std::string ToString() const;

 private:
  void RunTimed(const RunState& state) const;
};

// Calls a kernel over its units, on several threads if the work is worth it.
class KernelStep : public Step {
 public:
  KernelStep(std::string name, KernelFunction function, std::vector<int32_t> buffers, int64_t units,
             double unit_cost)
      : name_(std::move(name)),
        function_(function),
        buffers_(std::move(buffers)),
        units_(units),
        unit_cost_(unit_cost) {}
  void Run(const RunState& state) const override;
  std::string ToString() const override;

 private:
  std::string name_;
  KernelFunction function_;
  std::vector<int32_t> buffers_;
  int64_t units_;
  double unit_cost_;
};

class LibraryStep : public Step {
 public:
  LibraryStep(std::unique_ptr<LibraryCall> call, std::vector<int32_t> operands,
              std::vector<int32_t> results, int64_t scratch_offset)
      : call_(std::move(call)),
        operands_(std::move(operands)),
        results_(std::move(results)),
        scratch_offset_(scratch_offset) {}
  void Run(const RunState& state) const override;
  std::string ToString() const override;

 private:
  std::unique_ptr<LibraryCall> call_;
  std::vector<int32_t> operands_, results_;
  int64_t scratch_offset_;
};

// Copies bytes between buffers (nothing if they are the same memory).
class CopyStep : public Step {
 public:
  CopyStep(int32_t from, int32_t to, int64_t bytes) : from_(from), to_(to), bytes_(bytes) {}
  void Run(const RunState& state) const override;
  std::string ToString() const override;

 private:
  int32_t from_, to_;
  int64_t bytes_;
};

// memcpy on several threads where it is long.
void ParallelCopy(ThreadPool& threads, void* to, const void* from, int64_t bytes);

// while: the state lives in the results' buffers; the body updates it in place (its i-th result
// takes over its i-th parameter's buffer).
class WhileStep : public Step {
 public:
  struct Part {
    std::unique_ptr<StepSequence> program;
    int64_t arena_offset = 0;
  };
  WhileStep(Part condition, Part body, std::vector<int32_t> operands, std::vector<int32_t> results,
            std::vector<int64_t> bytes, int32_t predicate)
      : condition_(std::move(condition)),
        body_(std::move(body)),
        operands_(std::move(operands)),
        results_(std::move(results)),
        bytes_(std::move(bytes)),
        predicate_(predicate) {}
  void Run(const RunState& state) const override;
  std::string ToString() const override;

 private:
  Part condition_, body_;
  std::vector<int32_t> operands_, results_;
  std::vector<int64_t> bytes_;
  int32_t predicate_;  // buffer of the condition's result
};

// if and case.
class BranchStep : public Step {
 public:
  BranchStep(std::vector<WhileStep::Part> branches, bool is_predicate, int32_t selector,
             std::vector<int32_t> operands, std::vector<int32_t> results)
      : branches_(std::move(branches)),
        is_predicate_(is_predicate),
        selector_(selector),
        operands_(std::move(operands)),
        results_(std::move(results)) {}
  void Run(const RunState& state) const override;
  std::string ToString() const override;

 private:
  std::vector<WhileStep::Part> branches_;
  bool is_predicate_;
  int32_t selector_;
  std::vector<int32_t> operands_, results_;
};

// Any native routine of the engine: `run` receives the operands' and results' pointers and scratch.
class NativeStep : public Step {
 public:
  struct Call {
    const RunState& state;
    void* const* operands;
    void* const* results;
    std::byte* scratch;
  };
  using Function = std::function<void(const Call&)>;
  NativeStep(std::string name, Function run, std::vector<int32_t> operands,
             std::vector<int32_t> results, int64_t scratch_offset)
      : name_(std::move(name)),
        run_(std::move(run)),
        operands_(std::move(operands)),
        results_(std::move(results)),
        scratch_offset_(scratch_offset) {}
  void Run(const RunState& state) const override;
  std::string ToString() const override;

 private:
  std::string name_;
  Function run_;
  std::vector<int32_t> operands_, results_;
  int64_t scratch_offset_;
};

}  // namespace cpu
