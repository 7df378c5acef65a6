// Bodies of reductions that are one operation.
#pragma once

#include <optional>

#include "hlo/module.h"

namespace passes {

// The operation that a body is, when it is one on its two parameters whose results are the same
// (but for rounding) in whatever order and groups it takes the elements. None for a difference.
std::optional<hlo::Opcode> CombinerOf(const hlo::Computation& body);

// True if there is an hlo::IdentityLiteral of the operation for the type.
bool HasIdentity(hlo::Opcode combiner, hlo::ElementType type);

}  // namespace passes
