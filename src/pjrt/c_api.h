// The PJRT C interface, major 0, minor 114: the one boundary between this project and accelerator
// plugins. A plugin is a shared library with one C symbol, GetPjrtApi, which returns the table
// PJRT_Api; everything else is reached through it.
//
// Every function takes one pointer to its own argument struct and returns an error (null: success).
// Every struct begins with its size as the caller knows it (bytes up to its last field, without
// tail padding) and a chain of extensions. Fields marked "out" are written by the callee, the
// others by the caller. Structs and the table only ever grow at their ends.
//
// One file, like the interface: the structs stand in the order of the table that ends it.
//
// Strings are pointer and size and not terminated, except ExecuteOptions.call_location.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

#define PJRT_API_MAJOR 0
#define PJRT_API_MINOR 114

#define PJRT_HEADER   \
  size_t struct_size; \
  PJRT_Extension_Base* extension_start

// Size that the interface prescribes for a struct: up to and including its last field.
#define PJRT_STRUCT_SIZE(type, last_field) \
  (offsetof(type, last_field) + sizeof(static_cast<type*>(nullptr)->last_field))

// ---- Extensions: a chain from PJRT_Api.extension_start, found by type.
enum PJRT_Extension_Type {
  PJRT_Extension_Type_Gpu_Custom_Call = 0,
  PJRT_Extension_Type_Profiler = 1,
  PJRT_Extension_Type_Custom_Partitioner = 2,
  PJRT_Extension_Type_Stream = 3,
  PJRT_Extension_Type_Layouts = 4,
  PJRT_Extension_Type_FFI = 5,
  PJRT_Extension_Type_MemoryDescriptions = 6,
  PJRT_Extension_Type_Triton = 7,
  PJRT_Extension_Type_RawBuffer = 8,
  PJRT_Extension_Type_PhaseCompile = 9,
  PJRT_Extension_Type_Example = 10,
  PJRT_Extension_Type_Unknown = 11,
  PJRT_Extension_Type_CrossHostTransfers = 12,
  PJRT_Extension_Type_ExecutableMetadata = 13,
  PJRT_Extension_Type_Callback = 14,
  PJRT_Extension_Type_HostAllocator = 15,
  PJRT_Extension_Type_TpuTopology = 16,
  PJRT_Extension_Type_TpuExecutable = 17,
  PJRT_Extension_Type_Megascale = 18,
  PJRT_Extension_Type_Shardings = 19,
  PJRT_Extension_Type_AbiVersion = 20,
  PJRT_Extension_Type_Collectives = 21,
  PJRT_Extension_Type_MultiSlice = 22,
  PJRT_Extension_Type_HostMemoryAllocator = 23,
  PJRT_Extension_Type_XlaTransform = 24,
  PJRT_Extension_Type_ResultMemory = 0x746f7263,  // this project's
  PJRT_Extension_Type_CallerWaits = 0x746f7264,   // this project's
};

struct PJRT_Extension_Base {
  size_t struct_size;
  PJRT_Extension_Type type;
  PJRT_Extension_Base* next;
};

struct PJRT_Api_Version {
  PJRT_HEADER;
  int major_version;  // out
  int minor_version;  // out
};

// ---- Enumerations.
// absl's status codes.
enum PJRT_Error_Code {
  PJRT_Error_Code_OK = 0,
  PJRT_Error_Code_CANCELLED = 1,
  PJRT_Error_Code_UNKNOWN = 2,
  PJRT_Error_Code_INVALID_ARGUMENT = 3,
  PJRT_Error_Code_DEADLINE_EXCEEDED = 4,
  PJRT_Error_Code_NOT_FOUND = 5,
  PJRT_Error_Code_ALREADY_EXISTS = 6,
  PJRT_Error_Code_PERMISSION_DENIED = 7,
  PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,
  PJRT_Error_Code_FAILED_PRECONDITION = 9,
  PJRT_Error_Code_ABORTED = 10,
  PJRT_Error_Code_OUT_OF_RANGE = 11,
  PJRT_Error_Code_UNIMPLEMENTED = 12,
  PJRT_Error_Code_INTERNAL = 13,
  PJRT_Error_Code_UNAVAILABLE = 14,
  PJRT_Error_Code_DATA_LOSS = 15,
  PJRT_Error_Code_UNAUTHENTICATED = 16,
};

// Not the numbers of XLA's PrimitiveType.
enum PJRT_Buffer_Type {
  PJRT_Buffer_Type_INVALID = 0,
  PJRT_Buffer_Type_PRED = 1,
  PJRT_Buffer_Type_S8 = 2,
  PJRT_Buffer_Type_S16 = 3,
  PJRT_Buffer_Type_S32 = 4,
  PJRT_Buffer_Type_S64 = 5,
  PJRT_Buffer_Type_U8 = 6,
  PJRT_Buffer_Type_U16 = 7,
  PJRT_Buffer_Type_U32 = 8,
  PJRT_Buffer_Type_U64 = 9,
  PJRT_Buffer_Type_F16 = 10,
  PJRT_Buffer_Type_F32 = 11,
  PJRT_Buffer_Type_F64 = 12,
  PJRT_Buffer_Type_BF16 = 13,
  PJRT_Buffer_Type_C64 = 14,
  PJRT_Buffer_Type_C128 = 15,
  PJRT_Buffer_Type_F8E5M2 = 16,
  PJRT_Buffer_Type_F8E4M3FN = 17,
  PJRT_Buffer_Type_F8E4M3B11FNUZ = 18,
  PJRT_Buffer_Type_F8E5M2FNUZ = 19,
  PJRT_Buffer_Type_F8E4M3FNUZ = 20,
  PJRT_Buffer_Type_S4 = 21,
  PJRT_Buffer_Type_U4 = 22,
  PJRT_Buffer_Type_TOKEN = 23,
  PJRT_Buffer_Type_S2 = 24,
  PJRT_Buffer_Type_U2 = 25,
  PJRT_Buffer_Type_F8E4M3 = 26,
  PJRT_Buffer_Type_F8E3M4 = 27,
  PJRT_Buffer_Type_F8E8M0FNU = 28,
  PJRT_Buffer_Type_F4E2M1FN = 29,
  PJRT_Buffer_Type_S1 = 30,
  PJRT_Buffer_Type_U1 = 31,
  PJRT_Buffer_Type_F6E2M3FN = 32,
  PJRT_Buffer_Type_F6E3M2FN = 33,
};

enum PJRT_NamedValue_Type {
  PJRT_NamedValue_kString = 0,
  PJRT_NamedValue_kInt64 = 1,
  PJRT_NamedValue_kInt64List = 2,
  PJRT_NamedValue_kFloat = 3,
  PJRT_NamedValue_kBool = 4,
};

// How long, and for what, the callee may use the caller's array.
enum PJRT_HostBufferSemantics {
  PJRT_HostBufferSemantics_kImmutableOnlyDuringCall = 0,
  PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes = 1,
  PJRT_HostBufferSemantics_kImmutableZeroCopy = 2,  // may be read for the buffer's whole life
  PJRT_HostBufferSemantics_kMutableZeroCopy = 3,    // and written
};

enum PJRT_Buffer_MemoryLayout_Type {
  PJRT_Buffer_MemoryLayout_Type_Tiled = 0,
  PJRT_Buffer_MemoryLayout_Type_Strides = 1,  // in bytes, may be negative
};

enum PJRT_ProcessState {
  PJRT_ProcessState_kUnspecified = 0,
  PJRT_ProcessState_kUninitialized = 1,
  PJRT_ProcessState_kDisconnected = 2,
  PJRT_ProcessState_kConnected = 3,
  PJRT_ProcessState_kError = 4,
};

// ---- Handles. What a plugin keeps in them is its own affair, except where a function table is
// prescribed as the first word.
struct PJRT_AsyncHostToDeviceTransferManager;
struct PJRT_AsyncTrackingEvent;
struct PJRT_Buffer;
struct PJRT_Client;
struct PJRT_CopyToDeviceStream;
struct PJRT_Device;
struct PJRT_DeviceAssignmentSerialized;
struct PJRT_DeviceDescription;
struct PJRT_Device_Attributes;
struct PJRT_Event;
struct PJRT_Executable;
struct PJRT_ExecuteContext;
struct PJRT_FulfillAliasBufferCallback;
struct PJRT_Layouts_MemoryLayout;
struct PJRT_Layouts_SerializedLayout;
struct PJRT_LoadedExecutable;
struct PJRT_MemoryDescription;
struct PJRT_MultiSlice_Config;
struct PJRT_SerializedCompileOptions;
struct PJRT_SerializedExecutable;
struct PJRT_SerializedTopology;
struct PJRT_TopologyDescription;
struct PJRT_Error;
struct PJRT_Memory;
struct PJRT_Chunk;

// ---- Function types.
typedef void (*PJRT_Error_PayloadVisitor)(const char* key, size_t key_size, const char* value,
                                          size_t value_size, void* user_arg);

struct PJRT_Error_FunctionTable {
  size_t struct_size;
  size_t instance_size;
  PJRT_Extension_Base* extension_start;
  void (*destroy)(PJRT_Error* error);
  void (*message)(const PJRT_Error* error, const char** message, size_t* message_size);
  PJRT_Error_Code (*get_code)(const PJRT_Error* error);
  void (*for_each_payload)(const PJRT_Error* error, PJRT_Error_PayloadVisitor visitor,
                           void* user_arg);
};

// First word of what a PJRT_Error* points at, from minor 107 on.
struct PJRT_Error {
  const PJRT_Error_FunctionTable* vtable;
};

struct PJRT_Memory_FunctionTable {
  PJRT_HEADER;
  size_t instance_struct_size;
  void* (*get_user_data)(PJRT_Memory* memory, const void* key);
  void (*set_user_data)(PJRT_Memory* memory, const void* key, void* data, void (*dtor)(void*));
};

// First word of what a PJRT_Memory* points at, from minor 105 on; vtable may be null.
struct PJRT_Memory {
  const PJRT_Memory_FunctionTable* vtable;
};

// Makes an error on the caller's side.
typedef PJRT_Error* (*PJRT_CallbackError)(PJRT_Error_Code code, const char* message,
                                          size_t message_size);
typedef void (*PJRT_Event_OnReadyCallback)(PJRT_Error* error, void* user_arg);
struct PJRT_KeyValueGetCallback_Args;
struct PJRT_KeyValueTryGetCallback_Args;
struct PJRT_KeyValuePutCallback_Args;
typedef void (*PJRT_KeyValueGetCallback_ValueDeleter)(char* value);
typedef void (*PJRT_KeyValueTryGetCallback_ValueDeleter)(char* value);
// Blocks until the key is there or the timeout passes.
typedef PJRT_Error* (*PJRT_KeyValueGetCallback)(PJRT_KeyValueGetCallback_Args* args);
// NOT_FOUND at once if the key is absent.
typedef PJRT_Error* (*PJRT_KeyValueTryGetCallback)(PJRT_KeyValueTryGetCallback_Args* args);
typedef PJRT_Error* (*PJRT_KeyValuePutCallback)(PJRT_KeyValuePutCallback_Args* args);
typedef PJRT_Error* (*PJRT_SendCallback)(PJRT_Chunk* chunk, PJRT_CallbackError* callback_error,
                                         size_t total_size_in_bytes, bool done, void* user_arg);
typedef void (*PJRT_RecvCallback)(PJRT_CopyToDeviceStream* stream, void* user_arg);
typedef void (*PJRT_HloOutputCallback)(int64_t replica, int64_t partition, const void* data,
                                       const int64_t* dims, size_t rank, PJRT_Buffer_Type type,
                                       int64_t operand_index, void* user_arg);

// ---- Errors. The caller frees them (null allowed); the message lives as long as the error.
struct PJRT_Error_Destroy_Args {
  PJRT_HEADER;
  PJRT_Error* error;
};
struct PJRT_Error_Message_Args {
  PJRT_HEADER;
  const PJRT_Error* error;
  const char* message;  // out
  size_t message_size;  // out
};
struct PJRT_Error_GetCode_Args {
  PJRT_HEADER;
  const PJRT_Error* error;
  PJRT_Error_Code code;  // out
};
struct PJRT_Error_ForEachPayload_Args {
  PJRT_HEADER;
  const PJRT_Error* error;
  PJRT_Error_PayloadVisitor visitor;
  void* user_arg;
};

// ---- Options and attributes. value_size counts characters or array elements; 1 for scalars.
struct PJRT_NamedValue {
  PJRT_HEADER;
  const char* name;
  size_t name_size;
  PJRT_NamedValue_Type type;
  union {
    const char* string_value;
    int64_t int64_value;
    const int64_t* int64_array_value;
    float float_value;
    bool bool_value;
  };
  size_t value_size;
};

// ---- Plugin.
struct PJRT_Plugin_Initialize_Args {
  PJRT_HEADER;
};
struct PJRT_Plugin_Attributes_Args {
  PJRT_HEADER;
  const PJRT_NamedValue* attributes;  // out
  size_t num_attributes;              // out
};

// ---- Events: complete once, with or without an error. Each Error or Await makes a fresh error; an
// error given to an OnReady callback belongs to the callback.
struct PJRT_Event_Destroy_Args {
  PJRT_HEADER;
  PJRT_Event* event;
};
struct PJRT_Event_IsReady_Args {
  PJRT_HEADER;
  PJRT_Event* event;
  bool is_ready;  // out
};
struct PJRT_Event_Error_Args {
  PJRT_HEADER;
  PJRT_Event* event;
};
struct PJRT_Event_Await_Args {
  PJRT_HEADER;
  PJRT_Event* event;
};
struct PJRT_Event_OnReady_Args {
  PJRT_HEADER;
  PJRT_Event* event;
  PJRT_Event_OnReadyCallback callback;
  void* user_arg;
};
struct PJRT_Event_Create_Args {
  PJRT_HEADER;
  PJRT_Event* event;  // out
};
struct PJRT_Event_Set_Args {
  PJRT_HEADER;
  PJRT_Event* event;
  PJRT_Error_Code error_code;
  const char* error_message;
  size_t error_message_size;
};

// ---- Key-value store lent by the caller to clients that span processes.
struct PJRT_KeyValueGetCallback_Args {
  PJRT_HEADER;
  const char* key;
  size_t key_size;
  int timeout_in_ms;
  PJRT_CallbackError* callback_error;
  void* user_arg;
  char* value;                                                   // out
  size_t value_size;                                             // out
  PJRT_KeyValueGetCallback_ValueDeleter value_deleter_callback;  // out
};
struct PJRT_KeyValueTryGetCallback_Args {
  PJRT_HEADER;
  const char* key;
  size_t key_size;
  PJRT_CallbackError* callback_error;
  void* user_arg;
  char* value;                                                      // out
  size_t value_size;                                                // out
  PJRT_KeyValueTryGetCallback_ValueDeleter value_deleter_callback;  // out
};
struct PJRT_KeyValuePutCallback_Args {
  PJRT_HEADER;
  const char* key;
  size_t key_size;
  const char* value;
  size_t value_size;
  PJRT_CallbackError* callback_error;
  void* user_arg;
};

// ---- Client. It owns its devices, memories, topology and every string and array it returned.
struct PJRT_Client_Create_Args {
  PJRT_HEADER;
  const PJRT_NamedValue* create_options;
  size_t num_options;
  PJRT_KeyValueGetCallback kv_get_callback;
  void* kv_get_user_arg;
  PJRT_KeyValuePutCallback kv_put_callback;
  void* kv_put_user_arg;
  PJRT_Client* client;  // out
  PJRT_KeyValueTryGetCallback kv_try_get_callback;
  void* kv_try_get_user_arg;
};
struct PJRT_Client_Destroy_Args {
  PJRT_HEADER;
  PJRT_Client* client;
};
struct PJRT_Client_PlatformName_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  const char* platform_name;  // out
  size_t platform_name_size;  // out
};
struct PJRT_Client_ProcessIndex_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  int process_index;  // out
};
struct PJRT_Client_PlatformVersion_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  const char* platform_version;  // out
  size_t platform_version_size;  // out
};
struct PJRT_Client_TopologyDescription_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  PJRT_TopologyDescription* topology;  // out
};
struct PJRT_Client_Devices_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  PJRT_Device* const* devices;  // out
  size_t num_devices;           // out
};
struct PJRT_Client_AddressableDevices_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  PJRT_Device* const* addressable_devices;  // out
  size_t num_addressable_devices;           // out
};
struct PJRT_Client_LookupDevice_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  int id;
  PJRT_Device* device;  // out
};
struct PJRT_Client_LookupAddressableDevice_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  int local_hardware_id;
  PJRT_Device* addressable_device;  // out
};
struct PJRT_ProcessInfo {
  size_t struct_size;
  int task_id;
  uint64_t incarnation_id;
  PJRT_ProcessState state;
  int error_code;
  const char* error_message;
  size_t error_message_size;
};
struct PJRT_Client_UpdateGlobalProcessInfo_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  PJRT_ProcessInfo* process_infos;
  size_t num_process_infos;
};
struct PJRT_Client_AddressableMemories_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  PJRT_Memory* const* addressable_memories;  // out
  size_t num_addressable_memories;           // out
};

// A program; format is "mlir", "hlo" or "hlo_with_config".
struct PJRT_Program {
  PJRT_HEADER;
  char* code;  // in and out
  size_t code_size;
  const char* format;
  size_t format_size;
};
struct PJRT_Client_Compile_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  const PJRT_Program* program;
  const char* compile_options;
  size_t compile_options_size;
  PJRT_LoadedExecutable* executable;  // out
};
struct PJRT_Client_Load_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  PJRT_Executable* executable;
  const char* compile_options;
  size_t compile_options_size;
  PJRT_LoadedExecutable* loaded_executable;  // out
};
struct PJRT_Client_DefaultDeviceAssignment_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  int num_replicas;
  int num_partitions;
  size_t default_assignment_size;
  int* default_assignment;
};
struct PJRT_Client_DmaMap_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  void* data;
  size_t size;
};
struct PJRT_Client_DmaUnmap_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  void* data;
};

// ---- Buffers filled piecewise from the host.
struct PJRT_AsyncHostToDeviceTransferManager_Destroy_Args {
  PJRT_HEADER;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
};
struct PJRT_AsyncHostToDeviceTransferManager_TransferData_Args {
  PJRT_HEADER;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  int buffer_index;
  const void* data;
  int64_t offset;
  int64_t transfer_size;
  bool is_last_transfer;
  PJRT_Event* done_with_h2d_transfer;  // out
};
struct PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args {
  PJRT_HEADER;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  int buffer_index;
  PJRT_Buffer* buffer_out;  // out
};
struct PJRT_AsyncHostToDeviceTransferManager_Device_Args {
  PJRT_HEADER;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  PJRT_Device* device_out;  // out
};
struct PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args {
  PJRT_HEADER;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  size_t buffer_count;  // out
};
struct PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args {
  PJRT_HEADER;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  int buffer_index;
  size_t buffer_size;  // out
};
struct PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args {
  PJRT_HEADER;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  int buffer_index;
  PJRT_Error_Code error_code;
  const char* error_message;
  size_t error_message_size;
};
struct PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args {
  PJRT_HEADER;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  const PJRT_NamedValue* transfer_metadata;
  size_t num_metadata;
};

// ---- Layouts of buffers and host arrays.
struct PJRT_Buffer_MemoryLayout_Tiled {
  PJRT_HEADER;
  const int64_t* minor_to_major;
  size_t minor_to_major_size;
  const int64_t* tile_dims;
  const size_t* tile_dim_sizes;
  size_t num_tiles;
};
struct PJRT_Buffer_MemoryLayout_Strides {
  PJRT_HEADER;
  const int64_t* byte_strides;
  size_t num_byte_strides;
};
struct PJRT_Buffer_MemoryLayout {
  PJRT_HEADER;
  union {
    PJRT_Buffer_MemoryLayout_Tiled tiled;
    PJRT_Buffer_MemoryLayout_Strides strides;
  };
  PJRT_Buffer_MemoryLayout_Type type;
};
struct PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args {
  PJRT_HEADER;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;
  int buffer_index;
  const void* data;
  const int64_t* shape_dims;
  size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout* shape_layout;
  PJRT_Event* done_with_h2d_transfer;  // out
};
struct PJRT_Client_CreateUninitializedBuffer_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  const int64_t* shape_dims;
  size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout* shape_layout;
  PJRT_Device* device;
  PJRT_Memory* memory;
  PJRT_Buffer* buffer;  // out
};
struct PJRT_Client_CreateErrorBuffer_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  PJRT_Error_Code error_code;
  const char* error_message;
  size_t error_message_size;
  const int64_t* shape_dims;
  size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout* shape_layout;
  PJRT_Memory* memory;
  PJRT_Buffer* buffer;  // out
  const PJRT_NamedValue* payload;
  size_t num_payload;
};
struct PJRT_Client_CreateAliasBuffer_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  PJRT_Memory* memory;
  const int64_t* shape_dims;
  size_t shape_num_dims;
  PJRT_Buffer_Type shape_element_type;
  PJRT_Buffer_MemoryLayout* shape_layout;
  PJRT_Buffer* alias_buffer;                                 // out
  PJRT_FulfillAliasBufferCallback* fulfill_alias_buffer_cb;  // out
};
struct PJRT_Client_FulfillAliasBuffer_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  PJRT_Buffer* buffer;
  PJRT_Error_Code status_code;
  const char* error_message;
  size_t error_message_size;
  PJRT_FulfillAliasBufferCallback* fulfill_alias_buffer_cb;
};

// byte_strides null: dense row-major. memory wins over device.
struct PJRT_Client_BufferFromHostBuffer_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  const void* data;
  PJRT_Buffer_Type type;
  const int64_t* dims;
  size_t num_dims;
  const int64_t* byte_strides;
  size_t num_byte_strides;
  PJRT_HostBufferSemantics host_buffer_semantics;
  PJRT_Device* device;
  PJRT_Memory* memory;
  PJRT_Buffer_MemoryLayout* device_layout;
  PJRT_Event* done_with_host_buffer;  // out
  PJRT_Buffer* buffer;                // out
};
struct PJRT_Client_CreateViewOfDeviceBuffer_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  void* device_buffer_ptr;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
  PJRT_Buffer_MemoryLayout* layout;
  PJRT_Device* device;
  void (*on_delete_callback)(void* device_buffer_ptr, void* user_arg);
  void* on_delete_callback_arg;
  intptr_t stream;
  PJRT_Buffer* buffer;  // out
  PJRT_Memory* memory;
};
struct PJRT_ShapeSpec {
  PJRT_HEADER;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
};
struct PJRT_Client_CreateBuffersForAsyncHostToDevice_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  PJRT_ShapeSpec* shape_specs;
  size_t num_shape_specs;
  PJRT_Buffer_MemoryLayout** device_layouts;
  size_t num_device_layouts;
  PJRT_Memory* memory;
  PJRT_AsyncHostToDeviceTransferManager* transfer_manager;  // out
};

// ---- Devices and their descriptions, owned by the client (or topology).
struct PJRT_DeviceDescription_Id_Args {
  PJRT_HEADER;
  PJRT_DeviceDescription* device_description;
  int id;  // out
};
struct PJRT_DeviceDescription_ProcessIndex_Args {
  PJRT_HEADER;
  PJRT_DeviceDescription* device_description;
  int process_index;  // out
};
struct PJRT_DeviceDescription_Attributes_Args {
  PJRT_HEADER;
  PJRT_DeviceDescription* device_description;
  size_t num_attributes;              // out
  const PJRT_NamedValue* attributes;  // out
};
struct PJRT_DeviceDescription_Kind_Args {
  PJRT_HEADER;
  PJRT_DeviceDescription* device_description;
  const char* device_kind;  // out
  size_t device_kind_size;  // out
};
struct PJRT_DeviceDescription_DebugString_Args {
  PJRT_HEADER;
  PJRT_DeviceDescription* device_description;
  const char* debug_string;  // out
  size_t debug_string_size;  // out
};
struct PJRT_DeviceDescription_ToString_Args {
  PJRT_HEADER;
  PJRT_DeviceDescription* device_description;
  const char* to_string;  // out
  size_t to_string_size;  // out
};
struct PJRT_Device_GetDescription_Args {
  PJRT_HEADER;
  PJRT_Device* device;
  PJRT_DeviceDescription* device_description;  // out
};
struct PJRT_Device_IsAddressable_Args {
  PJRT_HEADER;
  PJRT_Device* device;
  bool is_addressable;  // out
};
struct PJRT_Device_LocalHardwareId_Args {
  PJRT_HEADER;
  PJRT_Device* device;
  int local_hardware_id;  // out
};
struct PJRT_Device_AddressableMemories_Args {
  PJRT_HEADER;
  PJRT_Device* device;
  PJRT_Memory* const* memories;  // out
  size_t num_memories;           // out
};
struct PJRT_Device_DefaultMemory_Args {
  PJRT_HEADER;
  PJRT_Device* device;
  PJRT_Memory* memory;  // out
};
struct PJRT_Device_MemoryStats_Args {
  PJRT_HEADER;
  PJRT_Device* device;
  int64_t bytes_in_use;                  // out
  int64_t peak_bytes_in_use;             // out
  bool peak_bytes_in_use_is_set;         // out
  int64_t num_allocs;                    // out
  bool num_allocs_is_set;                // out
  int64_t largest_alloc_size;            // out
  bool largest_alloc_size_is_set;        // out
  int64_t bytes_limit;                   // out
  bool bytes_limit_is_set;               // out
  int64_t bytes_reserved;                // out
  bool bytes_reserved_is_set;            // out
  int64_t peak_bytes_reserved;           // out
  bool peak_bytes_reserved_is_set;       // out
  int64_t bytes_reservable_limit;        // out
  bool bytes_reservable_limit_is_set;    // out
  int64_t largest_free_block_bytes;      // out
  bool largest_free_block_bytes_is_set;  // out
  int64_t pool_bytes;                    // out
  bool pool_bytes_is_set;                // out
  int64_t peak_pool_bytes;               // out
  bool peak_pool_bytes_is_set;           // out
  int64_t peak_allocated_bytes;          // out
  bool peak_allocated_bytes_is_set;      // out
};
struct PJRT_Device_ClearMemoryStats_Args {
  PJRT_HEADER;
  PJRT_Device* device;
};
struct PJRT_Device_PoisonExecution_Args {
  PJRT_HEADER;
  PJRT_Device* device;
  int32_t launch_id;
  PJRT_Error_Code error_code;
  const char* error_message;
  size_t error_message_size;
  bool poisoned;  // out
  const PJRT_NamedValue* payload;
  size_t num_payload;
};
struct PJRT_Device_GetAttributes_Args {
  PJRT_HEADER;
  PJRT_Device* device;
  const PJRT_NamedValue* attributes;                                      // out
  size_t num_attributes;                                                  // out
  PJRT_Device_Attributes* device_attributes;                              // out
  void (*attributes_deleter)(PJRT_Device_Attributes* device_attributes);  // out
};
struct PJRT_Device_CreateAsyncTrackingEvent_Args {
  PJRT_HEADER;
  PJRT_Device* device;
  const char* description;
  size_t description_size;
  PJRT_AsyncTrackingEvent* event;  // out
};
struct PJRT_AsyncTrackingEvent_Destroy_Args {
  PJRT_HEADER;
  PJRT_AsyncTrackingEvent* event;
};

// ---- Memories, owned by the client.
struct PJRT_Memory_Id_Args {
  PJRT_HEADER;
  PJRT_Memory* memory;
  int id;  // out
};
struct PJRT_Memory_Kind_Args {
  PJRT_HEADER;
  PJRT_Memory* memory;
  const char* kind;  // out
  size_t kind_size;  // out
};
struct PJRT_Memory_Kind_Id_Args {
  PJRT_HEADER;
  PJRT_Memory* memory;
  int kind_id;  // out
};
struct PJRT_Memory_DebugString_Args {
  PJRT_HEADER;
  PJRT_Memory* memory;
  const char* debug_string;  // out
  size_t debug_string_size;  // out
};
struct PJRT_Memory_ToString_Args {
  PJRT_HEADER;
  PJRT_Memory* memory;
  const char* to_string;  // out
  size_t to_string_size;  // out
};
struct PJRT_Memory_AddressableByDevices_Args {
  PJRT_HEADER;
  PJRT_Memory* memory;
  PJRT_Device* const* devices;  // out
  size_t num_devices;           // out
};

// ---- Executables. A loaded executable can run; an Executable only tells about the program, and
// outlives the loaded one.
struct PJRT_ExecuteContext_Create_Args {
  PJRT_HEADER;
  PJRT_ExecuteContext* context;  // out
};
struct PJRT_ExecuteContext_Destroy_Args {
  PJRT_HEADER;
  PJRT_ExecuteContext* context;
};
struct PJRT_Executable_Destroy_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
};
struct PJRT_LoadedExecutable_Destroy_Args {
  PJRT_HEADER;
  PJRT_LoadedExecutable* executable;
};
struct PJRT_LoadedExecutable_GetExecutable_Args {
  PJRT_HEADER;
  PJRT_LoadedExecutable* loaded_executable;
  PJRT_Executable* executable;  // out
};
struct PJRT_LoadedExecutable_GetDeviceAssignment_Args {
  PJRT_HEADER;
  PJRT_LoadedExecutable* executable;
  const char* serialized_bytes;  // out
  size_t serialized_bytes_size;  // out
  PJRT_DeviceAssignmentSerialized* serialized_device_assignment;
  void (*serialized_device_assignment_deleter)(PJRT_DeviceAssignmentSerialized* da);  // out
};
struct PJRT_Executable_Name_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  const char* executable_name;  // out
  size_t executable_name_size;  // out
};
struct PJRT_Executable_NumReplicas_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  size_t num_replicas;  // out
};
struct PJRT_Executable_NumPartitions_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  size_t num_partitions;  // out
};
struct PJRT_LogicalDeviceIds {
  int replica;
  int partition;
};
struct PJRT_LoadedExecutable_AddressableDevices_Args {
  PJRT_HEADER;
  PJRT_LoadedExecutable* executable;
  PJRT_Device* const* addressable_devices;  // out
  size_t num_addressable_devices;           // out
};
struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args {
  PJRT_HEADER;
  PJRT_LoadedExecutable* executable;
  PJRT_LogicalDeviceIds* addressable_device_logical_ids;  // out
  size_t num_addressable_device_logical_ids;              // out
};
struct PJRT_Executable_OptimizedProgram_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  PJRT_Program* program;  // out
};
struct PJRT_LoadedExecutable_Delete_Args {
  PJRT_HEADER;
  PJRT_LoadedExecutable* executable;
};
struct PJRT_LoadedExecutable_IsDeleted_Args {
  PJRT_HEADER;
  PJRT_LoadedExecutable* executable;
  bool is_deleted;  // out
};

// ---- Execution.
struct PJRT_Chunk {
  void* data;
  size_t size;
  void (*deleter)(void* data, void* deleter_arg);
  void* deleter_arg;
};
struct PJRT_SendCallbackInfo {
  int64_t channel_id;
  void* user_arg;
  PJRT_SendCallback send_callback;
};
struct PJRT_RecvCallbackInfo {
  int64_t channel_id;
  void* user_arg;
  PJRT_RecvCallback recv_callback;
};
struct PJRT_HloOutputCallbackInfo {
  void* user_arg;
  PJRT_HloOutputCallback callback;
  int64_t callback_id;
  size_t num_operands;
};
struct PJRT_ExecuteOptions {
  PJRT_HEADER;
  PJRT_SendCallbackInfo** send_callbacks;
  PJRT_RecvCallbackInfo** recv_callbacks;
  size_t num_send_ops;
  size_t num_recv_ops;
  int launch_id;
  const int64_t* non_donatable_input_indices;
  size_t num_non_donatable_input_indices;
  PJRT_ExecuteContext* context;
  const char* call_location;
  size_t num_tasks;
  int* task_ids;
  int64_t* incarnation_ids;
  PJRT_MultiSlice_Config* multi_slice_config;
  bool use_major_to_minor_data_layout_for_callbacks;
  PJRT_HloOutputCallbackInfo* hlo_output_callbacks;
  size_t num_hlo_output_callbacks;
};

// argument_lists[num_devices][num_args]; output_lists[num_devices][num_outputs] and, unless null,
// device_complete_events[num_devices] are the caller's and filled here.
struct PJRT_LoadedExecutable_Execute_Args {
  PJRT_HEADER;
  PJRT_LoadedExecutable* executable;
  PJRT_ExecuteOptions* options;
  PJRT_Buffer* const* const* argument_lists;
  size_t num_devices;
  size_t num_args;
  PJRT_Buffer** const* output_lists;    // in and out
  PJRT_Event** device_complete_events;  // in and out
  PJRT_Device* execute_device;
};
struct PJRT_Executable_NumOutputs_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  size_t num_outputs;  // out
};
struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  int64_t size_in_bytes;  // out
};
struct PJRT_Executable_Fingerprint_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  const char* executable_fingerprint;  // out
  size_t executable_fingerprint_size;  // out
};
struct PJRT_Executable_GetCostAnalysis_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  size_t num_properties;              // out
  const PJRT_NamedValue* properties;  // out
};
struct PJRT_Executable_GetCompiledMemoryStats_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  int64_t generated_code_size_in_bytes;       // out
  int64_t argument_size_in_bytes;             // out
  int64_t output_size_in_bytes;               // out
  int64_t alias_size_in_bytes;                // out
  int64_t temp_size_in_bytes;                 // out
  int64_t host_generated_code_size_in_bytes;  // out
  int64_t host_argument_size_in_bytes;        // out
  int64_t host_output_size_in_bytes;          // out
  int64_t host_alias_size_in_bytes;           // out
  int64_t host_temp_size_in_bytes;            // out
  int64_t peak_memory_in_bytes;               // out
  int64_t total_size_in_bytes;                // out
  int64_t total_allocation_bytes;             // out
  int64_t indefinite_allocations;             // out
  int64_t peak_unpadded_heap_bytes;           // out
};
struct PJRT_Executable_OutputElementTypes_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  PJRT_Buffer_Type* output_types;  // out
  size_t num_output_types;         // out
};
struct PJRT_Executable_OutputDimensions_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  size_t num_outputs;
  const int64_t* dims;      // out
  const size_t* dim_sizes;  // out
};
struct PJRT_Executable_ParameterMemoryKinds_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  size_t num_parameters;
  const char* const* memory_kinds;  // out
  const size_t* memory_kind_sizes;  // out
};
struct PJRT_Executable_OutputMemoryKinds_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  size_t num_outputs;
  const char* const* memory_kinds;  // out
  const size_t* memory_kind_sizes;  // out
};
struct PJRT_Executable_Serialize_Args {
  PJRT_HEADER;
  const PJRT_Executable* executable;
  const char* serialized_bytes;  // out
  size_t serialized_bytes_size;  // out
  PJRT_SerializedExecutable* serialized_executable;
  void (*serialized_executable_deleter)(PJRT_SerializedExecutable* exec);  // out
};
struct PJRT_Executable_GetCompileOptions_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  const char* serialized_bytes;  // out
  size_t serialized_bytes_size;  // out
  PJRT_SerializedCompileOptions* serialized_compile_options;
  void (*serialized_compile_options_deleter)(PJRT_SerializedCompileOptions* options);  // out
};
struct PJRT_LoadOptions {
  size_t struct_size;
  const int32_t* computation_origin;
  size_t computation_origin_size;
  PJRT_MultiSlice_Config* multi_slice_config;
};
struct PJRT_Executable_DeserializeAndLoad_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  const char* serialized_executable;
  size_t serialized_executable_size;
  PJRT_LoadedExecutable* loaded_executable;  // out
  const char* overridden_serialized_compile_options;
  size_t overridden_serialized_compile_options_size;
  PJRT_LoadOptions* load_options;
};
struct PJRT_LoadedExecutable_Fingerprint_Args {
  PJRT_HEADER;
  PJRT_LoadedExecutable* executable;
  const char* executable_fingerprint;  // out
  size_t executable_fingerprint_size;  // out
};

// ---- Buffers.
struct PJRT_Buffer_Destroy_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
};
struct PJRT_Buffer_ElementType_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  PJRT_Buffer_Type type;  // out
};
struct PJRT_Buffer_Dimensions_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  const int64_t* dims;  // out
  size_t num_dims;      // out
};
struct PJRT_Buffer_UnpaddedDimensions_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  const int64_t* unpadded_dims;  // out
  size_t num_dims;               // out
};
struct PJRT_Buffer_DynamicDimensionIndices_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  const size_t* dynamic_dim_indices;  // out
  size_t num_dynamic_dims;            // out
};
struct PJRT_Buffer_GetMemoryLayout_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  PJRT_Buffer_MemoryLayout layout;  // out
};
struct PJRT_Buffer_ToHostBuffer_Args {
  PJRT_HEADER;
  PJRT_Buffer* src;
  PJRT_Buffer_MemoryLayout* host_layout;
  void* dst;          // in and out
  size_t dst_size;    // in and out
  PJRT_Event* event;  // out
};
struct PJRT_Buffer_OnDeviceSizeInBytes_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  size_t on_device_size_in_bytes;  // out
};
struct PJRT_Buffer_Delete_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
};
struct PJRT_Buffer_IsDeleted_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  bool is_deleted;  // out
};
struct PJRT_Buffer_CopyRawToHost_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  void* dst;
  int64_t offset;
  int64_t transfer_size;
  PJRT_Event* event;  // out
};
struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
  size_t struct_size;
  void* callback_data;
  PJRT_Error_Code error_code;
  const char* error_message;
  size_t error_message_size;
  void* dst;
};
struct PJRT_Buffer_CopyRawToHostFuture_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  int64_t offset;
  int64_t transfer_size;
  PJRT_Event* event;                                                                   // out
  void* callback_data;                                                                 // out
  void (*future_ready_callback)(PJRT_Buffer_CopyRawToHostFuture_Callback_Args* args);  // out
};
struct PJRT_Buffer_CopyToDevice_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  PJRT_Device* dst_device;
  PJRT_Buffer* dst_buffer;  // out
};
struct PJRT_Buffer_CopyToMemory_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  PJRT_Memory* dst_memory;
  PJRT_Buffer* dst_buffer;  // out
};
struct PJRT_Buffer_Bitcast_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  PJRT_Buffer_Type element_type;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Buffer_MemoryLayout* device_layout;
  PJRT_Buffer* out_buffer;  // out
};
struct PJRT_Buffer_IsOnCpu_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  bool is_on_cpu;  // out
};
struct PJRT_Buffer_Device_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  PJRT_Device* device;  // out
};
struct PJRT_Buffer_Memory_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  PJRT_Memory* memory;  // out
};
struct PJRT_Buffer_ReadyEvent_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  PJRT_Event* event;  // out
};
struct PJRT_Buffer_UnsafePointer_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  uintptr_t buffer_pointer;  // out
};
struct PJRT_Buffer_IncreaseExternalReferenceCount_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
};
struct PJRT_Buffer_DecreaseExternalReferenceCount_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
};
struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  void* device_memory_ptr;  // out
};
struct PJRT_Buffer_DonateWithControlDependency_Callback_Args {
  size_t struct_size;
  void* callback_data;
  PJRT_Error_Code error_code;
  const char* error_message;
  size_t error_message_size;
};
struct PJRT_Buffer_DonateWithControlDependency_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  void* callback_data;  // out
  void (*dependency_ready_callback)(
      PJRT_Buffer_DonateWithControlDependency_Callback_Args* args);  // out
  PJRT_Buffer* out_buffer;                                           // out
};

// ---- Streams of received data.
struct PJRT_CopyToDeviceStream_Destroy_Args {
  PJRT_HEADER;
  PJRT_CopyToDeviceStream* stream;
};
struct PJRT_CopyToDeviceStream_AddChunk_Args {
  PJRT_HEADER;
  PJRT_CopyToDeviceStream* stream;
  PJRT_Chunk* chunk;
  PJRT_Event* transfer_complete;  // out
};
struct PJRT_CopyToDeviceStream_TotalBytes_Args {
  PJRT_HEADER;
  PJRT_CopyToDeviceStream* stream;
  int64_t total_bytes;  // out
};
struct PJRT_CopyToDeviceStream_GranuleSize_Args {
  PJRT_HEADER;
  PJRT_CopyToDeviceStream* stream;
  int64_t granule_size_in_bytes;  // out
};
struct PJRT_CopyToDeviceStream_CurrentBytes_Args {
  PJRT_HEADER;
  PJRT_CopyToDeviceStream* stream;
  int64_t current_bytes;  // out
};

// ---- Topologies: what can be compiled for without hardware.
struct PJRT_TopologyDescription_Create_Args {
  PJRT_HEADER;
  const char* topology_name;
  size_t topology_name_size;
  const PJRT_NamedValue* create_options;
  size_t num_options;
  PJRT_TopologyDescription* topology;  // out
};
struct PJRT_TopologyDescription_Destroy_Args {
  PJRT_HEADER;
  PJRT_TopologyDescription* topology;
};
struct PJRT_TopologyDescription_PlatformVersion_Args {
  PJRT_HEADER;
  PJRT_TopologyDescription* topology;
  const char* platform_version;  // out
  size_t platform_version_size;  // out
};
struct PJRT_TopologyDescription_PlatformName_Args {
  PJRT_HEADER;
  const PJRT_TopologyDescription* topology;
  const char* platform_name;  // out
  size_t platform_name_size;  // out
};
struct PJRT_TopologyDescription_GetDeviceDescriptions_Args {
  PJRT_HEADER;
  const PJRT_TopologyDescription* topology;
  PJRT_DeviceDescription* const* descriptions;  // out
  size_t num_descriptions;                      // out
};
struct PJRT_TopologyDescription_Serialize_Args {
  PJRT_HEADER;
  PJRT_TopologyDescription* topology;
  const char* serialized_bytes;                                                       // out
  size_t serialized_bytes_size;                                                       // out
  PJRT_SerializedTopology* serialized_topology;                                       // out
  void (*serialized_topology_deleter)(PJRT_SerializedTopology* serialized_topology);  // out
};
struct PJRT_TopologyDescription_Deserialize_Args {
  PJRT_HEADER;
  const char* serialized_topology;
  size_t serialized_topology_size;
  PJRT_TopologyDescription* topology;  // out
};
struct PJRT_TopologyDescription_Attributes_Args {
  PJRT_HEADER;
  PJRT_TopologyDescription* topology;
  const PJRT_NamedValue* attributes;  // out
  size_t num_attributes;              // out
};
struct PJRT_TopologyDescription_Fingerprint_Args {
  PJRT_HEADER;
  const PJRT_TopologyDescription* topology;
  uint64_t fingerprint;  // out
};
struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args {
  PJRT_HEADER;
  const PJRT_TopologyDescription* topology;
  int memory_space_kind_id;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
  const PJRT_Buffer_MemoryLayout* layout;
  const char* serialized_shape;                   // out
  size_t serialized_shape_size;                   // out
  void (*serialized_shape_deleter)(const char*);  // out
};
struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args {
  PJRT_HEADER;
  const PJRT_TopologyDescription* topology;
  const int* memory_space_kind_ids;  // out
  size_t num_memory_space_kind_ids;  // out
};
struct PJRT_Compile_Args {
  PJRT_HEADER;
  const PJRT_TopologyDescription* topology;
  const PJRT_Program* program;
  const char* compile_options;
  size_t compile_options_size;
  PJRT_Client* client;
  PJRT_Executable* executable;  // out
};

// ---- Layouts extension.
struct PJRT_Layouts_MemoryLayout_Destroy_Args {
  PJRT_HEADER;
  PJRT_Layouts_MemoryLayout* layout;
};
struct PJRT_Layouts_MemoryLayout_Serialize_Args {
  PJRT_HEADER;
  PJRT_Layouts_MemoryLayout* layout;
  const char* serialized_bytes;  // out
  size_t serialized_bytes_size;  // out
  PJRT_Layouts_SerializedLayout* serialized_layout;
  void (*serialized_layout_deleter)(PJRT_Layouts_SerializedLayout* s_layout);  // out
};
struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args {
  PJRT_HEADER;
  PJRT_Buffer* buffer;
  PJRT_Layouts_MemoryLayout* layout;  // out
};
struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args {
  PJRT_HEADER;
  PJRT_Client* client;
  PJRT_Buffer_Type type;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Layouts_MemoryLayout* layout;  // out
};
struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args {
  PJRT_HEADER;
  PJRT_TopologyDescription* topology_description;
  PJRT_Buffer_Type type;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Layouts_MemoryLayout* layout;  // out
};
struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  size_t num_outputs;                   // out
  PJRT_Layouts_MemoryLayout** layouts;  // out
};
struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args {
  PJRT_HEADER;
  PJRT_Executable* executable;
  size_t num_parameters;                // out
  PJRT_Layouts_MemoryLayout** layouts;  // out
};

// ---- MemoryDescriptions extension.
struct PJRT_DeviceDescription_MemoryDescriptions_Args {
  PJRT_HEADER;
  PJRT_DeviceDescription* device_description;
  const PJRT_MemoryDescription* const* memory_descriptions;  // out
  size_t num_memory_descriptions;                            // out
  size_t default_memory_index;                               // out
};
struct PJRT_MemoryDescription_Kind_Args {
  PJRT_HEADER;
  const PJRT_MemoryDescription* memory_description;
  const char* kind;  // out
  size_t kind_size;  // out
  int kind_id;       // out
};

struct PJRT_Layouts_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*PJRT_Layouts_MemoryLayout_Destroy)(PJRT_Layouts_MemoryLayout_Destroy_Args* args);
  PJRT_Error* (*PJRT_Layouts_MemoryLayout_Serialize)(
      PJRT_Layouts_MemoryLayout_Serialize_Args* args);
  PJRT_Error* (*PJRT_Layouts_PJRT_Client_GetDefaultLayout)(
      PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args* args);
  PJRT_Error* (*PJRT_Layouts_PJRT_Buffer_MemoryLayout)(
      PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args* args);
  PJRT_Error* (*PJRT_Layouts_PJRT_Topology_GetDefaultLayout)(
      PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args* args);
  PJRT_Error* (*PJRT_Layouts_PJRT_Executable_GetOutputLayouts)(
      PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args* args);
  PJRT_Error* (*PJRT_Layouts_PJRT_Executable_GetParameterLayouts)(
      PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args* args);
};

struct PJRT_MemoryDescriptions_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*PJRT_DeviceDescription_MemoryDescriptions)(
      PJRT_DeviceDescription_MemoryDescriptions_Args* args);
  PJRT_Error* (*PJRT_MemoryDescription_Kind)(PJRT_MemoryDescription_Kind_Args* args);
};

// ---- Profiler extension. Its functions have structs and errors of their own.
struct PLUGIN_Profiler;
struct PLUGIN_Profiler_Error;

struct PLUGIN_Profiler_Error_Destroy_Args {
  size_t struct_size;
  void* priv;
  PLUGIN_Profiler_Error* error;
};
struct PLUGIN_Profiler_Error_Message_Args {
  size_t struct_size;
  void* priv;
  const PLUGIN_Profiler_Error* error;
  const char* message;  // out; lives as long as the error
  size_t message_size;  // out
};
struct PLUGIN_Profiler_Error_GetCode_Args {
  size_t struct_size;
  void* priv;
  const PLUGIN_Profiler_Error* error;
  int code;  // out; as PJRT_Error_Code
};
struct PLUGIN_Profiler_Create_Args {
  size_t struct_size;
  const char* options;  // a serialized tensorflow.ProfileOptions
  size_t options_size;
  PLUGIN_Profiler* profiler;  // out
};
struct PLUGIN_Profiler_Destroy_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
};
struct PLUGIN_Profiler_Start_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
};
struct PLUGIN_Profiler_Stop_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
};
// A serialized XSpace. With a null buffer the callee says the size, and may point to memory of its
// own that lives as long as the profiler; a second call fills the caller's.
struct PLUGIN_Profiler_CollectData_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
  uint8_t* buffer;              // in and out
  size_t buffer_size_in_bytes;  // out
};

struct PLUGIN_Profiler_Api {
  size_t struct_size;
  void* priv;
  void (*error_destroy)(PLUGIN_Profiler_Error_Destroy_Args* args);
  void (*error_message)(PLUGIN_Profiler_Error_Message_Args* args);
  PLUGIN_Profiler_Error* (*error_get_code)(PLUGIN_Profiler_Error_GetCode_Args* args);
  PLUGIN_Profiler_Error* (*create)(PLUGIN_Profiler_Create_Args* args);
  PLUGIN_Profiler_Error* (*destroy)(PLUGIN_Profiler_Destroy_Args* args);
  PLUGIN_Profiler_Error* (*start)(PLUGIN_Profiler_Start_Args* args);
  PLUGIN_Profiler_Error* (*stop)(PLUGIN_Profiler_Stop_Args* args);
  PLUGIN_Profiler_Error* (*collect_data)(PLUGIN_Profiler_CollectData_Args* args);
};

struct PJRT_Profiler_Extension {
  PJRT_Extension_Base base;
  PLUGIN_Profiler_Api* profiler_api;  // null in the chain of an argument struct
  int64_t traceme_context_id;         // only in the chain of an argument struct
};

// ---- FFI extension: handlers of foreign functions that programs call (cpu/foreign_interface.h),
// and the data that an execution lets them find.

struct PJRT_FFI_Type_Info {
  void (*deleter)(void* object);
  void (*serialize)();
  void (*deserialize)();
};
struct PJRT_FFI_Type_Register_Args {
  PJRT_HEADER;
  const char* type_name;
  size_t type_name_size;
  int64_t type_id;  // 0: the plugin chooses, out
  PJRT_FFI_Type_Info* type_info;
};
struct PJRT_FFI_UserData {
  int64_t type_id;
  void* data;
};
struct PJRT_FFI_UserData_Add_Args {
  PJRT_HEADER;
  PJRT_ExecuteContext* context;
  PJRT_FFI_UserData user_data;
};
// No chain of extensions.
struct PJRT_FFI_Register_Handler_Args {
  size_t struct_size;
  const char* target_name;
  size_t target_name_size;
  void* handler;
  const char* platform_name;
  size_t platform_name_size;
  int32_t traits;
};
struct PJRT_FFI_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*type_register)(PJRT_FFI_Type_Register_Args* args);
  PJRT_Error* (*user_data_add)(PJRT_FFI_UserData_Add_Args* args);
  PJRT_Error* (*register_handler)(PJRT_FFI_Register_Handler_Args* args);
};

// ---- The table. Its functions in order, after Error_Destroy and Error_Message, which return
// nothing. Append only.
#define PJRT_API_FUNCTIONS(X)                                         \
  X(Error_GetCode)                                                    \
  X(Plugin_Initialize)                                                \
  X(Plugin_Attributes)                                                \
  X(Event_Destroy)                                                    \
  X(Event_IsReady)                                                    \
  X(Event_Error)                                                      \
  X(Event_Await)                                                      \
  X(Event_OnReady)                                                    \
  X(Client_Create)                                                    \
  X(Client_Destroy)                                                   \
  X(Client_PlatformName)                                              \
  X(Client_ProcessIndex)                                              \
  X(Client_PlatformVersion)                                           \
  X(Client_Devices)                                                   \
  X(Client_AddressableDevices)                                        \
  X(Client_LookupDevice)                                              \
  X(Client_LookupAddressableDevice)                                   \
  X(Client_AddressableMemories)                                       \
  X(Client_Compile)                                                   \
  X(Client_DefaultDeviceAssignment)                                   \
  X(Client_BufferFromHostBuffer)                                      \
  X(DeviceDescription_Id)                                             \
  X(DeviceDescription_ProcessIndex)                                   \
  X(DeviceDescription_Attributes)                                     \
  X(DeviceDescription_Kind)                                           \
  X(DeviceDescription_DebugString)                                    \
  X(DeviceDescription_ToString)                                       \
  X(Device_GetDescription)                                            \
  X(Device_IsAddressable)                                             \
  X(Device_LocalHardwareId)                                           \
  X(Device_AddressableMemories)                                       \
  X(Device_DefaultMemory)                                             \
  X(Device_MemoryStats)                                               \
  X(Memory_Id)                                                        \
  X(Memory_Kind)                                                      \
  X(Memory_DebugString)                                               \
  X(Memory_ToString)                                                  \
  X(Memory_AddressableByDevices)                                      \
  X(Executable_Destroy)                                               \
  X(Executable_Name)                                                  \
  X(Executable_NumReplicas)                                           \
  X(Executable_NumPartitions)                                         \
  X(Executable_NumOutputs)                                            \
  X(Executable_SizeOfGeneratedCodeInBytes)                            \
  X(Executable_GetCostAnalysis)                                       \
  X(Executable_OutputMemoryKinds)                                     \
  X(Executable_OptimizedProgram)                                      \
  X(Executable_Serialize)                                             \
  X(LoadedExecutable_Destroy)                                         \
  X(LoadedExecutable_GetExecutable)                                   \
  X(LoadedExecutable_AddressableDevices)                              \
  X(LoadedExecutable_Delete)                                          \
  X(LoadedExecutable_IsDeleted)                                       \
  X(LoadedExecutable_Execute)                                         \
  X(Executable_DeserializeAndLoad)                                    \
  X(LoadedExecutable_Fingerprint)                                     \
  X(Buffer_Destroy)                                                   \
  X(Buffer_ElementType)                                               \
  X(Buffer_Dimensions)                                                \
  X(Buffer_UnpaddedDimensions)                                        \
  X(Buffer_DynamicDimensionIndices)                                   \
  X(Buffer_GetMemoryLayout)                                           \
  X(Buffer_OnDeviceSizeInBytes)                                       \
  X(Buffer_Device)                                                    \
  X(Buffer_Memory)                                                    \
  X(Buffer_Delete)                                                    \
  X(Buffer_IsDeleted)                                                 \
  X(Buffer_CopyToDevice)                                              \
  X(Buffer_ToHostBuffer)                                              \
  X(Buffer_IsOnCpu)                                                   \
  X(Buffer_ReadyEvent)                                                \
  X(Buffer_UnsafePointer)                                             \
  X(Buffer_IncreaseExternalReferenceCount)                            \
  X(Buffer_DecreaseExternalReferenceCount)                            \
  X(Buffer_OpaqueDeviceMemoryDataPointer)                             \
  X(CopyToDeviceStream_Destroy)                                       \
  X(CopyToDeviceStream_AddChunk)                                      \
  X(CopyToDeviceStream_TotalBytes)                                    \
  X(CopyToDeviceStream_GranuleSize)                                   \
  X(CopyToDeviceStream_CurrentBytes)                                  \
  X(TopologyDescription_Create)                                       \
  X(TopologyDescription_Destroy)                                      \
  X(TopologyDescription_PlatformName)                                 \
  X(TopologyDescription_PlatformVersion)                              \
  X(TopologyDescription_GetDeviceDescriptions)                        \
  X(TopologyDescription_Serialize)                                    \
  X(TopologyDescription_Attributes)                                   \
  X(Compile)                                                          \
  X(Executable_OutputElementTypes)                        /* 0.29 */  \
  X(Executable_OutputDimensions)                          /* 0.29 */  \
  X(Buffer_CopyToMemory)                                  /* 0.32 */  \
  X(Client_CreateViewOfDeviceBuffer)                      /* 0.33 */  \
  X(Executable_Fingerprint)                               /* 0.35 */  \
  X(Client_TopologyDescription)                           /* 0.36 */  \
  X(Executable_GetCompiledMemoryStats)                    /* 0.40 */  \
  X(Memory_Kind_Id)                                       /* 0.48 */  \
  X(ExecuteContext_Create)                                /* 0.52 */  \
  X(ExecuteContext_Destroy)                               /* 0.52 */  \
  X(Buffer_CopyRawToHost)                                 /* 0.57 */  \
  X(AsyncHostToDeviceTransferManager_Destroy)             /* 0.60 */  \
  X(AsyncHostToDeviceTransferManager_TransferData)        /* 0.60 */  \
  X(Client_CreateBuffersForAsyncHostToDevice)             /* 0.60 */  \
  X(AsyncHostToDeviceTransferManager_RetrieveBuffer)      /* 0.62 */  \
  X(AsyncHostToDeviceTransferManager_Device)              /* 0.62 */  \
  X(AsyncHostToDeviceTransferManager_BufferCount)         /* 0.62 */  \
  X(AsyncHostToDeviceTransferManager_BufferSize)          /* 0.62 */  \
  X(AsyncHostToDeviceTransferManager_SetBufferError)      /* 0.62 */  \
  X(AsyncHostToDeviceTransferManager_AddMetadata)         /* 0.62 */  \
  X(Client_DmaMap)                                        /* 0.67 */  \
  X(Client_DmaUnmap)                                      /* 0.67 */  \
  X(Client_CreateUninitializedBuffer)                     /* 0.69 */  \
  X(Client_UpdateGlobalProcessInfo)                       /* 0.73 */  \
  X(TopologyDescription_Deserialize)                      /* 0.75 */  \
  X(Client_CreateAliasBuffer)                             /* 0.77 */  \
  X(Client_FulfillAliasBuffer)                            /* 0.77 */  \
  X(LoadedExecutable_GetDeviceAssignment)                 /* 0.79 */  \
  X(Client_CreateErrorBuffer)                             /* 0.82 */  \
  X(AsyncHostToDeviceTransferManager_TransferLiteral)     /* 0.83 */  \
  X(Buffer_CopyRawToHostFuture)                           /* 0.84 */  \
  X(Device_PoisonExecution)                               /* 0.85 */  \
  X(Device_CreateAsyncTrackingEvent)                      /* 0.86 */  \
  X(AsyncTrackingEvent_Destroy)                           /* 0.86 */  \
  X(Executable_GetCompileOptions)                         /* 0.87 */  \
  X(Buffer_DonateWithControlDependency)                   /* 0.88 */  \
  X(Event_Create)                                         /* 0.89 */  \
  X(Event_Set)                                            /* 0.89 */  \
  X(Device_GetAttributes)                                 /* 0.92 */  \
  X(Client_Load)                                          /* 0.95 */  \
  X(LoadedExecutable_AddressableDeviceLogicalIds)         /* 0.96 */  \
  X(Buffer_Bitcast)                                       /* 0.98 */  \
  X(Error_ForEachPayload)                                 /* 0.99 */  \
  X(TopologyDescription_Fingerprint)                      /* 0.101 */ \
  X(Executable_ParameterMemoryKinds)                      /* 0.102 */ \
  X(Device_ClearMemoryStats)                              /* 0.106 */ \
  X(TopologyDescription_MakeCanonicalShapeForMemorySpace) /* 0.109 */ \
  X(TopologyDescription_GetMemorySpaceKindIds)            /* 0.110 */

struct PJRT_Api {
  PJRT_HEADER;
  PJRT_Api_Version pjrt_api_version;
  void (*PJRT_Error_Destroy)(PJRT_Error_Destroy_Args* args);
  void (*PJRT_Error_Message)(PJRT_Error_Message_Args* args);
#define PJRT_API_SLOT(name) PJRT_Error* (*PJRT_##name)(PJRT_##name##_Args * args);
  PJRT_API_FUNCTIONS(PJRT_API_SLOT)
#undef PJRT_API_SLOT
};

// The plugin's table; it lives as long as the process.
typedef const PJRT_Api* (*PJRT_GetPjrtApi)();

// ---- ResultMemory extension, this project's: an execution's results lie where its caller wants.
//
// A plugin whose buffers are in the host's memory, dense and row-major, says by this extension,
// with null functions, that executions heed one in PJRT_ExecuteOptions.extension_start, and that a
// buffer and its copy on the same device share memory. The functions are called by any thread.
struct PJRT_ResultMemory_Extension {
  PJRT_Extension_Base base;
  void* memory;
  // `bytes`, aligned to 64, writable; null: the plugin shall use its own. Until the execution is
  // done; a result that is written into an argument needs none.
  void* (*allocate)(void* memory, size_t bytes);
  // Once for what was allocated, when nothing uses it any more.
  void (*release)(void* memory, void* data, size_t bytes);
  void* execution;
  // Where a result of the device at that place will be; for all of them, before they are there.
  void (*placed)(void* execution, size_t device, size_t result, const void* data);
};

// ---- CallerWaits extension, this project's: the caller of an execution reads its results next.
//
// A plugin that offers it heeds one in PJRT_ExecuteOptions.extension_start: it may run a program
// that takes less time than waking threads on the caller's own, before the call returns.
struct PJRT_CallerWaits_Extension {
  PJRT_Extension_Base base;
};

}  // extern "C"

// What the interface fixes: a wrong field here would be read as another one there.
static_assert(sizeof(void*) == 8, "PJRT plugins are 64-bit");
static_assert(offsetof(PJRT_Api, PJRT_Error_Destroy) == 40);
static_assert(sizeof(PJRT_Api) == 40 + 138 * 8);
static_assert(sizeof(PJRT_Api_Version) == 24);
static_assert(sizeof(PJRT_NamedValue) == 56);
