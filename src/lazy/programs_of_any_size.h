// Exported programs for any sizes: passes/generalize_sizes.h and passes/instantiate_sizes.h, on
// StableHLO's bytecode.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hlo/module.h"

namespace lazy {

// One program for any sizes, from those of a few. Throws hlo::Error.
std::unique_ptr<hlo::Module> GeneralizePrograms(const std::vector<std::string>& samples);

// A program for any sizes with these arguments' sizes. Throws hlo::Error.
std::unique_ptr<hlo::Module> InstantiateProgram(const std::string& program,
                                                const std::vector<hlo::Shape>& arguments);

}  // namespace lazy
