#include "lazy/sync.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lazy/capture.h"
#include "lazy/data.h"
#include "lazy/eager.h"
#include "lazy/graph.h"
#include "lazy/graph_observer.h"
#include "lazy/graph_run.h"
#include "lazy/live_data.h"
#include "lazy/metrics.h"
#include "lazy/run_queue.h"
#include "lazy/settings.h"
#include "lazy/span.h"
#include "lazy/sync_mutex.h"

namespace lazy {
namespace {

// All under SyncMutex.
struct Recording {
  int64_t cuts = 0;
  int64_t since_ns = 0;  // by SpanClock
  static Recording& On(const Device* device) {
    static auto* recordings = new std::unordered_map<const Device*, Recording>;
    return (*recordings)[device];
  }
};

std::vector<PendingCollective> TakeCollectives(Device* device) {
  std::lock_guard lock(device->pending_mutex);
  return std::exchange(device->pending_collectives, {});
}

// What the program did since the last cut is the recording of this graph.
void RecordRecording(Device* device, const Graph& graph, int64_t end_ns) {
  if (SpansRecordedSince() == 0) return;
  SpanRecord record{"xla::recording", Recording::On(device).since_ns, end_ns, {}};
  record.arguments.emplace_back("operations", static_cast<int64_t>(graph.nodes().size()));
  RecordSpan("recording xla:" + std::to_string(device->ordinal()), std::move(record));
}

// While the graph ran, other threads may have recorded work on roots, which no storage holds any
// more: they find the results there.
void LeaveResults(const Graph& graph, std::span<const Value> roots, std::span<const Value> leaves) {
  for (const Value& root : roots) {
    if (root.node->internal_references > 0) --root.node->internal_references;
  }
  for (size_t r = 0; r < roots.size(); ++r) {
    Node* node = roots[r].node.get();
    if (node->use_count() == node->internal_references) continue;
    node->SetComputed(roots[r].index, leaves[graph.result_of_root()[r]]);
  }
}

using Choice = std::optional<std::span<const Reference<Storage>>>;

// Of the device's pending storages those that are chosen; without a choice, all.
std::vector<Reference<Storage>> ChosenStorages(Device* device, Choice choice) {
  std::vector<Reference<Storage>> storages = PendingStorages(device);
  if (!choice) return storages;
  std::unordered_set<const Storage*> chosen;
  for (const Reference<Storage>& storage : *choice) chosen.insert(storage.get());
  std::erase_if(storages, [&](const auto& storage) { return !chosen.contains(storage.get()); });
  return storages;
}

// Moves those that were given up behind the others; gives them.
std::span<Reference<Storage>> GivenUpLast(std::span<Reference<Storage>> storages) {
  const auto is_given_up = [](const Reference<Storage>& storage) { return storage->is_given_up(); };
  if (std::ranges::none_of(storages, is_given_up)) return {};  // to move them asks for memory
  return std::ranges::stable_partition(storages, std::not_fn(is_given_up));
}

// What a sync computes.
struct Pending {
  std::vector<Reference<Storage>> storages;
  std::vector<Value> roots;       // their values
  std::vector<int64_t> replaced;  // the Data whose places the results take; 0: none
  std::vector<PendingCollective> collectives;

  void Take(Reference<Storage> storage, Donating donating) {
    auto [value, replaced_data] = storage->TakePending();
    if (!value) return;  // another thread has given it data meanwhile
    if (const Value* data = value.node->computed(value.index)) {
      storage->Materialize(value, *data);
      return;
    }
    storages.push_back(std::move(storage));
    roots.push_back(std::move(value));
    replaced.push_back(donating == Donating::kAll ? replaced_data : 0);
  }
};

Pending TakePending(std::span<Reference<Storage>> storages, Donating donating) {
  Pending pending;
  pending.storages.reserve(storages.size());
  pending.roots.reserve(storages.size());
  pending.replaced.reserve(storages.size());
  for (Reference<Storage>& storage : storages) pending.Take(std::move(storage), donating);
  return pending;
}

// What the graph of the pending storages computes on its way of those that were given up is pending
// again. Whether there is any.
bool TakeBack(Pending& pending, const Graph& graph, std::span<Reference<Storage>> given_up,
              Donating donating) {
  const size_t before = pending.roots.size();
  for (Reference<Storage>& storage : given_up) {
    if (graph.Contains(*storage->value().node)) pending.Take(std::move(storage), donating);
  }
  return pending.roots.size() != before;
}

// A graph of which nothing has run, because there is no program for it or none of its results has
// room: the error is told now, and then to whoever wants one of the values. Others that have come
// into the same graph are computed where they are wanted, and kept where a later graph has them.
// What was noted runs now or never.
void GiveUp(Device* device, const Pending& pending, Manner manner) {
  for (size_t r = 0; r < pending.roots.size(); ++r) pending.storages[r]->GiveUp(pending.roots[r]);
  if (pending.collectives.empty()) return;
  try {
    RunGraph(device, Graph({}, pending.collectives), manner);
  } catch (const std::exception&) {  // an error is being told
  }
}

void SyncPending(Device* device, Manner manner, Donating donating, Choice choice) {
  Span cut("xla::cut");
  const int64_t start_ns = cut ? SpanClock() : 0;
  std::vector<Reference<Storage>> storages = ChosenStorages(device, choice);
  const std::span<Reference<Storage>> given_up = GivenUpLast(storages);
  Pending pending =
      TakePending(std::span(storages).first(storages.size() - given_up.size()), donating);
  pending.collectives = TakeCollectives(device);
  if (pending.roots.empty() && pending.collectives.empty()) return;
  static auto* synced = Counter("SyncTensorsToData");
  Count(synced);
  try {
    std::optional<Graph> graph(std::in_place, pending.roots, pending.collectives);
    if (TakeBack(pending, *graph, given_up, donating)) {
      graph.emplace(pending.roots, pending.collectives);
    }
    // Each root is held by its storage and by `pending`.
    graph->PlanDonation(pending.replaced, 2, donating != Donating::kNothing);
    cut.End();
    RecordRecording(device, *graph, start_ns);
    const std::vector<Value> leaves = RunGraph(device, *graph, manner);
    for (size_t r = 0; r < pending.roots.size(); ++r) {
      pending.storages[r]->Materialize(pending.roots[r], leaves[graph->result_of_root()[r]]);
    }
    LeaveResults(*graph, pending.roots, leaves);
  } catch (...) {
    GiveUp(device, pending, manner);
    throw;
  }
  ++Recording::On(device).cuts;
  if (SpansRecordedSince() != 0) Recording::On(device).since_ns = SpanClock();
}

std::unique_lock<SyncLock> LockOfSyncs() {
  static Metric* time = Metric::Get("DeviceLockWait");
  const TimedSection timed(time);
  return std::unique_lock(SyncMutex());
}

// Of what has been started all, for who waits, or else only what is too much in flight. The results
// have their places, so that the user may interrupt it.
void Await(Device* device, Manner manner) {
  manner.next == Next::kWaits ? WaitFor(device) : LimitInFlight(device);
}

// Of all that has been started; other threads may go on.
void RaiseOfAll(Device* device) {
  RaiseFailedRuns(device, /*of_all=*/true);
  device->value_checks.RaiseThrough(device->value_checks.last_run());
}

void SyncThen(Device* device, Manner manner, Donating donating = Donating::kAll,
              Choice choice = std::nullopt) {
  Span span("xla::sync");
  if (span) span.Add("reason", CurrentCutReason().ToString());
  {
    const std::unique_lock lock = LockOfSyncs();
    CheckNotObserved();
    Runtime::Get().CheckNotForked();
    ExplainingMemory([&] { SyncPending(device, manner, donating, choice); });
  }
  Await(device, manner);
  // Who reads is told with the value.
  if (manner.next == Next::kWaits) {
    RaiseOfAll(device);
  } else if (manner.next == Next::kGoesOn && !manner.is_eager) {
    RaiseFailedRuns(device, /*of_all=*/false);
    device->value_checks.RaiseOfFinished();
  }
}

void CheckAllowed() {
  if (AllowExecution()) return;
  ReportRefused();
  throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                   "Unexpected execution happens inside the compiled function, exiting: a value is "
                   "read before the function returns, and full_graph was asked for");
}

}  // namespace

void NoteCollective(Device* device, const Reference<Node>& node) {
  if (CaptureScope* capture = CaptureScope::Current()) return capture->NoteCollective();
  std::lock_guard lock(device->pending_mutex);
  device->pending_collectives.push_back({node, SourceScope::Current()});
}

void NoteAssertion(Device* device, const Reference<Node>& node) {
  std::lock_guard lock(device->pending_mutex);
  device->pending_collectives.push_back({node, {}});
}

void Sync(Device* device, bool wait, Donating donating) {
  SyncThen(device, {wait ? Next::kWaits : Next::kGoesOn}, donating);
}

void SyncOnly(Device* device, std::span<const Reference<Storage>> storages, bool wait,
              Donating donating) {
  SyncThen(device, {wait ? Next::kWaits : Next::kGoesOn}, donating, storages);
}

std::vector<Value> ComputeEagerly(Device* device, std::span<const Value> values, bool wait) {
  Graph graph(values);
  const Manner manner{wait ? Next::kWaits : Next::kGoesOn, /*is_eager=*/true};
  std::vector<Value> leaves = ExplainingMemory([&] { return RunGraph(device, graph, manner); });
  Await(device, manner);
  if (wait) RaiseOfAll(device);
  std::vector<Value> computed;
  for (size_t i = 0; i < values.size(); ++i) computed.push_back(leaves[graph.result_of_root()[i]]);
  return computed;
}

void SyncEagerly(Device* device) {
  static Metric* time = Metric::Get("EagerOpExecuteTime");
  TimedSection timed(time);
  const bool waits = CurrentExecution() == Execution::kAsCalledAwaited;
  SyncThen(device, {waits ? Next::kWaits : Next::kGoesOn, /*is_eager=*/true});
}

int64_t CutCount(const Device* device) {
  std::lock_guard lock(SyncMutex());
  return Recording::On(device).cuts;
}

Reference<Data> Materialized(const Reference<Storage>& storage) {
  Value value = storage->value();
  if (value.node->role() == Node::Role::kOperation) {
    CheckAllowed();
    value = Value();
    SyncThen(storage->device(), {Next::kReads});
    value = storage->value();
  }
  Reference<Data> data = Evaluate(storage->device(), value);
  // Of a storage that no sync computes, because a capture made it.
  if (value.node->role() == Node::Role::kOperation) {
    storage->Materialize(value, {Node::MakeData(data, value.shape_ref()), 0});
  }
  return data;
}

Reference<Data> Evaluate(Device* device, const Value& value) {
  if (value.node->role() == Node::Role::kData) return value.node->data();
  CheckAllowed();
  std::lock_guard lock(SyncMutex());
  Runtime::Get().CheckNotForked();
  if (const Value* data = value.node->computed(value.index)) return data->node->data();
  if (const CaptureScope* capture = CaptureScope::Current(); capture && capture->draws()) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "a captured graph reads a value after it has drawn numbers, which each call "
                     "draws anew");
  }
  if (value.node->role() == Node::Role::kScalar) {
    return Data::FromHost(device, value.shape(), value.node->scalar().data());
  }
  Graph graph(std::span<const Value>(&value, 1));
  std::vector<Value> leaves =
      ExplainingMemory([&] { return RunGraph(device, graph, {Next::kReads}); });
  LimitInFlight(device);
  return leaves[0].node->data();
}

}  // namespace lazy
