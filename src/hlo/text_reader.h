// StableHLO in MLIR's textual form, as JAX, the stablehlo project and we print it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "hlo/module.h"

namespace hlo {

// Reads the short forms of operations and the generic one ("stablehlo.add"(%0, %1) : …), with
// locations, aliases (#loc1, !t) and the resources at the end of a file. What the program then
// means, and the limits on what it may take, are those of bytecode (ReadBytecode). Operations of
// CHLO are kUnimplemented: JAX prints them, and replaces them on the way to a plugin.
//
// Throws Error with the line and column, and the line itself: "line 3, column 8: …".
std::unique_ptr<Module> ReadStablehloText(std::string_view text);

// A program as PJRT's format "mlir" has it: bytecode if it begins like it, text otherwise.
std::unique_ptr<Module> ReadStablehlo(std::span<const std::byte> program);

}  // namespace hlo
