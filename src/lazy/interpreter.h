// Running a graph node by node, without a program. Compiling pays where a graph comes again, and
// takes longer than a small graph's first runs: these are computed by the framework's own kernels,
// where the device's memory is the host's, and its program is compiled in the background meanwhile
// (background_compile.h).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/error.h"
#include "lazy/data.h"
#include "lazy/graph.h"
#include "lazy/specialization.h"

namespace lazy {

// The work that was to make an operand has failed: that says nothing of the graph.
class OperandFailed : public hlo::Error {
 public:
  using Error::Error;
};

// Set by the layer that knows the framework (EagerForm in operation.h). Called under SyncMutex.
class Interpreter {
 public:
  virtual ~Interpreter() = default;
  enum class Threads { kOne, kSeveral };
  // The graph's results, in the order of Graph::results(). Throws hlo::Error for what it cannot
  // run, OperandFailed, and whatever an operation throws; nothing has changed then.
  virtual std::vector<Reference<Data>> Run(Device* device, const Graph& graph, Threads threads) = 0;
  // The same of one node, after what it needs; null for a result that does not exist.
  virtual std::vector<Reference<Data>> RunNode(Device* device, Node* node) = 0;
};
// Lives for ever.
void SetInterpreter(Interpreter* interpreter);

// When graphs are interpreted that have no program:
enum class Interpretation {
  kNever,
  kWhereItPays,  // the default; see NextTurn
  kAlways,       // all but those that have an operation without an EagerForm; for tests
};
// "never", "auto" or "always"; throws hlo::Error for any other word.
Interpretation InterpretationOf(std::string_view word);
std::string WordFor(Interpretation interpretation);
// TORCH_XLA_INTERPRET, one of these words, says what it is at first ("auto"). Guarded by
// SyncMutex, which these functions take. Setting it forgets the graphs that came before.
void SetInterpretation(Interpretation interpretation);
Interpretation CurrentInterpretation();

// How a graph without a program runs this time.
struct Turn {
  bool is_interpreted = false;
  bool is_first = true;   // it was not interpreted before
  bool is_large = false;  // so that several threads pay
  // It has come often, or others of its structure have: its program is to be compiled meanwhile.
  bool compiles = false;
  // For the program that is compiled now, for the sake of the structure or because its loops are
  // there: those of its sizes that are other ones in graphs of its structure.
  std::set<int64_t> varying_sizes = {};
  // What differed among the assignments of its indices so far, this one's among them. Empty if it
  // was never interpreted.
  std::optional<Specialization> seen = std::nullopt;
};
// To be interpreted are graphs of little work: as often as that, by estimate, takes less than
// compiling does twice, and 256 times at most; twice where it takes up to four times as long. When
// graphs that differ in sizes have taken longer than that together, further sizes are compiled at
// once, where their loops are found in less time than they are interpreted. None is that other
// processes take part in. What is interpreted depends on the graphs that came before, never on
// time, so that a run of the user's program repeats, to the last bit. Counts the turn.
Turn NextTurn(const Graph& graph, uint64_t hash, const Assignment& assignment);
// The graph's results. Empty where interpreting fails: the program is to say what is wrong.
std::optional<std::vector<Reference<Data>>> Interpreted(Device* device, const Graph& graph,
                                                        const Turn& turn);
// For eager mode (eager.h): whether nodes with an EagerForm may run by it, and the results of one.
// Empty where it fails. Throws OperandFailed.
bool HasKernels();
std::optional<std::vector<Reference<Data>>> ResultsByKernels(Device* device, Node* node);
// A program was compiled for the graph.
void NoteCompiled(const Graph& graph);

}  // namespace lazy
