#include "aten/cached_graph.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "aten/captured_steps.h"
#include "aten/op.h"
#include "aten/placeholder.h"
#include "aten/tensor.h"
#include "lazy/data.h"
#include "lazy/graph.h"
#include "lazy/metrics.h"
#include "lazy/storage.h"
#include "lazy/sync_mutex.h"
#include "process/fork.h"

namespace torch_xla {
namespace {

constexpr size_t kMostGraphs = 2048;

struct KeptGraph {
  lazy::Device* device;
  std::vector<lazy::SharedShape> inputs;
  CapturedWork work;
};

// Those kept last.
class KeptGraphs {
 public:
  static KeptGraphs& Get() {
    static auto* graphs = new KeptGraphs;
    return *graphs;
  }

  void Keep(uint64_t hash, std::shared_ptr<const KeptGraph> graph) {
    std::lock_guard lock(mutex_);
    if (!graphs_.insert_or_assign(hash, std::move(graph)).second) return;
    order_.push_back(hash);
    if (order_.size() <= kMostGraphs) return;
    graphs_.erase(order_.front());
    order_.pop_front();
  }

  std::shared_ptr<const KeptGraph> Find(uint64_t hash) {
    std::lock_guard lock(mutex_);
    const auto found = graphs_.find(hash);
    return found == graphs_.end() ? nullptr : found->second;
  }

 private:
  process::Mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<const KeptGraph>> graphs_;
  std::deque<uint64_t> order_;
};

// Transformations of functions have tensors that say that they are on xla, too.
bool HasValue(const at::Tensor& tensor) { return IsXla(tensor) && !IsTracedOnly(tensor); }

std::vector<lazy::Value> RecordedValues(at::TensorList tensors) {
  std::vector<lazy::Value> values;
  for (const at::Tensor& tensor : tensors) {
    if (HasValue(tensor)) values.push_back(ReadValue(tensor));
  }
  return values;
}

// The distinct ones that are recorded work.
std::vector<lazy::Value> PendingAmong(const std::vector<lazy::Value>& values) {
  std::vector<lazy::Value> pending;
  for (const lazy::Value& value : values) {
    const bool is_pending = value.node->role() == lazy::Node::Role::kOperation;
    if (is_pending && std::ranges::find(pending, value) == pending.end()) pending.push_back(value);
  }
  return pending;
}

// A kept graph holds its numbers, which are no part of a cut's hash; but draws its keys of random
// numbers, the scalars with a dimension, anew.
uint64_t HashOfNumbers(const lazy::Graph& graph) {
  uint64_t hash = 0;
  for (const lazy::Node* node : graph.nodes()) {
    if (node->role() != lazy::Node::Role::kScalar || node->shape(0)->rank() != 0) continue;
    for (const std::byte byte : node->scalar()) {
      hash = hlo::CombineHash(hash, static_cast<uint64_t>(byte));
    }
  }
  return hash;
}

uint64_t HashOfCut(std::span<const lazy::Value> values, bool heeds_wishes) {
  std::lock_guard lock(lazy::SyncMutex());
  lazy::Graph graph(values);  // as a sync cuts it
  graph.PlanDonation({}, 1, heeds_wishes);
  return hlo::CombineHash(graph.hash(), HashOfNumbers(graph));
}

std::vector<lazy::Value> DataLeavesOf(std::span<const lazy::Value> values) {
  std::lock_guard lock(lazy::SyncMutex());
  const lazy::Graph graph = lazy::Graph::ToShow(values);
  std::vector<lazy::Value> leaves;
  for (lazy::Node* leaf : graph.data_leaves()) {
    leaves.push_back({lazy::Reference<lazy::Node>(leaf), 0});
  }
  return leaves;
}

}  // namespace

uint64_t GraphHash(at::TensorList tensors, bool heeds_wishes) {
  return HashOfCut(RecordedValues(tensors), heeds_wishes);
}

void KeepGraph(at::TensorList tensors, bool heeds_wishes) {
  const std::vector<lazy::Value> values = RecordedValues(tensors);
  const std::vector<lazy::Value> roots = PendingAmong(values);
  if (roots.empty()) return;
  auto graph = std::make_shared<KeptGraph>();
  const auto on_xla = std::ranges::find_if(tensors, HasValue);
  graph->device = Impl(*on_xla)->xla_device();
  const std::vector<lazy::Value> leaves = DataLeavesOf(values);
  for (const lazy::Value& leaf : leaves) graph->inputs.emplace_back(leaf.shape_ref());
  graph->work = KeepWork(leaves, roots, KeysOfWork::kAllAnew);
  KeptGraphs::Get().Keep(HashOfCut(values, heeds_wishes), std::move(graph));
}

std::vector<at::Tensor> RunKeptGraph(uint64_t hash, at::TensorList inputs) {
  const auto graph = KeptGraphs::Get().Find(hash);
  TORCH_CHECK(graph != nullptr,
              "no graph is kept under this hash: record it, and give its results "
              "to _xla_warm_up_cache before _run_cached_graph");
  TORCH_CHECK(inputs.size() == graph->inputs.size(), "the graph takes ", graph->inputs.size(),
              " tensors, not ", inputs.size());
  static auto* taken = lazy::Metric::Get("RunCachedGraphInputData", lazy::MetricUnit::kNumber);
  taken->AddSample(static_cast<double>(inputs.size()));
  const c10::Device device = ToTorchDevice(graph->device);
  std::vector<lazy::Value> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor input = inputs[i].to(device);
    TORCH_CHECK(HasValue(input), "input ", i,
                " of the graph is no dense tensor with a value: ", input.toString());
    operands.push_back(ReadValue(input));
    TORCH_CHECK(operands.back().shape_ref() == graph->inputs[i].get(), "input ", i,
                " of the graph is to be ", graph->inputs[i]->ToString(), ", not ",
                operands.back().shape().ToString());
  }
  for (lazy::Value& constant : graph->work.ConstantsForCall(graph->device)) {
    operands.push_back(std::move(constant));
  }
  auto results = RecordOn<&CallGraph>(device, operands, graph->work.steps);
  static auto* made = lazy::Metric::Get("RunCachedGraphOutputData", lazy::MetricUnit::kNumber);
  made->AddSample(static_cast<double>(results.size()));
  return results;
}

void ForgetPending(lazy::Device* device) {
  for (const auto& storage : lazy::PendingStorages(device)) {
    const lazy::Value value = storage->value();
    storage->Replace(&value, PlaceholderValue(device, value.shape_ref()));
  }
}

}  // namespace torch_xla
