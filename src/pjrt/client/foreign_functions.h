// Functions of the user's that programs call: XLA's FFI.
#pragma once

#include <string_view>

#include "pjrt/client/plugin.h"

namespace pjrt {

// For programs that the plugin compiles from now on: `handler` is an XLA_FFI_Handler. Throws
// hlo::Error: kUnimplemented if it takes none, and what it answers.
void RegisterForeignFunction(const Plugin& plugin, std::string_view target, void* handler,
                             std::string_view platform);

}  // namespace pjrt
