// What the user has set for the programs that are made from now on. All of it is guarded by
// SyncMutex, which each of these functions takes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "hlo/attributes.h"

namespace lazy {

// Options of the plugin's own, by name.
using CompileOverrides = std::map<std::string, std::variant<std::string, bool, int64_t, double>>;

// While execution is not allowed, only Sync runs anything: reading a value that is recorded work
// throws hlo::Error(kFailedPrecondition).
void SetAllowExecution(bool allow);
bool AllowExecution();

// What the programs are called, for people.
void SetGraphName(const std::string& name);
std::string GraphName();

// "default", "high" or "highest": the precision that contractions ask of the engine. Throws
// hlo::Error for any other word.
void SetMatMulPrecision(const std::string& precision);
std::string MatMulPrecision();
// The same, as programs say it.
hlo::Precision ContractionPrecision();

// What becomes of integers of the user's program that vary: indices and sizes.
enum class DynamicMode {
  kExact,     // each value is compiled, to tell a wrong program from a wrong argument
  kSymbolic,  // indices become arguments; so do sizes where the plugin knows how
  kBucketed,  // indices too, and sizes are padded to a ladder (size_buckets.h)
};
// "exact", "symbolic" or "bucketed"; at first TORCH_XLA_DYNAMIC ("symbolic"). Forgets the programs
// that were compiled in another mode. Throws hlo::Error for any other word.
void SetDynamicMode(const std::string& word);
DynamicMode CurrentDynamicMode();
std::string DynamicModeWord();

// Part of the key of a program, which is compiled anew with others.
void SetCustomCompileOptions(CompileOverrides options);
CompileOverrides CustomCompileOptions();
// Their bytes, and how many there are behind them: for keys, at whose end they say where they
// begin.
std::vector<uint64_t> CustomCompileOptionsKey();

}  // namespace lazy
