// The handlers of foreign functions that this process knows, by the target of the custom calls
// that call them.
#pragma once

#include <cstdint>
#include <string_view>

#include "cpu/foreign_interface.h"

namespace cpu {

// From any thread. A name keeps its handler: throws hlo::Error if it has another one.
void RegisterForeignHandler(std::string_view target, ffi::Handler* handler);
// Null if there is none.
ffi::Handler* FindForeignHandler(std::string_view target);

// The number of a type of that name: `given`, or a new one for 0. Throws hlo::Error if the name has
// another.
int64_t RegisterForeignType(std::string_view name, int64_t given);

}  // namespace cpu
