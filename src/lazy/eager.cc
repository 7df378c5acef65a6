#include "lazy/eager.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/error.h"
#include "lazy/capture.h"
#include "lazy/data.h"
#include "lazy/device.h"
#include "lazy/interpreter.h"
#include "lazy/live_data.h"
#include "lazy/location.h"
#include "lazy/metrics.h"
#include "lazy/span.h"
#include "lazy/sync.h"
#include "lazy/sync_mutex.h"
#include "lazy/work_estimate.h"
#include "process/fork.h"

namespace lazy {
namespace {

// By estimate: what a program takes to be found and started. Below it a kernel on the caller's
// thread is the quicker way.
constexpr double kMostKernelNs = 100'000;
// Operations that are remembered; then all are forgotten, which costs time only.
constexpr size_t kMostEstimates = 1 << 16;

std::atomic<Execution> execution{[] {
  const char* word = std::getenv("XLA_USE_EAGER_DEBUG_MODE");
  const std::string_view text = word == nullptr ? "" : word;
  return text.empty() || text == "0" || text == "false" ? Execution::kAtSync
                                                        : Execution::kAsCalledAwaited;
}()};

thread_local int record_only_scopes = 0;

constexpr std::pair<const char*, Execution> kExecutionWords[] = {
    {"lazy", Execution::kAtSync},
    {"eager", Execution::kAsCalled},
    {"eager_wait", Execution::kAsCalledAwaited},
};

// Estimates of operations that have run, by number.
class Estimates {
 public:
  // Infinite for what has no kernel.
  double& Of(const Operation& operation) {
    if (by_number_.size() > kMostEstimates) by_number_.clear();
    auto [it, is_new] = by_number_.try_emplace(operation.number());
    if (is_new) {
      it->second = operation.kind().eager_form == nullptr ? kNoKernel : WorkOf(operation);
    }
    return it->second;
  }
  bool Knows(const Operation& operation) const { return by_number_.contains(operation.number()); }

  static constexpr double kNoKernel = std::numeric_limits<double>::infinity();

 private:
  std::unordered_map<uint64_t, double> by_number_;
};

Estimates& AllEstimates() {
  static auto* estimates = new Estimates;
  return *estimates;
}

// Takes the work of the node, and of what it needs, off the room that there is.
bool FitsInto(double& room, const Node& node) {
  room -= AllEstimates().Of(*node.operation());
  for (const Value& operand : node.operands()) {
    if (room < 0) break;
    if (operand.node->role() == Node::Role::kOperation) FitsInto(room, *operand.node);
  }
  return room >= 0;
}

// Of the data that it needs.
int64_t LastCheckedRun(const Node& node) {
  int64_t last = 0;
  for (const Value& operand : node.operands()) {
    const Value* computed = operand.node->computed(operand.index);
    const Node& maker = computed != nullptr ? *computed->node : *operand.node;
    const bool is_data = maker.role() == Node::Role::kData;
    last = std::max(last, is_data ? maker.data()->last_checked_run() : LastCheckedRun(maker));
  }
  return last;
}

std::optional<std::vector<Value>> RunByKernels(Device* device, Node* node) {
  double room = kMostKernelNs;
  if (!HasKernels() || !FitsInto(room, *node)) return std::nullopt;
  std::optional<std::vector<Reference<Data>>> results;
  try {
    results = ResultsByKernels(device, node);
  } catch (const OperandFailed&) {
    return std::nullopt;  // a program's results fail likewise
  }
  if (!results) {
    AllEstimates().Of(*node->operation()) = Estimates::kNoKernel;
    return std::nullopt;
  }
  const int64_t last_checked_run = LastCheckedRun(*node);
  std::vector<Value> leaves;
  for (Reference<Data>& data : *results) {
    if (!data) {
      leaves.emplace_back();
      continue;
    }
    NoteMaker(data.get(), &node->operation()->kind(), LocationOf(node));
    data->set_last_checked_run(last_checked_run);
    const ShapeRef shape = data->shape();
    leaves.push_back({Node::MakeData(std::move(data), shape), 0});
  }
  return leaves;
}

std::vector<Value> RunByProgram(Device* device, const Reference<Node>& node) {
  std::vector<Value> roots;
  const auto shapes = node->operation()->result_shapes();
  for (uint32_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i] != nullptr) roots.push_back({node, i});
  }
  std::vector<Value> computed =
      ComputeEagerly(device, roots, CurrentExecution() == Execution::kAsCalledAwaited);
  std::vector<Value> leaves(shapes.size());
  for (size_t r = 0; r < roots.size(); ++r) leaves[roots[r].index] = std::move(computed[r]);
  return leaves;
}

}  // namespace

Execution ExecutionOf(std::string_view word) {
  for (const auto& [name, value] : kExecutionWords) {
    if (word == name) return value;
  }
  throw hlo::Error("operations run lazy, eager or eager_wait, and not '" + std::string(word) + "'");
}

std::string WordFor(Execution some) { return kExecutionWords[static_cast<size_t>(some)].first; }

void SetExecution(Execution some) { execution = some; }
Execution CurrentExecution() { return execution.load(std::memory_order_relaxed); }

RecordOnly::RecordOnly() { ++record_only_scopes; }
RecordOnly::~RecordOnly() { --record_only_scopes; }

bool RunsAsCalled() {
  return CurrentExecution() != Execution::kAtSync && record_only_scopes == 0 &&
         CaptureScope::Current() == nullptr;
}

Value RunNow(Device* device, Value value) {
  static Metric* first_time = Metric::Get("EagerOpCompileTime");
  static Metric* time = Metric::Get("EagerOpExecuteTime");
  const process::MayFork waits;
  std::lock_guard lock(SyncMutex());
  const Reference<Node>& node = value.node;
  if (const Value* data = node->computed(value.index)) return *data;
  Runtime::Get().CheckNotForked();
  Span span("xla::eager", node->operation()->kind().name);
  std::optional<TimedSection> first;
  if (!AllEstimates().Knows(*node->operation())) first.emplace(first_time);
  TimedSection timed(time);
  std::optional<std::vector<Value>> leaves = RunByKernels(device, node.get());
  if (!leaves) leaves = RunByProgram(device, node);
  Value result = (*leaves)[value.index];
  if (leaves->size() == 1) return result;
  for (uint32_t i = 0; i < leaves->size(); ++i) {
    if ((*leaves)[i]) node->SetComputed(i, std::move((*leaves)[i]));
  }
  return result;
}

}  // namespace lazy
