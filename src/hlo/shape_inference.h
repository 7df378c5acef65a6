// The result shape of each operation, from its operands, attributes and called computations. The
// one place that knows StableHLO's constraints: Builder and VerifyModule both use it.
#pragma once

#include <optional>
#include <span>

#include "hlo/module.h"

namespace hlo {

// Returns the shape; throws Error that names the operation, the operands' shapes and the rule when
// they break one. `given` is the shape that the program states: demanded for operations whose
// operands do not determine it (constant takes its literal's; broadcast_in_dim, reshape, iota,
// convert, bitcast_convert, rng, custom_call, parameter, …), and elsewhere, if present, it may only
// choose what the operation leaves open (dot's and convolution's element type).
Shape InferShape(Opcode opcode, std::span<const Shape* const> operands,
                 const Attributes& attributes, std::span<Computation* const> called,
                 const std::optional<Shape>& given);

}  // namespace hlo
