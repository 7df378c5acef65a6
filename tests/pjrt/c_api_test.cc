// Sizes of the interface's structs (0.114) as an independent declaration of it has them: a field
// that is missing, too many or of another type shows here.
#include "pjrt/c_api.h"

#include <gtest/gtest.h>

namespace {

// struct, last field, bytes up to its end
#define STRUCT_SIZES(X)                                                                           \
  X(PJRT_Api, PJRT_TopologyDescription_GetMemorySpaceKindIds, 1144)                               \
  X(PJRT_Api_Version, minor_version, 24)                                                          \
  X(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args, num_metadata, 40)                     \
  X(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args, buffer_count, 32)                     \
  X(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args, buffer_size, 40)                       \
  X(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args, transfer_manager, 24)                     \
  X(PJRT_AsyncHostToDeviceTransferManager_Device_Args, device_out, 32)                            \
  X(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args, buffer_out, 40)                    \
  X(PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args, error_message_size, 48)            \
  X(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args, done_with_h2d_transfer, 72)          \
  X(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args, done_with_h2d_transfer, 80)       \
  X(PJRT_AsyncTrackingEvent_Destroy_Args, event, 24)                                              \
  X(PJRT_Buffer_Bitcast_Args, out_buffer, 64)                                                     \
  X(PJRT_Buffer_CopyRawToHostFuture_Args, future_ready_callback, 64)                              \
  X(PJRT_Buffer_CopyRawToHostFuture_Callback_Args, dst, 48)                                       \
  X(PJRT_Buffer_CopyRawToHost_Args, event, 56)                                                    \
  X(PJRT_Buffer_CopyToDevice_Args, dst_buffer, 40)                                                \
  X(PJRT_Buffer_CopyToMemory_Args, dst_buffer, 40)                                                \
  X(PJRT_Buffer_DecreaseExternalReferenceCount_Args, buffer, 24)                                  \
  X(PJRT_Buffer_Delete_Args, buffer, 24)                                                          \
  X(PJRT_Buffer_Destroy_Args, buffer, 24)                                                         \
  X(PJRT_Buffer_Device_Args, device, 32)                                                          \
  X(PJRT_Buffer_Dimensions_Args, num_dims, 40)                                                    \
  X(PJRT_Buffer_DonateWithControlDependency_Args, out_buffer, 48)                                 \
  X(PJRT_Buffer_DonateWithControlDependency_Callback_Args, error_message_size, 40)                \
  X(PJRT_Buffer_DynamicDimensionIndices_Args, num_dynamic_dims, 40)                               \
  X(PJRT_Buffer_ElementType_Args, type, 28)                                                       \
  X(PJRT_Buffer_GetMemoryLayout_Args, layout, 104)                                                \
  X(PJRT_Buffer_IncreaseExternalReferenceCount_Args, buffer, 24)                                  \
  X(PJRT_Buffer_IsDeleted_Args, is_deleted, 25)                                                   \
  X(PJRT_Buffer_IsOnCpu_Args, is_on_cpu, 25)                                                      \
  X(PJRT_Buffer_MemoryLayout, type, 76)                                                           \
  X(PJRT_Buffer_MemoryLayout_Strides, num_byte_strides, 32)                                       \
  X(PJRT_Buffer_MemoryLayout_Tiled, num_tiles, 56)                                                \
  X(PJRT_Buffer_Memory_Args, memory, 32)                                                          \
  X(PJRT_Buffer_OnDeviceSizeInBytes_Args, on_device_size_in_bytes, 32)                            \
  X(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, device_memory_ptr, 32)                        \
  X(PJRT_Buffer_ReadyEvent_Args, event, 32)                                                       \
  X(PJRT_Buffer_ToHostBuffer_Args, event, 56)                                                     \
  X(PJRT_Buffer_UnpaddedDimensions_Args, num_dims, 40)                                            \
  X(PJRT_Buffer_UnsafePointer_Args, buffer_pointer, 32)                                           \
  X(PJRT_Chunk, deleter_arg, 32)                                                                  \
  X(PJRT_Client_AddressableDevices_Args, num_addressable_devices, 40)                             \
  X(PJRT_Client_AddressableMemories_Args, num_addressable_memories, 40)                           \
  X(PJRT_Client_BufferFromHostBuffer_Args, buffer, 120)                                           \
  X(PJRT_Client_Compile_Args, executable, 56)                                                     \
  X(PJRT_Client_CreateAliasBuffer_Args, fulfill_alias_buffer_cb, 80)                              \
  X(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args, transfer_manager, 72)                     \
  X(PJRT_Client_CreateErrorBuffer_Args, num_payload, 112)                                         \
  X(PJRT_Client_CreateUninitializedBuffer_Args, buffer, 80)                                       \
  X(PJRT_Client_CreateViewOfDeviceBuffer_Args, memory, 112)                                       \
  X(PJRT_Client_Create_Args, kv_try_get_user_arg, 88)                                             \
  X(PJRT_Client_DefaultDeviceAssignment_Args, default_assignment, 48)                             \
  X(PJRT_Client_Destroy_Args, client, 24)                                                         \
  X(PJRT_Client_Devices_Args, num_devices, 40)                                                    \
  X(PJRT_Client_DmaMap_Args, size, 40)                                                            \
  X(PJRT_Client_DmaUnmap_Args, data, 32)                                                          \
  X(PJRT_Client_FulfillAliasBuffer_Args, fulfill_alias_buffer_cb, 64)                             \
  X(PJRT_Client_Load_Args, loaded_executable, 56)                                                 \
  X(PJRT_Client_LookupAddressableDevice_Args, addressable_device, 40)                             \
  X(PJRT_Client_LookupDevice_Args, device, 40)                                                    \
  X(PJRT_Client_PlatformName_Args, platform_name_size, 40)                                        \
  X(PJRT_Client_PlatformVersion_Args, platform_version_size, 40)                                  \
  X(PJRT_Client_ProcessIndex_Args, process_index, 28)                                             \
  X(PJRT_Client_TopologyDescription_Args, topology, 32)                                           \
  X(PJRT_Client_UpdateGlobalProcessInfo_Args, num_process_infos, 40)                              \
  X(PJRT_Compile_Args, executable, 64)                                                            \
  X(PJRT_CopyToDeviceStream_AddChunk_Args, transfer_complete, 40)                                 \
  X(PJRT_CopyToDeviceStream_CurrentBytes_Args, current_bytes, 32)                                 \
  X(PJRT_CopyToDeviceStream_Destroy_Args, stream, 24)                                             \
  X(PJRT_CopyToDeviceStream_GranuleSize_Args, granule_size_in_bytes, 32)                          \
  X(PJRT_CopyToDeviceStream_TotalBytes_Args, total_bytes, 32)                                     \
  X(PJRT_DeviceDescription_Attributes_Args, attributes, 40)                                       \
  X(PJRT_DeviceDescription_DebugString_Args, debug_string_size, 40)                               \
  X(PJRT_DeviceDescription_Id_Args, id, 28)                                                       \
  X(PJRT_DeviceDescription_Kind_Args, device_kind_size, 40)                                       \
  X(PJRT_DeviceDescription_MemoryDescriptions_Args, default_memory_index, 48)                     \
  X(PJRT_DeviceDescription_ProcessIndex_Args, process_index, 28)                                  \
  X(PJRT_DeviceDescription_ToString_Args, to_string_size, 40)                                     \
  X(PJRT_Device_AddressableMemories_Args, num_memories, 40)                                       \
  X(PJRT_Device_ClearMemoryStats_Args, device, 24)                                                \
  X(PJRT_Device_CreateAsyncTrackingEvent_Args, event, 48)                                         \
  X(PJRT_Device_DefaultMemory_Args, memory, 32)                                                   \
  X(PJRT_Device_GetAttributes_Args, attributes_deleter, 56)                                       \
  X(PJRT_Device_GetDescription_Args, device_description, 32)                                      \
  X(PJRT_Device_IsAddressable_Args, is_addressable, 25)                                           \
  X(PJRT_Device_LocalHardwareId_Args, local_hardware_id, 28)                                      \
  X(PJRT_Device_MemoryStats_Args, peak_allocated_bytes_is_set, 201)                               \
  X(PJRT_Device_PoisonExecution_Args, num_payload, 72)                                            \
  X(PJRT_Error, vtable, 8)                                                                        \
  X(PJRT_Error_Destroy_Args, error, 24)                                                           \
  X(PJRT_Error_ForEachPayload_Args, user_arg, 40)                                                 \
  X(PJRT_Error_FunctionTable, for_each_payload, 56)                                               \
  X(PJRT_Error_GetCode_Args, code, 28)                                                            \
  X(PJRT_Error_Message_Args, message_size, 40)                                                    \
  X(PJRT_Event_Await_Args, event, 24)                                                             \
  X(PJRT_Event_Create_Args, event, 24)                                                            \
  X(PJRT_Event_Destroy_Args, event, 24)                                                           \
  X(PJRT_Event_Error_Args, event, 24)                                                             \
  X(PJRT_Event_IsReady_Args, is_ready, 25)                                                        \
  X(PJRT_Event_OnReady_Args, user_arg, 40)                                                        \
  X(PJRT_Event_Set_Args, error_message_size, 48)                                                  \
  X(PJRT_Executable_DeserializeAndLoad_Args, load_options, 72)                                    \
  X(PJRT_Executable_Destroy_Args, executable, 24)                                                 \
  X(PJRT_Executable_Fingerprint_Args, executable_fingerprint_size, 40)                            \
  X(PJRT_Executable_GetCompileOptions_Args, serialized_compile_options_deleter, 56)               \
  X(PJRT_Executable_GetCompiledMemoryStats_Args, peak_unpadded_heap_bytes, 144)                   \
  X(PJRT_Executable_GetCostAnalysis_Args, properties, 40)                                         \
  X(PJRT_Executable_Name_Args, executable_name_size, 40)                                          \
  X(PJRT_Executable_NumOutputs_Args, num_outputs, 32)                                             \
  X(PJRT_Executable_NumPartitions_Args, num_partitions, 32)                                       \
  X(PJRT_Executable_NumReplicas_Args, num_replicas, 32)                                           \
  X(PJRT_Executable_OptimizedProgram_Args, program, 32)                                           \
  X(PJRT_Executable_OutputDimensions_Args, dim_sizes, 48)                                         \
  X(PJRT_Executable_OutputElementTypes_Args, num_output_types, 40)                                \
  X(PJRT_Executable_OutputMemoryKinds_Args, memory_kind_sizes, 48)                                \
  X(PJRT_Executable_ParameterMemoryKinds_Args, memory_kind_sizes, 48)                             \
  X(PJRT_Executable_Serialize_Args, serialized_executable_deleter, 56)                            \
  X(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, size_in_bytes, 32)                           \
  X(PJRT_ExecuteContext_Create_Args, context, 24)                                                 \
  X(PJRT_ExecuteContext_Destroy_Args, context, 24)                                                \
  X(PJRT_ExecuteOptions, num_hlo_output_callbacks, 144)                                           \
  X(PJRT_Extension_Base, next, 24)                                                                \
  X(PJRT_FFI_Extension, register_handler, 48)                                                     \
  X(PJRT_FFI_Register_Handler_Args, traits, 52)                                                   \
  X(PJRT_FFI_Type_Info, deserialize, 24)                                                          \
  X(PJRT_FFI_Type_Register_Args, type_info, 48)                                                   \
  X(PJRT_FFI_UserData, data, 16)                                                                  \
  X(PJRT_FFI_UserData_Add_Args, user_data, 40)                                                    \
  X(PJRT_HloOutputCallbackInfo, num_operands, 32)                                                 \
  X(PJRT_KeyValueGetCallback_Args, value_deleter_callback, 80)                                    \
  X(PJRT_KeyValuePutCallback_Args, user_arg, 64)                                                  \
  X(PJRT_KeyValueTryGetCallback_Args, value_deleter_callback, 72)                                 \
  X(PJRT_Layouts_Extension, PJRT_Layouts_PJRT_Executable_GetParameterLayouts, 80)                 \
  X(PJRT_Layouts_MemoryLayout_Destroy_Args, layout, 24)                                           \
  X(PJRT_Layouts_MemoryLayout_Serialize_Args, serialized_layout_deleter, 56)                      \
  X(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, layout, 32)                                       \
  X(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, layout, 56)                                   \
  X(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, layouts, 40)                              \
  X(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, layouts, 40)                           \
  X(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, layout, 56)                                 \
  X(PJRT_LoadOptions, multi_slice_config, 32)                                                     \
  X(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, num_addressable_device_logical_ids,   \
    40)                                                                                           \
  X(PJRT_LoadedExecutable_AddressableDevices_Args, num_addressable_devices, 40)                   \
  X(PJRT_LoadedExecutable_Delete_Args, executable, 24)                                            \
  X(PJRT_LoadedExecutable_Destroy_Args, executable, 24)                                           \
  X(PJRT_LoadedExecutable_Execute_Args, execute_device, 80)                                       \
  X(PJRT_LoadedExecutable_Fingerprint_Args, executable_fingerprint_size, 40)                      \
  X(PJRT_LoadedExecutable_GetDeviceAssignment_Args, serialized_device_assignment_deleter, 56)     \
  X(PJRT_LoadedExecutable_GetExecutable_Args, executable, 32)                                     \
  X(PJRT_LoadedExecutable_IsDeleted_Args, is_deleted, 25)                                         \
  X(PJRT_LogicalDeviceIds, partition, 8)                                                          \
  X(PJRT_Memory, vtable, 8)                                                                       \
  X(PJRT_MemoryDescription_Kind_Args, kind_id, 44)                                                \
  X(PJRT_MemoryDescriptions_Extension, PJRT_MemoryDescription_Kind, 40)                           \
  X(PJRT_Memory_AddressableByDevices_Args, num_devices, 40)                                       \
  X(PJRT_Memory_DebugString_Args, debug_string_size, 40)                                          \
  X(PJRT_Memory_FunctionTable, set_user_data, 40)                                                 \
  X(PJRT_Memory_Id_Args, id, 28)                                                                  \
  X(PJRT_Memory_Kind_Args, kind_size, 40)                                                         \
  X(PJRT_Memory_Kind_Id_Args, kind_id, 28)                                                        \
  X(PJRT_Memory_ToString_Args, to_string_size, 40)                                                \
  X(PJRT_NamedValue, value_size, 56)                                                              \
  X(PJRT_Plugin_Attributes_Args, num_attributes, 32)                                              \
  X(PJRT_Plugin_Initialize_Args, extension_start, 16)                                             \
  X(PJRT_ProcessInfo, error_message_size, 48)                                                     \
  X(PJRT_Program, format_size, 48)                                                                \
  X(PJRT_RecvCallbackInfo, recv_callback, 24)                                                     \
  X(PJRT_SendCallbackInfo, send_callback, 24)                                                     \
  X(PJRT_ShapeSpec, element_type, 36)                                                             \
  X(PJRT_TopologyDescription_Attributes_Args, num_attributes, 40)                                 \
  X(PJRT_TopologyDescription_Create_Args, topology, 56)                                           \
  X(PJRT_TopologyDescription_Deserialize_Args, topology, 40)                                      \
  X(PJRT_TopologyDescription_Destroy_Args, topology, 24)                                          \
  X(PJRT_TopologyDescription_Fingerprint_Args, fingerprint, 32)                                   \
  X(PJRT_TopologyDescription_GetDeviceDescriptions_Args, num_descriptions, 40)                    \
  X(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, num_memory_space_kind_ids, 40)           \
  X(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, serialized_shape_deleter, 88) \
  X(PJRT_TopologyDescription_PlatformName_Args, platform_name_size, 40)                           \
  X(PJRT_TopologyDescription_PlatformVersion_Args, platform_version_size, 40)                     \
  X(PJRT_TopologyDescription_Serialize_Args, serialized_topology_deleter, 56)

TEST(CApi, StructSizes){
#define CHECK_SIZE(type, last, size) EXPECT_EQ(PJRT_STRUCT_SIZE(type, last), size) << #type;
    STRUCT_SIZES(CHECK_SIZE)
#undef CHECK_SIZE
}

TEST(CApi, TableOrder) {
  auto slot = [](size_t offset) { return (offset - 40) / 8; };
  EXPECT_EQ(slot(offsetof(PJRT_Api, PJRT_Error_Destroy)), 0);
  EXPECT_EQ(slot(offsetof(PJRT_Api, PJRT_Client_Create)), 10);
  EXPECT_EQ(slot(offsetof(PJRT_Api, PJRT_Client_Compile)), 20);
  EXPECT_EQ(slot(offsetof(PJRT_Api, PJRT_LoadedExecutable_Execute)), 55);
  EXPECT_EQ(slot(offsetof(PJRT_Api, PJRT_Compile)), 89);
  EXPECT_EQ(slot(offsetof(PJRT_Api, PJRT_Executable_OutputElementTypes)), 90);
  EXPECT_EQ(slot(offsetof(PJRT_Api, PJRT_Client_DmaMap)), 110);
  EXPECT_EQ(slot(offsetof(PJRT_Api, PJRT_Event_Create)), 126);
  EXPECT_EQ(slot(offsetof(PJRT_Api, PJRT_TopologyDescription_GetMemorySpaceKindIds)), 137);
}

}  // namespace
