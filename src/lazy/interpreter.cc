#include "lazy/interpreter.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/error.h"
#include "hlo/hash.h"
#include "lazy/background_compile.h"
#include "lazy/device.h"
#include "lazy/metrics.h"
#include "lazy/persistent_cache.h"
#include "lazy/program_compile.h"
#include "lazy/span.h"
#include "lazy/sync_mutex.h"
#include "lazy/work_estimate.h"
#include "process/heap.h"
#include "process/limits.h"

namespace lazy {
namespace {

// Of one graph. What many small ones lose by more is little, and they are likely to come for ever.
constexpr int kMostTurns = 256;
// At the least; and its program is not compiled before the graph comes again.
constexpr int kLeastTurns = 2;
// What a program costs to be made, and how many times as long a graph's work may take for it to be
// interpreted: the program would be made on the caller's path.
struct Compiling {
  double ns_per_node, patience;
};
// Anew, and for the second sizes, when its loops come to read them: the next sizes may be others.
constexpr Compiling kAnew{800'000, 4};
// For further sizes, whose loops are there: three times what was measured, as a small graph's runs
// gain less by a program than they take. Where it is made in less than one interpreted run, it pays
// even if it never comes again.
constexpr Compiling kAgain{150'000, 1.0 / 3};
// To wake a thread and the framework's own behind it is nothing beside this; and smaller graphs do
// not suffer where more threads want to run than there are processors, as OpenMP's then wait.
constexpr double kLargeNs = 5e6;
// Of the values that live at a time. They are memory of the framework's, to which no limit is set,
// and lie beside what the compiler takes meanwhile.
constexpr int64_t kMostBytes = 64 << 20;
constexpr int64_t kPartOfMemory = 8;
// What a graph's values took stays malloc's after them: beside the program's memory, from this many
// bytes on, it would be most of what a step takes more than by the program alone.
constexpr int64_t kReleasedBytes = 32 << 20;
// Of structures, of graphs with the indices that each was seen with, and of the sizes that
// structures have together, that are remembered; then all are forgotten, which costs time only.
constexpr size_t kMostRemembered = 1 << 16, kMostGraphs = 1 << 12, kMostSizes = 1 << 21;

// The graph without sizes and attributes. It only decides how a graph runs, so equal hashes of
// different structures do no harm.
uint64_t StructureOf(const Graph& graph) {
  uint64_t hash = graph.nodes().size();
  for (const Node* node : graph.nodes()) {
    hash = hlo::CombineHash(hash, reinterpret_cast<uintptr_t>(&node->operation()->kind()));
    for (const Value& operand : node->operands()) {
      hash = hlo::CombineHash(hash, (uint64_t{operand.node->position} << 24) | operand.index);
      hash = hlo::CombineHash(hash, static_cast<uint64_t>(operand.shape().element_type()));
    }
  }
  return hash;
}

// Of one graph, or of those that differ in indices only.
struct Turns {
  int taken = 0, most = 0;
  double work_ns = 0;      // of one
  int64_t peak_bytes = 0;  // likewise
  uint64_t structure = 0;
  bool is_large = false;
  bool is_of_known = false;  // planned as one whose structure's loops are there
  bool is_over = false;      // its program runs from now on
  int sizes_noted = 0;       // among the structures that were made after so many were forgotten
  Specialization seen;
};

// Of the graphs that differ in sizes, too. Two programs, of different sizes, compile all loops:
// they are begun when the interpreted runs have taken as long as kSampleAfter compilations, and are
// there after kKnownAfter. More than for a single graph, as the other sizes may never come.
struct Structure {
  static constexpr size_t kSamples = 2;
  static constexpr double kSampleAfter = 2, kKnownAfter = 4;

  double work_ns = 0;          // of all interpreted runs
  std::vector<int64_t> sizes;  // of the first graph, node by node
  std::vector<bool> varies;    // which of them another graph had otherwise
  size_t programs = 0;
  std::vector<uint64_t> samples;  // graphs that were compiled for the sake of others
  bool has_failed = false;

  bool is_known(double compile_ns) const {
    return programs >= kSamples ||
           (samples.size() >= kSamples && work_ns >= kKnownAfter * compile_ns);
  }
  bool is_sample(uint64_t graph) const {
    return std::ranges::find(samples, graph) != samples.end();
  }
  bool is_sample_wanted(double compile_ns) const {
    return samples.size() < kSamples && work_ns >= kSampleAfter * compile_ns;
  }
};

// The graphs that came before.
struct History {
  std::unordered_map<uint64_t, Structure> structures;
  size_t size_count = 0;                      // that structures have
  int forgotten = 1;                          // how often structures were, and one
  std::unordered_map<uint64_t, Turns> turns;  // of graphs, by hash
};

struct State {
  Interpreter* interpreter = nullptr;
  History history;

  static State& Get() {
    static auto* state = new State;
    return *state;
  }
  // The environment is read at the first graph: a wrong word is an error there, and none of the
  // libraries' loading, which would end the process.
  Interpretation when() {
    if (!when_) {
      const char* word = std::getenv("TORCH_XLA_INTERPRET");
      when_ = InterpretationOf(word == nullptr ? "auto" : word);
    }
    return *when_;
  }
  void set_when(Interpretation when) {
    when_ = when;
    history = {};
  }

 private:
  std::optional<Interpretation> when_;
};

int64_t ResultBytes(const Operation& operation) {
  int64_t bytes = 0;
  for (ShapeRef shape : operation.result_shapes()) bytes += shape ? shape->byte_size() : 0;
  return bytes;
}

// Of the values that live at the same time, at most. Results stay, in memory of the device's.
int64_t PeakBytes(const Graph& graph) {
  std::vector<uint32_t> uses(graph.nodes().size());
  for (const Node* node : graph.nodes()) {
    for (const Value& operand : node->operands()) ++uses[operand.node->position];
  }
  for (const Value& result : graph.results()) ++uses[result.node->position];
  int64_t live = 0, peak = 0;
  for (const Node* node : graph.nodes()) {
    if (node->role() != Node::Role::kOperation) continue;
    live += ResultBytes(*node->operation());
    peak = std::max(peak, live);
    for (const Value& operand : node->operands()) {
      const Node& maker = *operand.node;
      if (--uses[maker.position] > 0 || maker.role() != Node::Role::kOperation) continue;
      live -= ResultBytes(*maker.operation());
    }
  }
  return peak;
}

bool HasRoomFor(int64_t bytes) {
  static const int64_t most = std::min(kMostBytes, process::MemoryLimit() / kPartOfMemory);
  return bytes <= most;
}

double CompileTimeOf(const Graph& graph, const Compiling& compiling) {
  return compiling.ns_per_node * static_cast<double>(graph.nodes().size());
}

// As often as interpreting takes less time, together, than compiling does twice, so that a program
// that is begun after half of that is there when it is wanted; and twice, during which it is
// compiled, where one turn takes not much more.
int MostTurns(const Turns& turns, const Graph& graph, const Compiling& compiling) {
  const double compile = CompileTimeOf(graph, compiling);
  if (turns.work_ns > compiling.patience * compile || !HasRoomFor(turns.peak_bytes)) return 0;
  return static_cast<int>(std::clamp<double>(2 * compile / turns.work_ns, kLeastTurns, kMostTurns));
}

// From half of the turns on: a graph that came so often is likely to come as often again, while
// one that comes no more has cost no compilation.
bool IsTurnOfCompile(const Turns& turns) {
  return turns.taken == std::max(kLeastTurns, turns.most / 2);
}

bool HasEagerForms(const Graph& graph) {
  return std::all_of(graph.nodes().begin(), graph.nodes().end(), [](const Node* node) {
    return node->role() != Node::Role::kOperation ||
           node->operation()->kind().eager_form != nullptr;
  });
}

// Ranks of a world have histories of their own, and their replicas are to stay the same bits. Who
// keeps programs for later processes wants them of all graphs, and those that are kept at once. A
// graph that has had a turn has forms.
bool MayInterpret(State& state, const Graph& graph, uint64_t hash) {
  const Runtime& runtime = Runtime::Get();
  return state.interpreter != nullptr && state.when() != Interpretation::kNever &&
         runtime.options().device_type == "CPU" && runtime.world_size() == 1 &&
         (state.when() == Interpretation::kAlways || !KeepsPrograms()) && graph.rounds_nothing() &&
         (state.history.turns.contains(hash) || HasEagerForms(graph));
}

Turns NewTurns(const Graph& graph, const Assignment& assignment) {
  Turns turns;
  for (const Node* node : graph.nodes()) {
    if (node->role() == Node::Role::kOperation) turns.work_ns += WorkOf(*node->operation());
  }
  turns.structure = StructureOf(graph);
  turns.is_large = turns.work_ns >= kLargeNs;
  turns.peak_bytes = PeakBytes(graph);
  turns.most = MostTurns(turns, graph, kAnew);
  turns.seen.assignment = assignment;
  return turns;
}

Turns& TurnsOf(History& history, const Graph& graph, uint64_t hash, const Assignment& assignment) {
  if (history.turns.size() > kMostGraphs) history.turns.clear();
  auto [it, is_new] = history.turns.try_emplace(hash);
  Turns& turns = it->second;
  if (is_new) {
    turns = NewTurns(graph, assignment);
  } else if (!turns.seen.Serves(assignment)) {
    const Specialization* before[] = {&turns.seen};
    turns.seen = Specialize(before, assignment);
  }
  return turns;
}

// Of the results of all operations, in order.
template <typename F>
void ForEachSize(const Graph& graph, F&& f) {
  for (const Node* node : graph.nodes()) {
    if (node->role() != Node::Role::kOperation) continue;
    for (ShapeRef shape : node->operation()->result_shapes()) {
      if (shape == nullptr || !shape->is_array()) continue;
      for (int64_t size : shape->dimensions()) f(size);
    }
  }
}

std::vector<int64_t> SizesOf(const Graph& graph) {
  std::vector<int64_t> sizes;
  ForEachSize(graph, [&](int64_t size) { sizes.push_back(size); });
  return sizes;
}

// Whether this graph's sizes stand beside those of its structure, one by one: structures may be the
// same in name only.
bool HasSizesOf(const Structure& structure, const Graph& graph) {
  size_t count = 0;
  ForEachSize(graph, [&](int64_t) { ++count; });
  return count == structure.sizes.size();
}

void NoteSizes(const Graph& graph, Structure& structure) {
  if (!HasSizesOf(structure, graph)) return;
  size_t i = 0;
  ForEachSize(graph, [&](int64_t size) {
    if (size != structure.sizes[i]) structure.varies[i] = true;
    ++i;
  });
}

// Those of this graph that are not the same in all graphs so far, this one among them.
std::set<int64_t> VaryingSizes(const Graph& graph, const Structure& structure) {
  std::set<int64_t> varying;
  if (!HasSizesOf(structure, graph)) return varying;
  size_t i = 0;
  ForEachSize(graph, [&](int64_t size) {
    if (structure.varies[i++]) varying.insert(size);
  });
  return varying;
}

Structure& StructureWithin(History& history, const Graph& graph, uint64_t structure) {
  if (history.structures.size() > kMostRemembered || history.size_count > kMostSizes) {
    history.structures.clear();
    history.size_count = 0;
    ++history.forgotten;
  }
  auto [it, is_new] = history.structures.try_emplace(structure);
  if (is_new) {
    it->second.sizes = SizesOf(graph);
    it->second.varies.resize(it->second.sizes.size());
    history.size_count += it->second.sizes.size();
  }
  return it->second;
}

// The program takes over.
void EndTurns(Turns& turns) {
  const bool was_interpreted = turns.taken > 0;
  if (was_interpreted && !turns.is_over && turns.peak_bytes >= kReleasedBytes) {
    process::ReleaseFreeMemory();
  }
  turns.is_over = true;
}

}  // namespace

Interpretation InterpretationOf(std::string_view word) {
  if (word == "never") return Interpretation::kNever;
  if (word == "auto") return Interpretation::kWhereItPays;
  if (word == "always") return Interpretation::kAlways;
  throw hlo::Error("graphs are interpreted never, auto or always, and not '" + std::string(word) +
                   "' (TORCH_XLA_INTERPRET)");
}

std::string WordFor(Interpretation interpretation) {
  switch (interpretation) {
    case Interpretation::kNever:
      return "never";
    case Interpretation::kWhereItPays:
      return "auto";
    case Interpretation::kAlways:
      return "always";
  }
  return "";
}

void SetInterpreter(Interpreter* interpreter) {
  std::lock_guard lock(SyncMutex());
  State::Get().interpreter = interpreter;
}

void SetInterpretation(Interpretation interpretation) {
  std::lock_guard lock(SyncMutex());
  BackgroundCompiler::Get().Stop();
  State::Get().set_when(interpretation);
}

Interpretation CurrentInterpretation() {
  std::lock_guard lock(SyncMutex());
  return State::Get().when();
}

Turn NextTurn(const Graph& graph, uint64_t hash, const Assignment& assignment) {
  State& state = State::Get();
  if (!MayInterpret(state, graph, hash)) return {};
  const bool always = state.when() == Interpretation::kAlways;
  Turns& turns = TurnsOf(state.history, graph, hash, assignment);
  Structure& structure = StructureWithin(state.history, graph, turns.structure);
  if (!always && structure.has_failed) return {};
  if (!turns.is_of_known && structure.is_known(CompileTimeOf(graph, kAnew))) {
    turns.is_of_known = true;
    turns.most = MostTurns(turns, graph, kAgain);
  }
  if (turns.sizes_noted != state.history.forgotten) NoteSizes(graph, structure);
  turns.sizes_noted = state.history.forgotten;
  Turn turn{.is_first = turns.taken == 0, .seen = turns.seen};
  if (!always && turns.taken >= turns.most) {
    EndTurns(turns);
    // One that has come often has a program with its sizes as constants.
    if (turns.is_of_known && turns.most == 0) turn.varying_sizes = VaryingSizes(graph, structure);
    return turn;
  }
  ++turns.taken;
  structure.work_ns += turns.work_ns;
  turn.is_interpreted = true;
  turn.is_large = turns.is_large;
  if (always) return turn;
  // In the background, that is, and once.
  if (!BackgroundCompiler::Get().is_enabled() || structure.is_sample(hash)) return turn;
  turn.compiles = IsTurnOfCompile(turns);
  if (structure.is_sample_wanted(CompileTimeOf(graph, kAnew))) {
    // Where the graph itself has come often, it is worth a program with its sizes as constants.
    if (!turn.compiles) turn.varying_sizes = VaryingSizes(graph, structure);
    turn.compiles = true;
  }
  if (turn.compiles && structure.samples.size() < Structure::kSamples) {
    structure.samples.push_back(hash);
  }
  return turn;
}

std::optional<std::vector<Reference<Data>>> Interpreted(Device* device, const Graph& graph,
                                                        const Turn& turn) {
  static auto* interpreted = Counter("InterpretedGraph");
  static auto* failed = Counter("InterpretedGraphFailed");
  static Metric* time = Metric::Get("InterpretTime");
  State& state = State::Get();
  Span span("xla::interpret");
  if (span) {
    span.Add("graph", ProgramName(graph));
    span.Add("device", "xla:" + std::to_string(device->ordinal()));
  }
  TimedSection timed(time);
  try {
    std::vector<Reference<Data>> results = state.interpreter->Run(
        device, graph, turn.is_large ? Interpreter::Threads::kSeveral : Interpreter::Threads::kOne);
    Count(interpreted);
    return results;
  } catch (const OperandFailed&) {
    return std::nullopt;
  } catch (const std::exception& exception) {
    Count(failed);
    const auto* error = dynamic_cast<const hlo::Error*>(&exception);
    const bool lacks_memory = error && error->code() == hlo::ErrorCode::kResourceExhausted;
    if (lacks_memory) return std::nullopt;  // which says nothing of the structure
    StructureWithin(state.history, graph, StructureOf(graph)).has_failed = true;
    return std::nullopt;
  }
}

bool HasKernels() {
  State& state = State::Get();
  static const bool rounds = Downcast::FromEnvironment().signature() != 0;
  return state.interpreter != nullptr && state.when() != Interpretation::kNever && !rounds &&
         Runtime::Get().options().device_type == "CPU";
}

std::optional<std::vector<Reference<Data>>> ResultsByKernels(Device* device, Node* node) {
  static auto* failed = Counter("InterpretedGraphFailed");
  try {
    return State::Get().interpreter->RunNode(device, node);
  } catch (const OperandFailed&) {
    throw;
  } catch (const std::exception&) {
    Count(failed);
    return std::nullopt;
  }
}

void NoteCompiled(const Graph& graph) {
  State& state = State::Get();
  if (state.when() == Interpretation::kNever) return;
  ++StructureWithin(state.history, graph, StructureOf(graph)).programs;
}

}  // namespace lazy
