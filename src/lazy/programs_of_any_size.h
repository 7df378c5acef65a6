// Exported programs for any sizes: passes/forget_sizes.h on graphs, passes/generalize_sizes.h and
// passes/instantiate_sizes.h on StableHLO's bytecode.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hlo/module.h"
#include "lazy/graph.h"

namespace lazy {

class Data;

// From now on exports of what takes the data take any size of its dimension.
void OpenSize(Data& data, int64_t dimension);
// Whether a size has been opened in this process: if not, no node has open ones.
bool HasOpenSizes();

// While it lives, what this thread lowers is to be right for other sizes, too: an operation that
// has several forms takes one that does not depend on what a size happens to be.
class LoweringForAnySize {
 public:
  LoweringForAnySize();
  ~LoweringForAnySize();
  LoweringForAnySize(const LoweringForAnySize&) = delete;
  LoweringForAnySize& operator=(const LoweringForAnySize&) = delete;
  static bool IsOn();
};

// The graph's program, for any size of the dimensions that its data is marked with (Data), as
// passes/forget_sizes.h has it. Throws hlo::Error.
std::unique_ptr<hlo::Module> LowerForAnySize(const Graph& graph, const std::string& name);

// One program for any sizes, from those of a few. Throws hlo::Error.
std::unique_ptr<hlo::Module> GeneralizePrograms(const std::vector<std::string>& samples);

// A program for any sizes with these arguments' sizes. Throws hlo::Error.
std::unique_ptr<hlo::Module> InstantiateProgram(const std::string& program,
                                                const std::vector<hlo::Shape>& arguments);

}  // namespace lazy
