// Compiling a program that is handed over as it is (pjrt/module_extension.h).
#pragma once

#include <memory>

#include "hlo/module.h"
#include "pjrt/client/client.h"

namespace pjrt {

// False if the plugin is of another build or takes bytes only, and where the format is forced.
bool TakesModules(const Plugin& plugin);
// By a plugin that does. What is compiled in this way can neither be serialized nor tell its
// program.
std::unique_ptr<LoadedExecutable> CompileModule(Client& client, std::unique_ptr<hlo::Module> module,
                                                const CompileOptions& options);
// The loops that such a plugin has compiled in this process; none of one that does not say.
int64_t CompiledLoops(const Plugin& plugin);

}  // namespace pjrt
