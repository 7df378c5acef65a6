// The functions of the table as this plugin writes them: references instead of pointers, hlo::Error
// instead of PJRT_Error. api.cc wraps them for the C boundary. They are defined in the file that
// bears their handle's name.
#pragma once

#include "pjrt/c_api.h"

namespace pjrt::boundary {

#define PJRT_DECLARE(name) void name(PJRT_##name##_Args& args);
PJRT_API_FUNCTIONS(PJRT_DECLARE)
#undef PJRT_DECLARE

void Error_Destroy(PJRT_Error_Destroy_Args* args) noexcept;
void Error_Message(PJRT_Error_Message_Args* args) noexcept;

// Extensions, chained.
PJRT_Extension_Base* Extensions();

// The complete table.
const PJRT_Api& Api();

}  // namespace pjrt::boundary
