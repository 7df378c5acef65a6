// MLIR's bytecode container: sections, tables and the encoding of operations, for bytecode versions
// 0 to 6. It knows nothing of what operations mean, only (from the operation table) how many
// properties they list.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "hlo/bytecode_program.h"

namespace hlo::bytecode {

// What every container begins with.
inline constexpr std::string_view kMagic = "ML\xefR";

// The strings of the result borrow from `bytes`. Throws Error with the offset for malformed input.
Program ParseContainer(std::span<const std::byte> bytes);

// Version 6. Operations' properties must be in their table's order.
std::string WriteContainer(const Program& program);

}  // namespace hlo::bytecode
