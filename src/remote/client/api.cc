#include "pjrt/boundary/extensions.h"
#include "pjrt/boundary/serialized.h"
#include "pjrt/boundary/table.h"
#include "remote/client/buffer.h"
#include "remote/client/executable.h"

namespace pjrt::plugin {

void BufferLayout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args& args) {
  args.layout =
      new PJRT_Layouts_MemoryLayout{LayoutText(Require(args.buffer, "buffer").shape.rank())};
}

void OutputLayouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args& args) {
  const remote::Program& program = *Require(args.executable, "executable").program;
  args.num_outputs = program.result_layout_handles.size();
  args.layouts = const_cast<PJRT_Layouts_MemoryLayout**>(program.result_layout_handles.data());
}

void ParameterLayouts(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args& args) {
  const remote::Program& program = *Require(args.executable, "executable").program;
  args.num_parameters = program.parameter_layout_handles.size();
  args.layouts = const_cast<PJRT_Layouts_MemoryLayout**>(program.parameter_layout_handles.data());
}

PJRT_Extension_Base* Extensions() {
  static PJRT_MemoryDescriptions_Extension memories = MemoryDescriptionsExtension(nullptr);
  static PJRT_Layouts_Extension layouts = LayoutsExtension(&memories.base);
  return &layouts.base;
}

// The client's topology; others are the server's plugin's to make.
void TopologyDescription_PlatformName(PJRT_TopologyDescription_PlatformName_Args& args) {
  const std::string& name = Require(args.topology, "topology").platform_name;
  args.platform_name = name.data();
  args.platform_name_size = name.size();
}

void TopologyDescription_PlatformVersion(PJRT_TopologyDescription_PlatformVersion_Args& args) {
  const std::string& version = Require(args.topology, "topology").platform_version;
  args.platform_version = version.data();
  args.platform_version_size = version.size();
}

void TopologyDescription_GetDeviceDescriptions(
    PJRT_TopologyDescription_GetDeviceDescriptions_Args& args) {
  const PJRT_TopologyDescription& topology = Require(args.topology, "topology");
  args.descriptions = topology.handles.data();
  args.num_descriptions = topology.handles.size();
}

void TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args& args) {
  auto* serialized = new PJRT_SerializedTopology{Require(args.topology, "topology").serialized};
  args.serialized_bytes = serialized->bytes.data();
  args.serialized_bytes_size = serialized->bytes.size();
  args.serialized_topology = serialized;
  args.serialized_topology_deleter = [](PJRT_SerializedTopology* s) { delete s; };
}

void TopologyDescription_Attributes(PJRT_TopologyDescription_Attributes_Args& args) {
  Require(args.topology, "topology");
  args.attributes = nullptr;
  args.num_attributes = 0;
}

void TopologyDescription_Fingerprint(PJRT_TopologyDescription_Fingerprint_Args& args) {
  const PJRT_TopologyDescription& topology = Require(args.topology, "topology");
  args.fingerprint = Fingerprint64(topology.serialized, Fingerprint64(topology.platform_version));
}

// Destroys nothing: the client owns its topology, and there are no others.
void TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args& args) {}

#define REMOTE_NOT_OFFERED(name)                                           \
  void name(PJRT_##name##_Args& args) {                                    \
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,                       \
                     "the client of a runtime server has no PJRT_" #name); \
  }
// Addresses in the server's process.
REMOTE_NOT_OFFERED(Client_CreateViewOfDeviceBuffer)
REMOTE_NOT_OFFERED(Buffer_UnsafePointer)
REMOTE_NOT_OFFERED(Buffer_OpaqueDeviceMemoryDataPointer)
REMOTE_NOT_OFFERED(Buffer_IncreaseExternalReferenceCount)
REMOTE_NOT_OFFERED(Buffer_DecreaseExternalReferenceCount)
// What an earlier session left in that memory is not for this one.
REMOTE_NOT_OFFERED(Client_CreateUninitializedBuffer)
// Compiling without devices.
REMOTE_NOT_OFFERED(TopologyDescription_Create)
REMOTE_NOT_OFFERED(TopologyDescription_Deserialize)
REMOTE_NOT_OFFERED(TopologyDescription_MakeCanonicalShapeForMemorySpace)
REMOTE_NOT_OFFERED(TopologyDescription_GetMemorySpaceKindIds)
REMOTE_NOT_OFFERED(Compile)
REMOTE_NOT_OFFERED(Client_Load)
// Buffers that are filled piece by piece, promised, or streamed.
REMOTE_NOT_OFFERED(Client_CreateBuffersForAsyncHostToDevice)
REMOTE_NOT_OFFERED(AsyncHostToDeviceTransferManager_Destroy)
REMOTE_NOT_OFFERED(AsyncHostToDeviceTransferManager_TransferData)
REMOTE_NOT_OFFERED(AsyncHostToDeviceTransferManager_TransferLiteral)
REMOTE_NOT_OFFERED(AsyncHostToDeviceTransferManager_RetrieveBuffer)
REMOTE_NOT_OFFERED(AsyncHostToDeviceTransferManager_Device)
REMOTE_NOT_OFFERED(AsyncHostToDeviceTransferManager_BufferCount)
REMOTE_NOT_OFFERED(AsyncHostToDeviceTransferManager_BufferSize)
REMOTE_NOT_OFFERED(AsyncHostToDeviceTransferManager_SetBufferError)
REMOTE_NOT_OFFERED(AsyncHostToDeviceTransferManager_AddMetadata)
REMOTE_NOT_OFFERED(Client_CreateErrorBuffer)
REMOTE_NOT_OFFERED(Client_CreateAliasBuffer)
REMOTE_NOT_OFFERED(Client_FulfillAliasBuffer)
REMOTE_NOT_OFFERED(Buffer_DonateWithControlDependency)
REMOTE_NOT_OFFERED(Buffer_CopyRawToHostFuture)
REMOTE_NOT_OFFERED(Buffer_Bitcast)
REMOTE_NOT_OFFERED(CopyToDeviceStream_Destroy)
REMOTE_NOT_OFFERED(CopyToDeviceStream_AddChunk)
REMOTE_NOT_OFFERED(CopyToDeviceStream_TotalBytes)
REMOTE_NOT_OFFERED(CopyToDeviceStream_GranuleSize)
REMOTE_NOT_OFFERED(CopyToDeviceStream_CurrentBytes)
REMOTE_NOT_OFFERED(Device_ClearMemoryStats)
REMOTE_NOT_OFFERED(Device_PoisonExecution)
#undef REMOTE_NOT_OFFERED

const PJRT_Api& Api() {
  static const Table table = MakeTable();
  return table.api;
}

}  // namespace pjrt::plugin
