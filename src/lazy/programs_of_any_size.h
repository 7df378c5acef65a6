// Exported programs for any sizes: passes/forget_sizes.h on graphs, passes/generalize_sizes.h and
// passes/instantiate_sizes.h on StableHLO's bytecode.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hlo/module.h"
#include "lazy/graph.h"

namespace lazy {

// The graph's program, for any size of the dimensions that its data is marked with (Data), as
// passes/forget_sizes.h has it. Throws hlo::Error.
std::unique_ptr<hlo::Module> LowerForAnySize(const Graph& graph, const std::string& name);

// One program for any sizes, from those of a few. Throws hlo::Error.
std::unique_ptr<hlo::Module> GeneralizePrograms(const std::vector<std::string>& samples);

// A program for any sizes with these arguments' sizes. Throws hlo::Error.
std::unique_ptr<hlo::Module> InstantiateProgram(const std::string& program,
                                                const std::vector<hlo::Shape>& arguments);

}  // namespace lazy
