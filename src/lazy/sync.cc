#include "lazy/sync.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <deque>
#include <list>
#include <unordered_map>
#include <utility>

#include "hlo/text_writer.h"
#include "lazy/data.h"
#include "lazy/device.h"
#include "lazy/live_data.h"
#include "lazy/location.h"
#include "lazy/metrics.h"
#include "lazy/op.h"
#include "lazy/persistent_cache.h"
#include "lazy/span.h"
#include "process/limits.h"

namespace lazy {
namespace {

using Overrides = std::map<std::string, std::variant<std::string, bool, int64_t, double>>;

struct Program {
  std::vector<uint64_t> signature;
  std::unique_ptr<pjrt::LoadedExecutable> executable;
  // Kept, because the signature has their numbers, which they would not get again.
  std::vector<OperationReference> operations;
  int64_t bytes = 0;  // of memory, as far as that is known
};

// A positive number from the environment.
int64_t Limit(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  const int64_t value = text != nullptr ? std::atoll(text) : 0;
  return value > 0 ? value : otherwise;
}

// Least recently used programs go first: those beyond XLA_COMPILATION_CACHE_SIZE in number or
// TORCH_XLA_COMPILATION_CACHE_BYTES in memory. The one used last stays.
class ProgramCache {
 public:
  // Shared: an observer of a program's run may clear the cache.
  std::shared_ptr<const Program> Find(uint64_t hash, const std::vector<uint64_t>& signature) {
    auto [begin, end] = index_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (it->second->second->signature != signature) continue;
      programs_.splice(programs_.begin(), programs_, it->second);
      return it->second->second;
    }
    return nullptr;
  }
  void Insert(uint64_t hash, std::shared_ptr<const Program> program) {
    bytes_ += program->bytes;
    programs_.emplace_front(hash, std::move(program));
    index_.emplace(hash, programs_.begin());
    while (programs_.size() > 1 && (size() > max_size_ || bytes_ > max_bytes_)) {
      Evict(std::prev(programs_.end()));
    }
  }
  void Clear() {
    index_.clear();
    programs_.clear();
    bytes_ = 0;
  }
  int64_t size() const { return static_cast<int64_t>(programs_.size()); }
  int64_t bytes() const { return bytes_; }

 private:
  using List = std::list<std::pair<uint64_t, std::shared_ptr<const Program>>>;
  void Evict(List::iterator victim) {
    bytes_ -= victim->second->bytes;
    auto [begin, end] = index_.equal_range(victim->first);
    for (auto it = begin; it != end; ++it) {
      if (it->second != victim) continue;
      index_.erase(it);
      break;
    }
    programs_.erase(victim);
  }
  const int64_t max_size_ = Limit("XLA_COMPILATION_CACHE_SIZE", 2048);
  const int64_t max_bytes_ = Limit("TORCH_XLA_COMPILATION_CACHE_BYTES", int64_t{1} << 30);
  int64_t bytes_ = 0;
  List programs_;
  std::unordered_multimap<uint64_t, List::iterator> index_;
};

// Everything under SyncMutex; never destroyed.
struct State {
  std::recursive_mutex mutex;
  ProgramCache cache;
  Overrides overrides;
  uint64_t overrides_hash = 0;
  std::unordered_map<Device*, std::deque<pjrt::Event>> in_flight;
  std::unordered_map<Device*, int64_t> recording_since;  // by SpanClock
  std::unordered_map<const Device*, int64_t> cuts;
  std::function<void(const GraphEvent&)> observer;
  std::string graph_name;
  std::string mat_mul_precision = "default";
  static State& Get() {
    static State* state = new State;
    return *state;
  }
};

// Executions that may be started and unfinished on one device: enough that recording the next step
// overlaps this one, few enough that their buffers do not pile up.
constexpr size_t kInFlightLimit = 2;

void Await(const pjrt::Event& event) {
  if (event.IsReady()) return event.Await();
  Span span("xla::wait");
  event.Await();
}

void LimitInFlight(Device* device, pjrt::Event done, bool wait) {
  auto& queue = State::Get().in_flight[device];
  queue.push_back(std::move(done));
  while (!queue.empty() && (wait || queue.size() > kInFlightLimit || queue.front().IsReady())) {
    pjrt::Event oldest = std::move(queue.front());
    queue.pop_front();
    Await(oldest);
  }
}

void WaitFor(Device* device) {
  auto& queue = State::Get().in_flight[device];
  while (!queue.empty()) {
    pjrt::Event oldest = std::move(queue.front());
    queue.pop_front();
    Await(oldest);
  }
}

// What the device holds, in bytes; 0 if nobody knows.
int64_t MemoryLimit(Device* device) {
  try {
    if (auto limit = device->pjrt_device().memory_stats().bytes_limit) return *limit;
  } catch (const hlo::Error&) {
    // Not every plugin says.
  }
  if (device->client().platform_name() != "cpu") return 0;
  static const int64_t limit = process::MemoryLimit();
  return limit;
}

// Before anything is compiled for results that no execution could hold.
void CheckResultsFit(Device* device, const Graph& graph) {
  int64_t limit = MemoryLimit(device);
  if (limit <= 0) return;
  int64_t total = 0;
  for (const Value& result : graph.results()) {
    const hlo::Shape& shape = result.shape();
    int64_t bytes = shape.byte_size();
    total += bytes;
    if (bytes <= limit && total <= limit) continue;
    throw hlo::Error(hlo::ErrorCode::kResourceExhausted,
                     "out of memory: the results of the recorded operations, among them " +
                         shape.ToString() + " of " + result.node->operation()->kind().name +
                         ", need " + std::to_string(total) + " bytes and the device has " +
                         std::to_string(limit));
  }
}

// Whether its results depend on the other processes, or on which one this is.
bool IsOfWorld(hlo::Opcode opcode) {
  return hlo::IsCollective(opcode) || opcode == hlo::Opcode::kReplicaId;
}

// A program in which no other process takes part is this device's own.
pjrt::CompileOptions OptionsFor(Device* device, const hlo::Module& module) {
  pjrt::CompileOptions options;
  options.overrides = State::Get().overrides;
  options.device_assignment = {device->pjrt_device().id()};
  const Runtime& runtime = Runtime::Get();
  if (runtime.world_size() > 1 && module.Contains(&IsOfWorld)) {
    options.num_replicas = runtime.world_size();
    options.device_assignment = runtime.world_devices();
  }
  return options;
}

std::string NameOf(const Graph& graph) {
  const std::string& given = State::Get().graph_name;
  return (given.empty() ? "SyncTensorsGraph" : given) + "." + std::to_string(graph.nodes().size());
}

// Each once.
std::vector<OperationReference> OperationsOf(const Graph& graph) {
  std::vector<const Operation*> operations;
  for (const Node* node : graph.nodes()) operations.push_back(node->operation());
  std::sort(operations.begin(), operations.end());
  operations.erase(std::unique(operations.begin(), operations.end()), operations.end());
  return {operations.begin(), operations.end()};
}

// What a program takes of the host's memory: its code, and what describes it.
int64_t BytesOf(const Program& program, const hlo::Module& module) {
  // As measured of the engine's programs, small ones and large ones, beside their code.
  constexpr int64_t kBytesOfProgram = 16 << 10, kBytesOfInstruction = 2 << 10;
  int64_t bytes = kBytesOfProgram;
  for (const auto& computation : module.computations()) {
    bytes += static_cast<int64_t>(computation->instructions().size()) * kBytesOfInstruction;
    for (const auto& instruction : computation->instructions()) {
      if (instruction->opcode() == hlo::Opcode::kConstant)
        bytes += instruction->shape().byte_size();
    }
  }
  bytes += static_cast<int64_t>(program.signature.size() * sizeof(uint64_t));
  try {
    bytes += std::max<int64_t>(0, program.executable->executable().generated_code_bytes());
  } catch (const hlo::Error&) {
    // Not every plugin says.
  }
  return bytes;
}

std::shared_ptr<const Program> CompileProgram(Device* device, const Graph& graph, uint64_t hash,
                                              std::vector<uint64_t> signature) {
  static Metric* aliases = Metric::Get("InputOutputAliasCount", MetricUnit::kNumber);
  State& state = State::Get();
  CheckResultsFit(device, graph);
  aliases->AddSample(static_cast<double>(graph.donations().size()));
  auto module = [&] {
    Span span("xla::lower");
    return graph.Lower(NameOf(graph));
  }();
  if (const char* path = std::getenv("XLA_SAVE_HLO_FILE")) {
    if (FILE* file = std::fopen(path, "a")) {
      std::string text = hlo::WriteStablehloText(*module);
      std::fwrite(text.data(), 1, text.size(), file);
      std::fclose(file);
    }
  }
  auto program = std::make_shared<Program>();
  program->signature = std::move(signature);
  program->executable = CompileOrLoad(device->client(), *module, OptionsFor(device, *module));
  program->operations = OperationsOf(graph);
  program->bytes = BytesOf(*program, *module);
  state.cache.Insert(hash, program);
  return program;
}

// The buffers of the arguments; those of scalars are made here and owned by `owned`.
std::vector<const pjrt::Buffer*> Arguments(Device* device, const Graph& graph,
                                           std::vector<std::unique_ptr<pjrt::Buffer>>* owned) {
  std::vector<const pjrt::Buffer*> arguments;
  for (const Node* leaf : graph.data_leaves()) {
    leaf->data()->MoveToCurrentClient();
    arguments.push_back(&leaf->data()->buffer());
  }
  for (const ScalarPack& pack : graph.scalar_packs()) {
    owned->push_back(device->client().BufferFromHost(
        pack.bytes.data(), hlo::Shape(pack.type, {pack.count}), device->pjrt_device()));
    arguments.push_back(owned->back().get());
  }
  return arguments;
}

// In a profile the launch and the device's own record of it bear one number. Other engines compare
// the numbers of the processes of a world, which need not run the same programs.
int LaunchNumber() {
  static int last = 0;
  const Runtime& runtime = Runtime::Get();
  if (runtime.world_size() > 1 && runtime.options().device_type != "CPU") return 0;
  last = last == INT_MAX ? 1 : last + 1;
  return last;
}

pjrt::ExecuteResult Execute(Device* device, const Graph& graph,
                            const pjrt::LoadedExecutable& executable) {
  Span span("xla::execute");
  pjrt::ExecuteOptions options;
  if (span) {
    options.launch_id = LaunchNumber();
    span.Add("program", NameOf(graph));
    span.Add("device", "xla:" + std::to_string(device->ordinal()));
    span.Add("run_id", int64_t{options.launch_id});
  }
  std::vector<std::unique_ptr<pjrt::Buffer>> owned;
  return executable.Execute(Arguments(device, graph, &owned), options);
}

void CheckDevices(Device* device, const Graph& graph) {
  for (const Node* leaf : graph.data_leaves()) {
    if (leaf->data()->device() == device) continue;
    throw hlo::Error("a computation on xla:" + std::to_string(device->ordinal()) +
                     " has an operand of shape " + leaf->data()->shape()->ToString() +
                     " on xla:" + std::to_string(leaf->data()->device()->ordinal()) +
                     "; move it with .to() first");
  }
}

// What the observer, if there is one, is told about one graph.
class Observation {
 public:
  Observation(const Graph& graph, uint64_t hash) : observer_(State::Get().observer) {
    if (!observer_) return;
    event_.hash = hash;
    event_.inputs = graph.data_leaves().size() + graph.scalar_packs().size();
    event_.outputs = graph.results().size();
    event_.graph = &graph;
    event_.name = State::Get().graph_name;
    event_.reason = CurrentCutReason();
  }
  void Report(GraphEvent::Stage stage) {
    if (!observer_) return;
    event_.stage = stage;
    start_ = std::chrono::steady_clock::now();
    observer_(event_);
  }
  void ReportCompiled(const pjrt::LoadedExecutable& executable) {
    if (!observer_) return;
    event_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    try {
      event_.memory = executable.executable().memory_stats();
    } catch (const hlo::Error&) {
      // Not every plugin says.
    }
    Report(GraphEvent::Stage::kCompiled);
  }

 private:
  const std::function<void(const GraphEvent&)>& observer_;
  GraphEvent event_{};
  std::chrono::steady_clock::time_point start_;
};

// Runs the graph; the results as data leaves, one for each of graph.results().
std::vector<Value> Run(Device* device, const Graph& graph, bool wait) {
  static auto* cached = Counter("CachedCompile");
  static auto* executed = Counter("ExecuteComputation");
  static Metric* time = Metric::Get("ExecuteTime");
  static Metric* size = Metric::Get("TensorsGraphSize", MetricUnit::kNumber);
  State& state = State::Get();
  CheckDevices(device, graph);
  std::vector<uint64_t> signature = graph.signature();
  signature.push_back(static_cast<uint64_t>(device->ordinal()));
  signature.push_back(state.overrides_hash);
  uint64_t hash = graph.hash();
  Span lookup("xla::cache_lookup");
  std::shared_ptr<const Program> program = state.cache.Find(hash, signature);
  lookup.Add("hit", int64_t{program != nullptr});
  lookup.End();
  size->AddSample(static_cast<double>(graph.nodes().size()));
  Observation observation(graph, hash);
  observation.Report(GraphEvent::Stage::kCut);
  if (program == nullptr) {
    observation.Report(GraphEvent::Stage::kCompile);
    program = CompileProgram(device, graph, hash, std::move(signature));
    observation.ReportCompiled(*program->executable);
  } else {
    Count(cached);
  }
  observation.Report(GraphEvent::Stage::kExecute);
  Count(executed);
  TimedSection timed(time);
  pjrt::ExecuteResult result = Execute(device, graph, *program->executable);
  for (const Donation& donation : graph.donations()) {
    graph.data_leaves()[donation.parameter]->data()->Drop();
  }
  std::vector<Value> leaves;
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    ShapeRef shape = graph.results()[i].shape_ref();
    Reference<Data> data(new Data(device, shape, std::move(result.outputs[i])));
    const Node* maker = graph.results()[i].node.get();
    NoteMaker(data.get(), &maker->operation()->kind(), LocationOf(maker));
    leaves.push_back({Node::MakeData(std::move(data), shape), 0});
  }
  LimitInFlight(device, std::move(result.done), wait);
  return leaves;
}

std::vector<Collective> TakeCollectives(Device* device) {
  std::lock_guard lock(device->pending_mutex);
  return std::exchange(device->pending_collectives, {});
}

// What the program did since the last cut is the recording of this graph.
void RecordRecording(Device* device, const Graph& graph, int64_t end_ns) {
  if (SpansRecordedSince() == 0) return;
  SpanRecord record{"xla::recording", State::Get().recording_since[device], end_ns, {}};
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

void SyncPending(Device* device, bool wait) {
  Span cut("xla::cut");
  const int64_t start_ns = cut ? SpanClock() : 0;
  std::vector<Reference<Storage>> storages;
  std::vector<Value> roots;
  std::vector<int64_t> replaced;
  for (Reference<Storage>& storage : PendingStorages(device)) {
    auto [value, replaced_data] = storage->TakePending();
    if (!value) continue;  // another thread has given it data meanwhile
    if (const Value* data = value.node->computed(value.index)) {
      storage->Materialize(value, *data);
      continue;
    }
    storages.push_back(std::move(storage));
    roots.push_back(std::move(value));
    replaced.push_back(replaced_data);
  }
  std::vector<Collective> collectives = TakeCollectives(device);
  if (roots.empty() && collectives.empty()) return;
  static auto* synced = Counter("SyncTensorsToData");
  Count(synced);
  std::vector<Value> leaves;
  Graph graph(roots, collectives);
  // Each root is held by its storage and by `roots`.
  graph.PlanDonation(replaced, 2);
  cut.End();
  RecordRecording(device, graph, start_ns);
  try {
    leaves = Run(device, graph, wait);
  } catch (...) {
    // Nothing has run: the next sync tries again.
    std::lock_guard lock(device->pending_mutex);
    auto& pending = device->pending_collectives;
    pending.insert(pending.begin(), collectives.begin(), collectives.end());
    throw;
  }
  for (size_t r = 0; r < roots.size(); ++r) {
    storages[r]->Materialize(roots[r], leaves[graph.result_of_root()[r]]);
  }
  LeaveResults(graph, roots, leaves);
  ++State::Get().cuts[device];
  if (SpansRecordedSince() != 0) State::Get().recording_since[device] = SpanClock();
}

std::atomic<bool> allow_execution{true};

void CheckAllowed() {
  if (allow_execution.load(std::memory_order_relaxed)) return;
  {
    std::lock_guard lock(SyncMutex());
    if (const auto& observer = State::Get().observer) {
      GraphEvent event;
      event.stage = GraphEvent::Stage::kRefused;
      event.name = State::Get().graph_name;
      event.reason = CurrentCutReason();
      observer(event);
    }
  }
  throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                   "Unexpected execution happens inside the compiled function, exiting: a value is "
                   "read before the function returns, and full_graph was asked for");
}

}  // namespace

void SetAllowExecution(bool allow) { allow_execution = allow; }
bool AllowExecution() { return allow_execution; }

void SetGraphName(const std::string& name) {
  std::lock_guard lock(SyncMutex());
  State::Get().graph_name = name;
}
std::string GraphName() {
  std::lock_guard lock(SyncMutex());
  return State::Get().graph_name;
}

void SetMatMulPrecision(const std::string& precision) {
  if (precision != "default" && precision != "high" && precision != "highest") {
    throw hlo::Error("the precision of matrix products is default, high or highest, not " +
                     precision);
  }
  std::lock_guard lock(SyncMutex());
  State::Get().mat_mul_precision = precision;
}
std::string MatMulPrecision() {
  std::lock_guard lock(SyncMutex());
  return State::Get().mat_mul_precision;
}

std::recursive_mutex& SyncMutex() { return State::Get().mutex; }

void NoteCollective(Device* device, const Reference<Node>& node) {
  std::lock_guard lock(device->pending_mutex);
  device->pending_collectives.push_back({node, SourceScope::Current()});
}

void Sync(Device* device, bool wait) {
  Span span("xla::sync");
  if (span) span.Add("reason", CurrentCutReason().ToString());
  std::lock_guard lock(SyncMutex());
  Runtime::Get().CheckNotForked();
  ExplainingMemory([&] {
    SyncPending(device, wait);
    if (wait) WaitFor(device);
  });
}

int64_t CutCount(const Device* device) {
  std::lock_guard lock(SyncMutex());
  return State::Get().cuts[device];
}

Reference<Data> Materialized(const Reference<Storage>& storage) {
  Value value = storage->value();
  if (value.node->role() == Node::Role::kOperation) {
    CheckAllowed();
    value = Value();
    Sync(storage->device());
    value = storage->value();
  }
  return Evaluate(storage->device(), value);
}

Reference<Data> Evaluate(Device* device, const Value& value) {
  if (value.node->role() == Node::Role::kData) return value.node->data();
  CheckAllowed();
  std::lock_guard lock(SyncMutex());
  Runtime::Get().CheckNotForked();
  if (const Value* data = value.node->computed(value.index)) return data->node->data();
  if (value.node->role() == Node::Role::kScalar) {
    return Data::FromHost(device, value.shape(), value.node->scalar().data());
  }
  Graph graph(std::span<const Value>(&value, 1));
  std::vector<Value> leaves = ExplainingMemory([&] { return Run(device, graph, false); });
  return leaves[0].node->data();
}

void WaitDeviceOps() {
  std::lock_guard lock(SyncMutex());
  if (!Runtime::IsStarted()) return;
  ExplainingMemory([&] {
    for (const auto& device : Runtime::Get().devices()) WaitFor(device.get());
  });
}

void SetGraphObserver(std::function<void(const GraphEvent&)> observer) {
  std::lock_guard lock(SyncMutex());
  State::Get().observer = std::move(observer);
}

CacheStatistics ComputationCacheStatistics() {
  std::lock_guard lock(SyncMutex());
  return {State::Get().cache.size(), State::Get().cache.bytes()};
}

void ClearComputationCache() {
  std::lock_guard lock(SyncMutex());
  State::Get().cache.Clear();
}

void SetCustomCompileOptions(Overrides options) {
  std::lock_guard lock(SyncMutex());
  State& state = State::Get();
  state.overrides = std::move(options);
  state.overrides_hash = 0;
  for (const auto& [name, value] : state.overrides) {
    state.overrides_hash =
        Mix(Mix(state.overrides_hash, HashAttribute(name)), HashAttribute(value));
  }
}

}  // namespace lazy
