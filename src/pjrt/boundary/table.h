// The table of functions, all of them: each slot of c_api.h is the function of that name in
// functions.h, which the plugin defines.
#pragma once

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"

namespace pjrt::boundary {

// Frameworks newer than the table may look behind its end, by the minor version alone; there they
// find nulls.
struct Table {
  PJRT_Api api;
  void* later_functions[64];
};

inline Table MakeTable() {
  Table table{};
  table.api.struct_size = sizeof(PJRT_Api);
  table.api.extension_start = Extensions();
  table.api.pjrt_api_version = {sizeof(PJRT_Api_Version), nullptr, PJRT_API_MAJOR, PJRT_API_MINOR};
  table.api.PJRT_Error_Destroy = Error_Destroy;
  table.api.PJRT_Error_Message = Error_Message;
#define PJRT_FILL(name) table.api.PJRT_##name = &Entry<PJRT_##name##_Args, name>;
  PJRT_API_FUNCTIONS(PJRT_FILL)
#undef PJRT_FILL
  return table;
}

}  // namespace pjrt::boundary
