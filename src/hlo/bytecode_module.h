// From what a file holds to the program that it means.
#pragma once

#include <cstddef>
#include <memory>

#include "hlo/bytecode_program.h"
#include "hlo/module.h"

namespace hlo::bytecode {

// Verified. What the result occupies is bounded by a multiple of `input_size` in bytes. Throws
// PositionError, or Error where no place can be named.
std::unique_ptr<Module> MakeModule(const Program& program, size_t input_size);

}  // namespace hlo::bytecode
