// Which shape modules have in memory.
#pragma once

namespace hlo {

// The same in libraries whose modules are laid out alike, because headers, compiler and its options
// are the same: such libraries may hand each other modules instead of bytecode.
const char* ModuleIdentity();

}  // namespace hlo
