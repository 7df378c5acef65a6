#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/extensions.h"
#include "pjrt/boundary/layout.h"
#include "pjrt/boundary/serialized.h"

namespace pjrt::boundary {
namespace {

void LayoutDestroy(PJRT_Layouts_MemoryLayout_Destroy_Args& args) {
  if (args.layout != nullptr && !args.layout->owned_by_executable) delete args.layout;
}

void LayoutSerialize(PJRT_Layouts_MemoryLayout_Serialize_Args& args) {
  HandOut(Require(args.layout, "layout").text, args.serialized_bytes, args.serialized_bytes_size,
          args.serialized_layout, args.serialized_layout_deleter);
}

void ClientDefaultLayout(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args& args) {
  Require(args.client, "client");
  args.layout = new PJRT_Layouts_MemoryLayout{LayoutText(static_cast<int64_t>(args.num_dims))};
}

void TopologyDefaultLayout(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args& args) {
  Require(args.topology_description, "topology");
  args.layout = new PJRT_Layouts_MemoryLayout{LayoutText(static_cast<int64_t>(args.num_dims))};
}

}  // namespace

#define ENTRY(function, args) (&Entry<args, function>)

PJRT_Layouts_Extension LayoutsExtension(PJRT_Extension_Base* next) {
  return {
      {sizeof(PJRT_Layouts_Extension), PJRT_Extension_Type_Layouts, next},
      ENTRY(LayoutDestroy, PJRT_Layouts_MemoryLayout_Destroy_Args),
      ENTRY(LayoutSerialize, PJRT_Layouts_MemoryLayout_Serialize_Args),
      ENTRY(ClientDefaultLayout, PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args),
      ENTRY(BufferLayout, PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args),
      ENTRY(TopologyDefaultLayout, PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args),
      ENTRY(OutputLayouts, PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args),
      ENTRY(ParameterLayouts, PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args),
  };
}

}  // namespace pjrt::boundary
