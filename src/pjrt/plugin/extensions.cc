// The extensions offered: Layouts and MemoryDescriptions.
#include "pjrt/plugin/boundary.h"
#include "pjrt/plugin/buffer.h"
#include "pjrt/plugin/executable.h"
#include "pjrt/plugin/functions.h"
#include "pjrt/plugin/serialized.h"

struct PJRT_MemoryDescription {};

namespace pjrt::plugin {
namespace {

void LayoutDestroy(PJRT_Layouts_MemoryLayout_Destroy_Args& args) {
  if (args.layout != nullptr && !args.layout->owned_by_executable) delete args.layout;
}

void LayoutSerialize(PJRT_Layouts_MemoryLayout_Serialize_Args& args) {
  auto* serialized = new PJRT_Layouts_SerializedLayout{Require(args.layout, "layout").text};
  args.serialized_bytes = serialized->bytes.data();
  args.serialized_bytes_size = serialized->bytes.size();
  args.serialized_layout = serialized;
  args.serialized_layout_deleter = [](PJRT_Layouts_SerializedLayout* s) { delete s; };
}

PJRT_Layouts_MemoryLayout* NewLayout(size_t rank) {
  return new PJRT_Layouts_MemoryLayout{LayoutText(static_cast<int64_t>(rank))};
}

void BufferLayout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args& args) {
  args.layout = NewLayout(Require(args.buffer, "buffer").shape.rank());
}

void ClientDefaultLayout(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args& args) {
  Require(args.client, "client");
  args.layout = NewLayout(args.num_dims);
}

void TopologyDefaultLayout(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args& args) {
  Require(args.topology_description, "topology");
  args.layout = NewLayout(args.num_dims);
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

void MemoryDescriptions(PJRT_DeviceDescription_MemoryDescriptions_Args& args) {
  static const PJRT_MemoryDescription description;
  static const PJRT_MemoryDescription* const descriptions[] = {&description};
  Require(args.device_description, "device description");
  args.memory_descriptions = descriptions;
  args.num_memory_descriptions = 1;
  args.default_memory_index = 0;
}

void MemoryDescriptionKind(PJRT_MemoryDescription_Kind_Args& args) {
  Require(args.memory_description, "memory description");
  args.kind = Memory::kKind;
  args.kind_size = std::strlen(Memory::kKind);
  args.kind_id = Memory::kKindId;
}

}  // namespace

#define ENTRY(function, args) (&Entry<args, function>)

PJRT_Extension_Base* Extensions() {
  static PJRT_MemoryDescriptions_Extension memories = {
      {sizeof memories, PJRT_Extension_Type_MemoryDescriptions, nullptr},
      ENTRY(MemoryDescriptions, PJRT_DeviceDescription_MemoryDescriptions_Args),
      ENTRY(MemoryDescriptionKind, PJRT_MemoryDescription_Kind_Args),
  };
  static PJRT_Layouts_Extension layouts = {
      {sizeof layouts, PJRT_Extension_Type_Layouts, &memories.base},
      ENTRY(LayoutDestroy, PJRT_Layouts_MemoryLayout_Destroy_Args),
      ENTRY(LayoutSerialize, PJRT_Layouts_MemoryLayout_Serialize_Args),
      ENTRY(ClientDefaultLayout, PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args),
      ENTRY(BufferLayout, PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args),
      ENTRY(TopologyDefaultLayout, PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args),
      ENTRY(OutputLayouts, PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args),
      ENTRY(ParameterLayouts, PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args),
  };
  return &layouts.base;
}

}  // namespace pjrt::plugin
