// Compiling a program for hardware that is not here.
#pragma once

#include <memory>
#include <string>

#include "pjrt/client/topology.h"

namespace lazy {

// `code`: StableHLO, as text or as bytecode. With the kernels that a program has to ask for, if the
// platform's compiler has them and takes the program with them. Throws hlo::Error: what the
// compiler says of the program as it is.
std::unique_ptr<pjrt::Executable> CompileAheadOfTime(const pjrt::Topology& topology,
                                                     const std::string& code);

}  // namespace lazy
