#include "hlo/error.h"
#include "pjrt/boundary/extensions.h"
#include "pjrt/boundary/profiler_extension.h"
#include "pjrt/boundary/serialized.h"
#include "pjrt/boundary/table.h"
#include "process/sha256.h"
#include "remote/client/buffer.h"
#include "remote/client/executable.h"

namespace pjrt::boundary {

PJRT_Extension_Base* Extensions() {
  static PJRT_Profiler_Extension profiler = ProfilerExtension(nullptr);
  static PJRT_MemoryDescriptions_Extension memories = MemoryDescriptionsExtension(&profiler.base);
  static PJRT_Layouts_Extension layouts = LayoutsExtension(&memories.base);
  return &layouts.base;
}

void TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args& args) {
  HandOut(Require(args.topology, "topology").serialized, args.serialized_bytes,
          args.serialized_bytes_size, args.serialized_topology, args.serialized_topology_deleter);
}

void TopologyDescription_Fingerprint(PJRT_TopologyDescription_Fingerprint_Args& args) {
  const PJRT_TopologyDescription& topology = Require(args.topology, "topology");
  args.fingerprint = process::First64Bits(
      process::Sha256OfParts({topology.platform_version, topology.serialized}));
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

}  // namespace pjrt::boundary
