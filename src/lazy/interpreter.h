// Running a graph node by node, without a program. Compiling pays where a graph comes again; a
// graph with sizes that never come again is cheaper computed by the framework's own kernels, where
// the device's memory is the host's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lazy/data.h"
#include "lazy/graph.h"

namespace lazy {

// Set by the layer that knows the framework (EagerForm in operation.h). Called under SyncMutex.
class Interpreter {
 public:
  virtual ~Interpreter() = default;
  // The graph's results, in the order of Graph::results(). Throws hlo::Error for what it cannot
  // run, and whatever an operation throws; nothing has changed then.
  virtual std::vector<Reference<Data>> Run(Device* device, const Graph& graph) = 0;
};
// Lives for ever.
void SetInterpreter(Interpreter* interpreter);

// When graphs are interpreted that have no program:
enum class Interpretation {
  kNever,
  kWhereItPays,  // the default; see Interpreted
  kAlways,       // all but those that have an operation without an EagerForm; for tests
};
// "never", "auto" or "always"; throws hlo::Error for any other word.
Interpretation InterpretationOf(std::string_view word);
std::string WordFor(Interpretation interpretation);
// TORCH_XLA_INTERPRET, one of these words, says what it is at first ("auto"). Guarded by
// SyncMutex, which these functions take. Setting it forgets the graphs that came before.
void SetInterpretation(Interpretation interpretation);
Interpretation CurrentInterpretation();

// The results of a graph without a program, if it is interpreted: where its structure has a program
// already, with other sizes or attributes, or most programs so far were never used again; and where
// compiling would take longer than running this graph now and as often as it came before, which is
// eight times at most, two where the structure is new. None is that other processes take part in.
// What is interpreted depends on the graphs that came before, never on time, so that a run of the
// user's program repeats. Empty: it is to be compiled. Where interpreting fails, the program is to
// say what is wrong.
std::optional<std::vector<Reference<Data>>> Interpreted(Device* device, const Graph& graph,
                                                        uint64_t hash);
// A program was compiled for the graph; a program was found for the first time after that.
void NoteCompiled(const Graph& graph);
void NoteUsedAgain();

}  // namespace lazy
