// Functions of the user's that programs call: XLA's FFI.
#pragma once

#include <string_view>

#include "pjrt/client/plugin.h"

namespace pjrt {

// For programs that are compiled from now on, by this plugin and all others of the process, those
// that it loads later among them, as far as they take it: `handler` is an XLA_FFI_Handler. Throws
// hlo::Error where this plugin does not: kUnimplemented if it takes none, and what it answers.
void RegisterForeignFunction(const Plugin& plugin, std::string_view target, void* handler,
                             std::string_view platform);
// Of a plugin that has been loaded.
void RegisterKnownForeignFunctions(const Plugin& plugin);

}  // namespace pjrt
