// XLA's C interface for foreign functions, major 0, minor 3: how a program calls a handler that
// somebody else has compiled, such as the one of jaxlib's that calls a function of Python's.
//
// A handler takes one call frame, with its operands, results and attributes, and returns an error
// (null: success). The frame leads to a table of functions that the engine offers (Api). As in
// PJRT's interface every struct begins with its size, up to its last field without tail padding,
// and a chain of extensions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cpu::ffi {

struct Extension {
  size_t struct_size;
  int32_t type;
  Extension* next;
};

struct Header {
  size_t struct_size;
  Extension* extension_start;
};

struct Bytes {
  const char* data;
  size_t size;
};

enum class Stage : int32_t { kInstantiate, kPrepare, kInitialize, kExecute };

// An operand or result; dense and row-major. A token has no data.
struct Buffer {
  Header header;
  int32_t type;  // TypeNumber
  void* data;
  int64_t rank;
  int64_t* dimensions;
};

// One kind of operand and result is there, buffers.
inline constexpr int32_t kBufferKind = 1;

struct Values {
  Header header;
  int64_t size;
  int32_t* kinds;
  void** values;
};

enum class AttributeKind : int32_t { kArray = 1, kDictionary, kScalar, kString };

struct Scalar {
  int32_t type;
  const void* value;
};
struct Array {
  int32_t type;
  size_t size;
  const void* data;
};

// In the order of their names.
struct Attributes {
  Header header;
  int64_t size;
  AttributeKind* kinds;
  Bytes** names;
  void** values;  // Array, Attributes, Scalar or Bytes
};

struct Error;
struct Future;   // the end of a call that goes on after the handler's return
struct Context;  // what a call runs in
struct Api;

struct CallFrame {
  Header header;
  const Api* api;
  Context* context;
  Stage stage;
  Values operands;
  Values results;
  Attributes attributes;
  Future* future;  // out; behind the size that the interface prescribes
};

using Handler = Error*(CallFrame* frame);

struct ErrorCreateArgs {
  Header header;
  const char* message;
  int32_t code;  // absl's
};
struct ErrorMessageArgs {
  Header header;
  Error* error;
  const char* message;  // out
};
struct ErrorDestroyArgs {
  Header header;
  Error* error;
};
// Data that whoever runs the program has put into the context under a type's number.
struct ContextGetArgs {
  Header header;
  Context* context;
  int64_t* type_id;
  void* data;  // out
};
struct TaskArgs {
  Header header;
  Context* context;
  void (*task)(void* data);
  void* data;
};
struct NumThreadsArgs {
  Header header;
  Context* context;
  int64_t* num_threads;  // out
};
struct FutureCreateArgs {
  Header header;
  Future* future;  // out
};
struct FutureSetArgs {
  Header header;
  Future* future;
};
struct FutureFailArgs {
  Header header;
  Future* future;
  Error* error;  // becomes the engine's
};
struct DeviceOrdinalArgs {
  Header header;
  Context* context;
  int32_t device_ordinal;  // out
};

struct ApiVersion {
  Header header;
  int32_t major, minor;
};

struct Api {
  Header header;
  ApiVersion version;
  const void* internal;  // XLA's own handlers'

  Error* (*error_create)(ErrorCreateArgs*);
  void (*error_message)(ErrorMessageArgs*);
  void (*error_destroy)(ErrorDestroyArgs*);
  Error* (*handler_register)(Header*);
  Error* (*stream_get)(Header*);
  Error* (*type_register)(Header*);
  Error* (*context_get)(ContextGetArgs*);
  Error* (*state_set)(Header*);
  Error* (*state_get)(Header*);
  Error* (*memory_allocate)(Header*);
  Error* (*memory_free)(Header*);
  Error* (*task_schedule)(TaskArgs*);
  Error* (*num_threads)(NumThreadsArgs*);
  Error* (*future_create)(FutureCreateArgs*);
  Error* (*future_set)(FutureSetArgs*);
  Error* (*future_fail)(FutureFailArgs*);
  Error* (*run_id)(Header*);
  Error* (*device_ordinal)(DeviceOrdinalArgs*);
};

// What the interface fixes.
static_assert(sizeof(Buffer) == 48 && sizeof(Values) == 40 && sizeof(Attributes) == 48);
static_assert(offsetof(CallFrame, operands) == 40 && offsetof(CallFrame, future) == 168);
static_assert(offsetof(Api, error_create) == 48 && sizeof(Api) == 48 + 18 * 8);

}  // namespace cpu::ffi
