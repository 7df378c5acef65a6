// What is told of a compiled program and of where it is loaded, in the form in which the C
// functions return it.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/shape.h"
#include "pjrt/boundary/layout.h"
#include "pjrt/c_api.h"

namespace pjrt::boundary {

struct MemoryKinds {
  void Add(std::string_view kind);  // which outlives this
  std::vector<const char*> names;
  std::vector<size_t> sizes;
};

struct Layouts {
  void Add(std::string text);
  std::vector<PJRT_Layouts_MemoryLayout*> handles;

 private:
  std::deque<PJRT_Layouts_MemoryLayout> layouts_;
};

struct ProgramDescription {
  ProgramDescription() = default;
  ProgramDescription(const ProgramDescription&) = delete;
  void AddResult(const hlo::Shape& shape);

  std::string name;
  std::string fingerprint;
  std::string compile_options;  // a CompileOptionsProto, as it came
  std::vector<PJRT_Buffer_Type> result_types;
  std::vector<int64_t> result_dimensions;  // of all results, one after the other
  std::vector<size_t> result_ranks;
  MemoryKinds parameter_memory_kinds, result_memory_kinds;
  Layouts parameter_layouts, result_layouts;
};

// The devices of this process that a loaded program runs on.
struct ProgramDevices {
  std::vector<PJRT_Device*> devices;
  std::vector<PJRT_LogicalDeviceIds> logical_ids;  // parallel to devices
};

// Each plugin says where its executables keep these.
const ProgramDescription& DescriptionOf(const PJRT_Executable& executable);
const ProgramDevices& DevicesOf(const PJRT_LoadedExecutable& executable);

// Fills what a caller of OptimizedProgram has room for: the size alone, if it gave none. Callers
// ask twice. Throws if the room is too small.
void FillProgram(std::string_view code, const char* format, PJRT_Program& out);

}  // namespace pjrt::boundary
