// Functions of the user's that programs call: XLA's FFI.
#pragma once

#include <vector>

#include "cpu/executable.h"
#include "pjrt/c_api.h"

// What an execution takes along for them beside its arguments.
struct PJRT_ExecuteContext {
  std::vector<cpu::ForeignData> foreign_data;
};

namespace pjrt::boundary {

// Followed by `next` in the chain.
PJRT_FFI_Extension ForeignFunctionsExtension(PJRT_Extension_Base* next);

}  // namespace pjrt::boundary
