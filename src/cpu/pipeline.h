// From the module as it comes in to the kernels: every rewrite, in one table, and what runs it.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "hlo/module.h"

namespace cpu {

// When a row of the table runs.
enum class When {
  kAlways,
  kOnOneDevice,         // PipelineOptions::single_device
  kAfterLayoutChanged,  // the pass convolution_layout has changed the module
};

// Whether a program can be compiled without the pass. What can be left out makes it faster.
enum class Need { kNeeded, kOptional };

// The name is that of the file in passes/ or cpu/passes/.
struct Pass {
  std::string_view name;
  // After it the module is well formed and computes the same, so that the reference evaluator can
  // run it; sums may be formed in another order. Returns false only if the module is as it was.
  bool (*run)(hlo::Module& module);
  When when;
  Need need;
  std::string_view summary;
};

// In the order in which they run; some come more than once.
std::span<const Pass> Pipeline();

std::string_view ToString(When when);
std::string_view ToString(Need need);

using PassNames = std::set<std::string, std::less<>>;

// The names in a list such as "fusion,simplify". Throws hlo::Error that lists the names to choose
// from for one that is not there or that no program can be compiled without.
PassNames ParsePassNames(std::string_view list);
// Those of TORCH_XLA_DISABLE_PASSES, read once.
const PassNames& PassesDisabledByEnvironment();

// True in debug builds and with TORCH_XLA_VERIFY=1.
bool VerifiesByDefault();

struct PipelineOptions {
  bool single_device = true;          // the program runs on one device: collectives are known
  PassNames disabled;                 // passes that do not run
  bool verify = VerifiesByDefault();  // the module, after each pass
};

enum class PassOutcome { kChanged, kUnchanged, kDisabled, kNotNeeded };
std::string_view ToString(PassOutcome outcome);

struct PassRun {
  int number;  // of the row, from 1 on
  const Pass& pass;
  PassOutcome outcome;
  double milliseconds;
};
// Called after each row with what it left, before that is verified.
using PassObserver = std::function<void(const PassRun& run, const hlo::Module& module)>;

// Throws what a pass throws, and hlo::Error(kInternal) that names a pass after which the module is
// not well formed. With TORCH_XLA_PROFILE the passes' times are among what it prints.
void RunPipeline(hlo::Module& module, const PipelineOptions& options,
                 const PassObserver& observe = {});

}  // namespace cpu
