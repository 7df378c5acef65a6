// VHLO bytecode: StableHLO's portable artifacts in MLIR's bytecode container. This is what machines
// send: JAX to our plugin, we to any plugin. Written at version 1.8.0 (bytecode version 6); read at
// any version up to 1.8.0, and later ones as far as they use no newer operation.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "hlo/module.h"

namespace hlo {

// The version that we write, and that our plugin reports as stablehlo_current_version.
inline constexpr int64_t kStablehloVersion[3] = {1, 8, 0};
inline constexpr int64_t kStablehloMinimumVersion[3] = {0, 9, 0};

// Called computations of control flow and reductions become regions, those of call, composite and
// custom_call functions. What branches of `if` and `case` receive as operands they then see
// directly. The entry is `main`. InputOutputAlias::must_alias has no counterpart and is lost.
std::string WriteBytecode(const Module& module);

// Throws Error (kInvalidArgument) with the byte offset for malformed input, kUnimplemented naming
// the operation or type for what is well formed but unknown, kResourceExhausted for programs whose
// expansion is out of proportion. Never reads out of bounds, never allocates more than a multiple
// of the input's size (splat constants excepted: up to 64 MiB of them; beyond, and those over 16
// MiB, become a broadcast_in_dim of a scalar).
//
// Calls stay calls; composites stay composites; `sdy` content and unrealized_conversion_cast are
// dropped as identities. A value that a region of `while`, `if` or `case` captures is passed
// explicitly: to a loop as a further loop-carried value; captured constants are repeated inside, in
// the body of a reduction too, where any other capture is kUnimplemented. Custom calls whose
// dictionary is in "mhlo.backend_config" become api_version
// 4. Verifies the result.
std::unique_ptr<Module> ReadBytecode(std::span<const std::byte> bytes);

// True if the bytes begin like MLIR bytecode.
bool IsBytecode(std::span<const std::byte> bytes);

}  // namespace hlo
