// The part of simplify.cc that concerns operations which only move data.
#pragma once

#include "hlo/builder.h"

namespace passes {

// The value that replaces a reshape, transpose, broadcast_in_dim, slice, reverse, pad, concatenate,
// dynamic_slice or dynamic_update_slice; null when it stays, or for other operations.
hlo::Value SimplifyRearrangement(hlo::Builder& builder, hlo::Instruction& instruction);

}  // namespace passes
