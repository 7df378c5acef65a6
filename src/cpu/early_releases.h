// An order of instructions that needs less memory.
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/module.h"

namespace cpu {

// `order`, except that an instruction which frees more memory than it takes runs as soon as its
// operands are there. A graph that is recorded backwards from its results, parameter by parameter,
// keeps activations until the gradient's own turn; this takes each gradient where the activation is
// read last. `aliases`: as for AssignBuffers.
std::vector<const hlo::Instruction*> WithEarlyReleases(
    const hlo::Computation& computation, const std::vector<const hlo::Instruction*>& order,
    const std::vector<int64_t>& aliases);

}  // namespace cpu
