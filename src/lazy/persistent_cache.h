// Compiled programs kept in a folder from process to process.
#pragma once

#include <memory>

#include "hlo/module.h"
#include "pjrt/client/client.h"

namespace lazy {

// Compiles, or loads what an earlier process compiled from the same program with the same options
// on the same engine (InitializePersistentCache in sync.h).
std::unique_ptr<pjrt::LoadedExecutable> CompileOrLoad(pjrt::Client& client,
                                                      const hlo::Module& module,
                                                      const pjrt::CompileOptions& options);

}  // namespace lazy
