#include "cpu/step_sequence.h"

#include <algorithm>
#include <cstring>

#include "cpu/profile.h"
#include "hlo/size_arithmetic.h"
#include "process/clock.h"

namespace cpu {
namespace {

// Work below this is not worth waking another thread for, in nanoseconds.
constexpr double kMinimumChunk = 12000;

// Pointers of a step, on the stack unless they are many.
class Pointers {
 public:
  Pointers(const RunState& state, const std::vector<int32_t>& numbers) {
    if (numbers.size() > kInline) {
      many_.resize(numbers.size());
      data_ = many_.data();
    }
    for (size_t i = 0; i < numbers.size(); ++i) data_[i] = state.buffers[numbers[i]];
  }
  void* const* data() const { return data_; }

 private:
  static constexpr size_t kInline = 24;
  void* few_[kInline];
  std::vector<void*> many_;
  void** data_ = few_;
};

std::string Indented(const std::string& text) {
  std::string result = "  ";
  for (char c : text) {
    result += c;
    if (c == '\n') result += "  ";
  }
  return result + "\n";
}

}  // namespace

std::string BufferNames(const std::vector<int32_t>& numbers) {
  std::string text;
  for (int32_t number : numbers) text += (text.empty() ? "b" : ", b") + std::to_string(number);
  return text;
}

void StepSequence::Run(std::span<void* const> arguments, std::span<void* const> results,
                       std::byte* arena, ThreadPool& threads, const RunOptions& options) const {
  constexpr size_t kInline = 256;
  void* few[kInline];
  std::vector<void*> many;
  void** pointers = few;
  if (buffers.size() > kInline) {
    many.resize(buffers.size());
    pointers = many.data();
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const BufferLocation& location = buffers[i];
    switch (location.kind) {
      case BufferLocation::kArgument:
        pointers[i] = arguments[location.index];
        break;
      case BufferLocation::kResult:
        pointers[i] = results[location.index];
        break;
      case BufferLocation::kArena:
        pointers[i] = arena + location.offset;
        break;
      case BufferLocation::kConstant:
        pointers[i] = const_cast<void*>(location.data);
        break;
    }
  }
  StartedCollectives started(options.communicator, num_asynchronous);
  RunState state{threads, options, arena, pointers, &started};
  if (options.step_times != nullptr || ProfilesSteps()) return RunTimed(state);
  for (const auto& step : steps) step->Run(state);
}

void StepSequence::RunTimed(const RunState& state) const {
  std::vector<StepTime>* const times = state.options.step_times;
  const bool profiles = ProfilesSteps();
  if (times != nullptr) times->reserve(steps.size());
  int64_t start = process::NowNanoseconds();
  for (const auto& step : steps) {
    const double cpu_start = profiles ? CpuMilliseconds() : 0;
    step->Run(state);
    const int64_t end = process::NowNanoseconds();
    if (times != nullptr) times->push_back({&step->description(), start, end});
    if (profiles) {
      AddStepTime(*step, static_cast<double>(end - start) * 1e-6, CpuMilliseconds() - cpu_start);
    }
    start = profiles ? process::NowNanoseconds() : end;
  }
}

const StepDescription& Step::description() const {
  std::call_once(is_described_, [this] {
    description_ = std::make_unique<const StepDescription>(
        describe_ == nullptr ? StepDescription() : describe_(instruction_));
  });
  return *description_;
}

std::string StepSequence::ToString() const {
  std::string text = name + ": arena of " + std::to_string(arena_bytes) + " bytes\n";
  for (size_t i = 0; i < buffers.size(); ++i) {
    const BufferLocation& location = buffers[i];
    static const char* const kKinds[] = {"argument", "result", "arena", "constant"};
    text +=
        "b" + std::to_string(i) + " = " + kKinds[location.kind] + " " +
        std::to_string(location.kind == BufferLocation::kArena ? location.offset : location.index) +
        "\n";
  }
  for (const auto& step : steps) text += step->ToString() + "\n";
  return text;
}

void KernelStep::Run(const RunState& state) const {
  Pointers pointers(state, buffers_);
  const double total = unit_cost_ * static_cast<double>(units_);
  const int threads = total < 2 * kMinimumChunk ? 1 : state.threads.num_threads();
  if (threads == 1 || units_ == 1) return function_(pointers.data(), 0, units_);
  int64_t chunks = std::min<int64_t>(static_cast<int64_t>(total / kMinimumChunk), 4 * threads);
  chunks = std::min(chunks, units_);
  state.threads.ParallelFor(chunks, [&](int64_t chunk) {
    function_(pointers.data(), chunk * units_ / chunks, (chunk + 1) * units_ / chunks);
  });
}

std::string KernelStep::ToString() const {
  return name_ + "(" + BufferNames(buffers_) + ") units " + std::to_string(units_) + " of " +
         std::to_string(static_cast<int64_t>(unit_cost_)) + " ns";
}

void LibraryStep::Run(const RunState& state) const {
  Pointers operands(state, operands_);
  Pointers results(state, results_);
  CallContext context{state.threads, state.options, state.arena + scratch_offset_};
  call_->Run(context, operands.data(), results.data());
}

std::string LibraryStep::ToString() const {
  return BufferNames(results_) + " = " + call_->Description() + "(" + BufferNames(operands_) + ")";
}

void ParallelCopy(ThreadPool& threads, void* to, const void* from, int64_t bytes) {
  if (to == from || bytes == 0) return;
  constexpr int64_t kChunk = 1 << 18;
  if (bytes < 2 * kChunk) {
    std::memcpy(to, from, bytes);
    return;
  }
  threads.ParallelFor(hlo::CeilDivide(bytes, kChunk), [&](int64_t chunk) {
    const int64_t begin = chunk * kChunk;
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                std::min(kChunk, bytes - begin));
  });
}

void CopyStep::Run(const RunState& state) const {
  ParallelCopy(state.threads, state.buffers[to_], state.buffers[from_], bytes_);
}

std::string CopyStep::ToString() const {
  return "b" + std::to_string(to_) + " = copy(b" + std::to_string(from_) + ") of " +
         std::to_string(bytes_) + " bytes";
}

void WhileStep::Run(const RunState& state) const {
  Pointers operands(state, operands_);
  Pointers results(state, results_);
  for (size_t i = 0; i < results_.size(); ++i) {
    ParallelCopy(state.threads, results.data()[i], operands.data()[i], bytes_[i]);
  }
  std::span<void* const> values(results.data(), results_.size());
  void* predicate = state.buffers[predicate_];
  while (true) {
    condition_.program->Run(values, {&predicate, 1}, state.arena + condition_.arena_offset,
                            state.threads, state.options);
    if (!*static_cast<const bool*>(predicate)) return;
    body_.program->Run(values, values, state.arena + body_.arena_offset, state.threads,
                       state.options);
  }
}

std::string WhileStep::ToString() const {
  return BufferNames(results_) + " = while(" + BufferNames(operands_) + ")\n" +
         Indented(condition_.program->ToString()) + Indented(body_.program->ToString());
}

void BranchStep::Run(const RunState& state) const {
  Pointers operands(state, operands_);
  Pointers results(state, results_);
  const void* selector = state.buffers[selector_];
  int64_t index = is_predicate_ ? (*static_cast<const bool*>(selector) ? 0 : 1)
                                : *static_cast<const int32_t*>(selector);
  const int64_t count = static_cast<int64_t>(branches_.size());
  if (index < 0 || index >= count) index = count - 1;
  const WhileStep::Part& branch = branches_[index];
  branch.program->Run({operands.data(), operands_.size()}, {results.data(), results_.size()},
                      state.arena + branch.arena_offset, state.threads, state.options);
}

std::string BranchStep::ToString() const {
  std::string text = BufferNames(results_) + " = branch(b" + std::to_string(selector_) + ", " +
                     BufferNames(operands_) + ")\n";
  for (const auto& branch : branches_) text += Indented(branch.program->ToString());
  return text;
}

void NativeStep::Run(const RunState& state) const {
  Pointers operands(state, operands_);
  Pointers results(state, results_);
  run_({state, operands.data(), results.data(), state.arena + scratch_offset_});
}

std::string NativeStep::ToString() const {
  return BufferNames(results_) + " = " + name_ + "(" + BufferNames(operands_) + ")";
}

}  // namespace cpu
