// HLO as JSON, with the fields of XLA's HloModuleProto: for programs that walk it. What machines
// compile is StableHLO (bytecode.h).
#pragma once

#include <string>

#include "hlo/module.h"

namespace hlo {

// {"name", "hostProgramShape": {"parameters", "result"}, "entryComputationName", "computations":
// [{"name", "id", "instructions": [{"name", "opcode", "shape", "id", "operandIds", …}]}]}. The
// result of the entry is a tuple; attributes of operations are left out.
std::string WriteHloJson(const Module& module);

}  // namespace hlo
