// HLO's textual form, which users of XLA search and read: "%dot.5 = f32[2,4]{1,0} dot(f32[2,3]{1,0}
// %p0.1, …), lhs_contracting_dims={1}, …". For people: what machines read is StableHLO
// (text_writer.h, bytecode.h).
#pragma once

#include <string>
#include <string_view>

#include "hlo/module.h"

namespace hlo {

// The entry comes last and returns a tuple. Loops take one, and their computations are shown with
// it; a broadcast may stretch dimensions of size 1, as StableHLO's does. Long constants are elided.
std::string WriteHloText(const Module& module);

// As XLA writes it: "dot", "broadcast", "opt-barrier".
std::string HloOpcodeName(Opcode opcode);

// A framework's operation as metadata write it: "aten__add".
std::string HloOperationName(std::string_view name);

}  // namespace hlo
