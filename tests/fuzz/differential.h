// Programs on the engine and on the reference evaluator.
#pragma once

#include <string>

#include "cpu/pipeline.h"
#include "random_program.h"

namespace fuzz {

struct Outcome {
  std::string failure;             // empty if all is right
  int64_t known = 0, unknown = 0;  // elements that were compared, or could not be
};

// Applies each pass of the engine's pipeline in turn: after each the module is well formed and
// computes the same.
Outcome CheckPasses(const RandomProgram& program);

// Compiles and runs it twice, the second time with the arguments given up whose buffers results may
// take, and once more after it was serialized and loaded. The compiler leaves out the passes
// `disabled`.
Outcome CheckEngine(const RandomProgram& program, const cpu::PassNames& disabled = {});

// Whether the evaluator runs the module in a fraction of a second and in little memory.
bool IsSmall(const hlo::Module& module);

}  // namespace fuzz
