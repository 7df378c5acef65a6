// What is known about a device of this process, of another one, or of a topology.
#pragma once

#include <string>
#include <vector>

#include "pjrt/c_api.h"

// One of the kinds of memory that devices of a description have.
struct PJRT_MemoryDescription {
  std::string kind;
  int kind_id = 0;
};

struct PJRT_DeviceDescription {
  int id = 0;
  int process_index = 0;
  std::string kind;  // "cpu", "NVIDIA H100"
  std::string debug_string, text;
  std::vector<PJRT_NamedValue> attributes;  // point at what the owner keeps
  std::vector<const PJRT_MemoryDescription*> memories;
  size_t default_memory = 0;  // its place in memories
};

namespace pjrt::boundary {

// Each plugin says where its devices keep it.
PJRT_DeviceDescription& DescriptionOf(PJRT_Device& device);

}  // namespace pjrt::boundary
