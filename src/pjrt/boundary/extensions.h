// Extensions whose functions are the same in every plugin.
#pragma once

#include "pjrt/c_api.h"

namespace pjrt::boundary {

// Each followed by `next` in the chain.
PJRT_MemoryDescriptions_Extension MemoryDescriptionsExtension(PJRT_Extension_Base* next);
PJRT_Layouts_Extension LayoutsExtension(PJRT_Extension_Base* next);

void BufferLayout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args& args);
void OutputLayouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args& args);
void ParameterLayouts(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args& args);

}  // namespace pjrt::boundary
