// A program for any sizes (generalize_sizes.h, or another exporter's) with the sizes of one call.
#pragma once

#include <memory>
#include <vector>

#include "hlo/module.h"

namespace passes {

// `parameters` are the entry's, without `?`. In the result no shape has one, and no operation takes
// sizes as operands. Throws hlo::Error for parameters that the program does not take
// (kInvalidArgument), and where a size depends on more than the parameters' sizes
// (kUnimplemented).
std::unique_ptr<hlo::Module> InstantiateSizes(const hlo::Module& module,
                                              const std::vector<hlo::Shape>& parameters);

}  // namespace passes
