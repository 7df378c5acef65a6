// The passes that bring a module to the form that code is generated for, in one table: what the
// engine runs is what the tests run.
#pragma once

#include <string_view>
#include <vector>

#include "hlo/module.h"

namespace cpu {

struct Pass {
  std::string_view name;
  // After it the module is well formed and computes the same, so that the reference evaluator can
  // run it; sums may be formed in another order.
  void (*run)(hlo::Module& module);
};

// In the order in which they run; some come more than once:
//   1. prepare: calls and composites are inlined (but those that the engine computes itself, such
//      as chlo.erf), what no kernel does is expanded, the rest simplified. Collectives are resolved
//      if the program is for a `single_device`;
//   2. fuse: operations become the kernels and library calls that program_builder.h binds.
std::vector<Pass> Pipeline(bool single_device);

void RunPipeline(hlo::Module& module, bool single_device);

}  // namespace cpu
