// The extensions offered: Layouts, MemoryDescriptions and Profiler.
#include "pjrt/boundary/extensions.h"

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"
#include "pjrt/plugin/buffer.h"
#include "pjrt/plugin/executable.h"
#include "pjrt/plugin/profiler.h"

namespace pjrt::plugin {

void BufferLayout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args& args) {
  args.layout =
      new PJRT_Layouts_MemoryLayout{LayoutText(Require(args.buffer, "buffer").shape.rank())};
}

void OutputLayouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args& args) {
  const Program& program = *Require(args.executable, "executable").program;
  args.num_outputs = program.result_layout_handles.size();
  args.layouts = const_cast<PJRT_Layouts_MemoryLayout**>(program.result_layout_handles.data());
}

void ParameterLayouts(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args& args) {
  const Program& program = *Require(args.executable, "executable").program;
  args.num_parameters = program.parameter_layout_handles.size();
  args.layouts = const_cast<PJRT_Layouts_MemoryLayout**>(program.parameter_layout_handles.data());
}

PJRT_Extension_Base* Extensions() {
  static PJRT_Profiler_Extension profiler = {
      {sizeof profiler, PJRT_Extension_Type_Profiler, nullptr}, ProfilerApi(), 0};
  static PJRT_MemoryDescriptions_Extension memories = MemoryDescriptionsExtension(&profiler.base);
  static PJRT_Layouts_Extension layouts = LayoutsExtension(&memories.base);
  return &layouts.base;
}

}  // namespace pjrt::plugin
