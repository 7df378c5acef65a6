// What an execution takes along beside its arguments.
#pragma once

#include <vector>

#include "cpu/executable.h"
#include "pjrt/c_api.h"

struct PJRT_ExecuteContext {
  std::vector<cpu::ForeignData> foreign_data;
};
