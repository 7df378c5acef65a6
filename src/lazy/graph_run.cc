#include "lazy/graph_run.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lazy/background_compile.h"
#include "lazy/data.h"
#include "lazy/graph_observer.h"
#include "lazy/interpreter.h"
#include "lazy/live_data.h"
#include "lazy/location.h"
#include "lazy/metrics.h"
#include "lazy/program_compile.h"
#include "lazy/run_queue.h"
#include "lazy/settings.h"
#include "lazy/size_buckets.h"
#include "lazy/span.h"
#include "process/clock.h"

namespace lazy {
namespace {

// The buffers of the arguments; those of scalars are made here and owned by `owned`.
std::vector<const pjrt::Buffer*> Arguments(Device* device, const Graph& graph,
                                           const CachedProgram& program,
                                           std::vector<std::unique_ptr<pjrt::Buffer>>* owned) {
  std::vector<const pjrt::Buffer*> arguments;
  arguments.reserve(graph.data_leaves().size() + graph.scalar_packs().size() + 1);
  const Padding* padding = program.padding.get();
  if (padding == nullptr) {
    for (const Donation& donation : graph.donations()) {
      graph.data_leaves()[donation.parameter]->data()->KeepBufferOnly();
    }
  }
  for (const Node* leaf : graph.data_leaves()) {
    leaf->data()->MoveToCurrentClient();
    const bool is_padded = padding != nullptr && padding->parameters[arguments.size()].is_padded();
    arguments.push_back(
        is_padded ? PaddedArgument(*leaf->data(), padding->parameters[arguments.size()], owned)
                  : &leaf->data()->buffer());
  }
  auto add = [&](const ScalarPack& pack) {
    owned->push_back(device->client().BufferFromHost(
        pack.bytes.data(), hlo::Shape(pack.type, {pack.count}), device->pjrt_device()));
    arguments.push_back(owned->back().get());
  };
  for (const ScalarPack& pack : graph.scalar_packs()) add(pack);
  const ScalarPack indices = graph.IndexPack(program.specialization.varies);
  if (indices.count > 0) add(indices);
  if (padding != nullptr) {
    for (const auto& argument : padding->arguments) arguments.push_back(argument.get());
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

pjrt::ExecuteResult Execute(Device* device, const Graph& graph, const CachedProgram& program,
                            Next next) {
  Span span("xla::execute");
  pjrt::ExecuteOptions options;
  options.caller_waits = next != Next::kGoesOn;
  if (span) {
    options.launch_id = LaunchNumber();
    span.Add("program", ProgramName(graph));
    span.Add("device", "xla:" + std::to_string(device->ordinal()));
    span.Add("run_id", int64_t{options.launch_id});
  }
  std::vector<std::unique_ptr<pjrt::Buffer>> owned;
  const std::vector<const pjrt::Buffer*> arguments = [&] {
    static Metric* time = Metric::Get("UnwrapXlaData");
    const TimedSection timed(time);
    return Arguments(device, graph, program, &owned);
  }();
  return program.executable->Execute(arguments, options);
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

// What the program of a graph is found by.
struct ProgramKey {
  std::vector<uint64_t> signature;
  Assignment assignment;
  uint64_t hash = 0;
};

// Processes of a world choose their programs by themselves, each by what it has compiled. Our
// engine runs collectives in the order of recording, whatever is around them; others want one
// program in all processes.
bool IndicesMayVary() {
  const Runtime& runtime = Runtime::Get();
  return CurrentDynamicMode() != DynamicMode::kExact &&
         (runtime.world_size() == 1 || runtime.options().device_type == "CPU");
}

// In a signature: the values of the graph's indices follow, which are then part of the structure.
constexpr uint64_t kIndicesFollow = ~uint64_t{1};

ProgramKey KeyOf(Device* device, const Graph& graph) {
  const std::vector<uint64_t> options = CustomCompileOptionsKey();
  const std::vector<uint64_t>& structure = graph.signature();
  ProgramKey key{{}, graph.assignment(), graph.structure_hash()};
  key.signature.reserve(structure.size() + key.assignment.size() + 2 + options.size());
  key.signature.assign(structure.begin(), structure.end());
  if (!key.assignment.empty() && !IndicesMayVary()) {
    key.hash = graph.hash();
    key.signature.push_back(kIndicesFollow);
    key.signature.insert(key.signature.end(), key.assignment.begin(), key.assignment.end());
    key.assignment.clear();
  }
  key.signature.push_back(static_cast<uint64_t>(device->ordinal()));
  key.signature.insert(key.signature.end(), options.begin(), options.end());
  return key;
}

void DropDonated(const Graph& graph) {
  for (const Donation& donation : graph.donations()) {
    graph.data_leaves()[donation.parameter]->data()->Drop();
  }
  for (const uint32_t parameter : graph.given_up()) graph.data_leaves()[parameter]->data()->Drop();
}

// Of making leaves of results.
Metric* LeavesTime() {
  static Metric* time = Metric::Get("WrapXlaData");
  return time;
}

// One for each of graph.results(), which the leaf stands for from now on.
Value LeafOf(const Graph& graph, size_t result, Reference<Data> data) {
  const Value& recorded = graph.results()[result];
  const Node* maker = recorded.node.get();
  NoteMaker(data.get(), &maker->operation()->kind(), LocationOf(maker));
  return {Node::MakeData(std::move(data), recorded.shape_ref()), 0};
}

void AddTimeSince(Metric* time, int64_t start_ns) {
  time->AddSample(static_cast<double>(process::NowNanoseconds() - start_ns));
}

// Until now.
void AddExecuteTime(int64_t start_ns) {
  static Metric* time = Metric::Get("ExecuteTime");
  AddTimeSince(time, start_ns);
}

// How long a graph that no program served has kept its sync until it could run: next to nothing
// where it is interpreted. What compilers took in all is ProgramCompileTime (persistent_cache.h).
void AddCompileTime(int64_t start_ns) {
  static Metric* time = Metric::Get("CompileTime");
  AddTimeSince(time, start_ns);
}

// A graph met before is a cached one to its user, whether or not it has been compiled by now.
void CountKnown() {
  static auto* cached = Counter("CachedCompile");
  Count(cached);
}

// Numbers come to the device with each run: none is kept there from one to the next.
void CountNumbers(const Graph& graph) {
  static auto* numbers = Counter("DeviceDataCacheMiss");
  for (const ScalarPack& pack : graph.scalar_packs()) Count(numbers, pack.count);
}

void CountNew(const Graph& graph) {
  static auto* uncached = Counter("UncachedCompile");
  static auto* handles = Counter("CreateCompileHandles");
  static Metric* aliases = Metric::Get("InputOutputAliasCount", MetricUnit::kNumber);
  Count(uncached);
  Count(handles);
  // Every graph's program comes to its compiler as StableHLO; it is counted for who asks for that,
  // at the first graph: another thread may be changing the environment later.
  static const bool counts_stablehlo = std::getenv("XLA_STABLEHLO_COMPILE") != nullptr;
  if (counts_stablehlo) {
    static auto* as_stablehlo = Counter("StableHloCompile");
    Count(as_stablehlo);
  }
  aliases->AddSample(static_cast<double>(graph.donations().size()));
}

// The results of a run that has been started.
std::vector<Value> LeavesOf(Device* device, const Graph& graph, const CachedProgram& program,
                            std::vector<std::unique_ptr<pjrt::Buffer>> outputs) {
  const TimedSection timed(LeavesTime());
  std::vector<Value> leaves;
  leaves.reserve(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    ShapeRef shape = graph.results()[i].shape_ref();
    const bool is_padded = program.padding != nullptr && program.padding->results[i].is_padded();
    Reference<Data> data =
        is_padded ? CutData(device, shape, program.padding->results[i], std::move(outputs[i]))
                  : Reference<Data>(new Data(device, shape, std::move(outputs[i])));
    data->set_last_checked_run(device->value_checks.last_run());
    leaves.push_back(LeafOf(graph, i, std::move(data)));
  }
  return leaves;
}

// Which recorded what each of the checks is about, without repetition.
std::vector<std::vector<uint32_t>> ThreadsOf(const ValueChecks& checks, const Graph& graph) {
  std::vector<std::vector<uint32_t>> threads;
  for (const ValueCheck& check : checks) {
    std::vector<uint32_t>& of_check = threads.emplace_back();
    for (const uint32_t node : check.nodes) {
      const uint32_t thread = graph.nodes()[node]->thread();
      if (std::ranges::find(of_check, thread) == of_check.end()) of_check.push_back(thread);
    }
  }
  return threads;
}

std::vector<Value> RunProgram(Device* device, const Graph& graph, const CachedProgram& program,
                              Manner manner) {
  static auto* executed = Counter("ExecuteComputation");
  Count(executed);
  const int64_t start = process::NowNanoseconds();
  pjrt::ExecuteResult result = Execute(device, graph, program, manner.next);
  DropDonated(graph);
  if (program.checks != nullptr) {
    static auto* checked = Counter("CheckedExecution");
    Count(checked);
    device->value_checks.Add(*result.outputs.back(), program.checks,
                             ThreadsOf(*program.checks, graph));
    result.outputs.pop_back();
  }
  std::vector<Value> leaves = LeavesOf(device, graph, program, std::move(result.outputs));
  std::function<void()> over;
  if (!manner.is_eager) over = [start] { AddExecuteTime(start); };
  NoteRun(device, std::move(result.done), std::move(over));
  return leaves;
}

// What to compile where there is no program that serves.
Specialization MissingOf(const ProgramKey& key, const Turn& turn) {
  const ProgramCache& cache = ProgramCache::Get();
  if (turn.seen && !cache.HasSpecialization(key.hash, key.signature)) return *turn.seen;
  return cache.Missing(key.hash, key.signature, key.assignment);
}

std::shared_ptr<const CachedProgram> Compiled(Device* device, const Graph& graph,
                                              const ProgramKey& key, const Turn& turn,
                                              Observation& observation) {
  const int64_t start = process::NowNanoseconds();
  Specialization missing = MissingOf(key, turn);
  observation.ReportCompile(missing.varies);
  auto program = BackgroundCompiler::Get().Take(key.hash, key.signature, key.assignment);
  if (program == nullptr) {
    LoweredProgram lowered =
        LowerProgram(device, graph, key.signature, std::move(missing), turn.varying_sizes);
    if (!CompilePadded(device, lowered)) lowered.Compile();
    program = std::move(lowered.program);
  }
  AddCompileTime(start);
  KeepProgram(key.hash, program);
  NoteCompiled(graph);
  observation.ReportCompiled(*program->executable);
  return program;
}

// Where it cannot be, whoever needs the program says why.
void CompileInBackground(Device* device, const Graph& graph, const ProgramKey& key,
                         const Turn& turn) {
  BackgroundCompiler& compiler = BackgroundCompiler::Get();
  if (!compiler.is_enabled()) return;
  try {
    compiler.Start(key.hash, LowerProgram(device, graph, key.signature, MissingOf(key, turn),
                                          turn.varying_sizes));
  } catch (const std::exception&) {
  }
}

// Where only indices differ from a program's, another program that takes them is the last one.
// In the padded mode programs are what is wanted.
Turn TurnFor(const Graph& graph, const ProgramKey& key) {
  if (CurrentDynamicMode() == DynamicMode::kBucketed) return {};
  if (ProgramCache::Get().HasSpecialization(key.hash, key.signature)) return {};
  return NextTurn(graph, key.hash, key.assignment);
}

std::optional<std::vector<Value>> InterpretedLeaves(Device* device, const Graph& graph,
                                                    const ProgramKey& key, const Turn& turn,
                                                    Observation& observation, Manner manner) {
  if (turn.compiles) CompileInBackground(device, graph, key, turn);
  if (!turn.is_interpreted) return std::nullopt;
  const int64_t start = process::NowNanoseconds();
  auto results = Interpreted(device, graph, turn);
  if (!results) return std::nullopt;
  if (!manner.is_eager) AddExecuteTime(start);
  observation.Report(GraphEvent::Stage::kExecute);
  int64_t last_checked_run = 0;
  for (const Node* leaf : graph.data_leaves()) {
    last_checked_run = std::max(last_checked_run, leaf->data()->last_checked_run());
  }
  DropDonated(graph);
  const TimedSection timed(LeavesTime());
  std::vector<Value> leaves;
  for (size_t i = 0; i < results->size(); ++i) {
    (*results)[i]->set_last_checked_run(last_checked_run);
    leaves.push_back(LeafOf(graph, i, std::move((*results)[i])));
  }
  return leaves;
}

}  // namespace

std::vector<Value> RunGraph(Device* device, const Graph& graph, Manner manner) {
  static Metric* size = Metric::Get("TensorsGraphSize", MetricUnit::kNumber);
  CheckDevices(device, graph);
  CountNumbers(graph);
  const ProgramKey key = KeyOf(device, graph);
  Span lookup("xla::cache_lookup");
  std::shared_ptr<const CachedProgram> program =
      ProgramCache::Get().Find(key.hash, key.signature, key.assignment);
  lookup.Add("hit", int64_t{program != nullptr});
  lookup.End();
  if (!manner.is_eager) size->AddSample(static_cast<double>(graph.nodes().size()));
  Observation observation(graph, key.hash, /*is_told=*/!manner.is_eager);
  observation.Report(GraphEvent::Stage::kCut);
  if (program != nullptr) {
    CountKnown();
  } else {
    const int64_t start = process::NowNanoseconds();
    const Turn turn = TurnFor(graph, key);
    if (!manner.is_eager) turn.is_first ? CountNew(graph) : CountKnown();
    if (!manner.is_eager && turn.is_interpreted && turn.is_first) AddCompileTime(start);
    if (auto leaves = InterpretedLeaves(device, graph, key, turn, observation, manner)) {
      return *leaves;
    }
    program = Compiled(device, graph, key, turn, observation);
  }
  observation.Report(GraphEvent::Stage::kExecute);
  return RunProgram(device, graph, *program, manner);
}

}  // namespace lazy
