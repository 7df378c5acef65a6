#pragma once

#include "pjrt/c_api.h"

namespace pjrt::boundary {

// Followed by `next` in the chain.
PJRT_FFI_Extension ForeignFunctionsExtension(PJRT_Extension_Base* next);

}  // namespace pjrt::boundary
