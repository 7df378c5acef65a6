#include "lazy/interpreter.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "hlo/error.h"
#include "hlo/hash.h"
#include "lazy/background_compile.h"
#include "lazy/device.h"
#include "lazy/metrics.h"
#include "lazy/program_compile.h"
#include "lazy/span.h"
#include "lazy/sync_mutex.h"
#include "lazy/work_estimate.h"

namespace lazy {
namespace {

// Of one graph. More would save nothing: by then its program is ready.
constexpr int kMostTurns = 64;
// Its program is compiled from then on: a graph that came twice is likely to come more often.
constexpr int kTurnOfCompile = 2;
// As measured: what a program takes to be made, anew (also for the second sizes, when its loops
// come to read them) and for further sizes.
constexpr double kCompileNsPerNode = 500'000, kCompileAgainNsPerNode = 75'000;
// Of all values together. They are memory of the framework's, to which no limit is set.
constexpr int64_t kMostBytes = 64 << 20;
// Of structures, and of graphs with the indices that each was seen with, that are remembered; then
// all are forgotten, which costs time only.
constexpr size_t kMostRemembered = 1 << 16, kMostGraphs = 1 << 12;

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
  Specialization seen;
};

// The graphs that came before.
struct History {
  std::unordered_map<uint64_t, int> compiled;  // programs of a structure
  std::unordered_map<uint64_t, Turns> turns;   // of graphs, by hash
  std::unordered_set<uint64_t> failed;         // structures

  int ProgramsOf(uint64_t structure) const {
    auto found = compiled.find(structure);
    return found == compiled.end() ? 0 : found->second;
  }
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

// As often as interpreting takes less time, together, than compiling does.
int MostTurns(const Graph& graph, double compile_ns_per_node) {
  double work = 0;
  int64_t bytes = 0;
  for (const Node* node : graph.nodes()) {
    if (node->role() != Node::Role::kOperation) continue;
    work += WorkOf(*node->operation());
    bytes += ResultBytes(*node->operation());
  }
  if (bytes > kMostBytes) return 0;
  const double compile = compile_ns_per_node * static_cast<double>(graph.nodes().size());
  return work * kMostTurns <= compile ? kMostTurns : static_cast<int>(compile / work);
}

bool HasEagerForms(const Graph& graph) {
  return std::all_of(graph.nodes().begin(), graph.nodes().end(), [](const Node* node) {
    return node->role() != Node::Role::kOperation ||
           node->operation()->kind().eager_form != nullptr;
  });
}

// Ranks of a world have histories of their own, and their replicas are to stay the same bits.
bool MayInterpret(State& state, const Graph& graph) {
  const Runtime& runtime = Runtime::Get();
  return state.interpreter != nullptr && state.when() != Interpretation::kNever &&
         runtime.options().device_type == "CPU" && runtime.world_size() == 1 &&
         graph.rounds_nothing() && HasEagerForms(graph);
}

Turns& TurnsOf(History& history, const Graph& graph, uint64_t hash, const Assignment& assignment) {
  if (history.turns.size() > kMostGraphs) history.turns.clear();
  auto [it, is_new] = history.turns.try_emplace(hash);
  Turns& turns = it->second;
  if (is_new) {
    const bool is_known = history.ProgramsOf(StructureOf(graph)) > 1;
    turns.most = MostTurns(graph, is_known ? kCompileAgainNsPerNode : kCompileNsPerNode);
    turns.seen.assignment = assignment;
  } else {
    const Specialization* before[] = {&turns.seen};
    turns.seen = Specialize(before, assignment);
  }
  return turns;
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
  if (!MayInterpret(state, graph)) return {};
  History& history = state.history;
  const bool always = state.when() == Interpretation::kAlways;
  if (!always && !history.failed.empty() && history.failed.contains(StructureOf(graph))) return {};
  Turns& turns = TurnsOf(history, graph, hash, assignment);
  Turn turn{.is_first = turns.taken == 0, .seen = turns.seen};
  if (!always && turns.taken == turns.most) return turn;
  ++turns.taken;
  turn.is_interpreted = true;
  turn.compiles = !always && turns.taken == kTurnOfCompile;
  return turn;
}

std::optional<std::vector<Reference<Data>>> Interpreted(Device* device, const Graph& graph) {
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
    std::vector<Reference<Data>> results = state.interpreter->Run(device, graph);
    Count(interpreted);
    return results;
  } catch (const std::exception& exception) {
    Count(failed);
    const auto* error = dynamic_cast<const hlo::Error*>(&exception);
    const bool lacks_memory = error && error->code() == hlo::ErrorCode::kResourceExhausted;
    if (lacks_memory) return std::nullopt;  // which says nothing of the structure
    if (state.history.failed.size() > kMostRemembered) state.history.failed.clear();
    state.history.failed.insert(StructureOf(graph));
    return std::nullopt;
  }
}

void NoteCompiled(const Graph& graph) {
  State& state = State::Get();
  if (state.when() == Interpretation::kNever) return;
  History& history = state.history;
  if (history.compiled.size() > kMostRemembered) history.compiled.clear();
  ++history.compiled[StructureOf(graph)];
}

}  // namespace lazy
