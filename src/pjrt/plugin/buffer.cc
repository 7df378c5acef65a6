#include "pjrt/plugin/buffer.h"

#include <cstring>
#include <utility>

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"
#include "pjrt/boundary/layout.h"
#include "process/fork.h"

namespace pjrt::plugin {

Allocation::Allocation(size_t bytes)
    : block_(std::max<size_t>(bytes, 1)), data_(block_.data()), bytes_(bytes) {}

Allocation::Allocation(void* data, size_t bytes, bool writable, std::function<void()> release)
    : data_(data), bytes_(bytes), writable_(writable), release_(std::move(release)) {}

Allocation::~Allocation() {
  if (release_) release_();
}

PJRT_Device& DeviceFrom(PJRT_Memory* memory, PJRT_Device* device) {
  if (memory != nullptr) device = Memory::Get(memory).devices[0];
  PJRT_Device& found = Require(device, "memory and device");
  if (!found.addressable()) {
    throw hlo::Error(found.description->debug_string + " belongs to process " +
                     std::to_string(found.description->process_index) + ", this is process " +
                     std::to_string(found.client->process_index));
  }
  return found;
}

}  // namespace pjrt::plugin

using pjrt::plugin::Contents;
using pjrt::plugin::ContentsPtr;

PJRT_Buffer::PJRT_Buffer(PJRT_Device& device, hlo::Shape shape, ContentsPtr contents)
    : PJRT_Buffer(device,
                  std::make_shared<const pjrt::boundary::BufferDescription>(std::move(shape)),
                  std::move(contents)) {}

PJRT_Buffer::PJRT_Buffer(PJRT_Device& device,
                         std::shared_ptr<const pjrt::boundary::BufferDescription> described,
                         ContentsPtr contents)
    : description(std::move(described)),
      shape(description->shape),
      client(device.client->shared_from_this()),
      device(device),
      contents(std::move(contents)) {}

ContentsPtr PJRT_Buffer::Get() const {
  std::lock_guard lock(mutex);
  if (contents == nullptr) {
    throw hlo::Error("the buffer of " + shape.ToString() + " has been deleted or donated");
  }
  return contents;
}

ContentsPtr PJRT_Buffer::Release() {
  std::lock_guard lock(mutex);
  return std::move(contents);
}

bool PJRT_Buffer::IsDeleted() const {
  std::lock_guard lock(mutex);
  return contents == nullptr;
}

namespace pjrt::boundary {

using namespace plugin;
namespace {

ContentsPtr ReadyContents(std::shared_ptr<Allocation> allocation) {
  return std::make_shared<Contents>(Contents{Completion::Done(), std::move(allocation)});
}

// Waits; throws the failure of the work that makes the value.
const ContentsPtr& Await(const ContentsPtr& contents) {
  contents->ready->Wait();
  if (contents->ready->failure() != nullptr) throw *contents->ready->failure();
  return contents;
}

// Runs `body` when the value is there; the result tells when it is done, or why it never was.
template <typename Body>
CompletionPtr WhenReady(const ContentsPtr& contents, Body body) {
  if (contents->ready->is_set()) {
    if (contents->ready->failure() != nullptr) {
      return Completion::Failed(contents->ready->failure());
    }
    body();
    return Completion::Done();
  }
  auto done = std::make_shared<Completion>();
  contents->ready->OnSet([contents, body, done](const FailurePtr& failure) {
    FailurePtr result = failure;
    try {
      if (result == nullptr) body();
    } catch (...) {
      result = CurrentFailure();
    }
    done->Set(std::move(result));
  });
  return done;
}

// The event of the same. It is made first: after a failure nothing may write into the caller's
// memory.
template <typename Body>
PJRT_Event* EventOf(const ContentsPtr& contents, Body body) {
  std::unique_ptr<PJRT_Event> event(NewEvent(nullptr));
  event->completion = WhenReady(contents, std::move(body));
  return event.release();
}

PJRT_Buffer* CopyTo(PJRT_Buffer& buffer, PJRT_Device& target) {
  if (target.client != buffer.client.get()) {
    throw hlo::Error("the target device belongs to another client; copy through the host");
  }
  return new PJRT_Buffer(target, buffer.shape, buffer.Get());
}

// The host's array, without copying where that is allowed and possible.
std::shared_ptr<Allocation> Borrow(const PJRT_Client_BufferFromHostBuffer_Args& args,
                                   const hlo::Shape& shape, CompletionPtr done) {
  const bool writable = args.host_buffer_semantics == PJRT_HostBufferSemantics_kMutableZeroCopy;
  return std::make_shared<Allocation>(const_cast<void*>(args.data), shape.byte_size(), writable,
                                      [done] { done->Set(); });
}

}  // namespace

const BufferDescription& DescriptionOf(const PJRT_Buffer& buffer) { return *buffer.description; }

void Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args& args) {
  PJRT_Device& device = DeviceFrom(args.memory, args.device);
  const hlo::Shape shape = ShapeFrom(args.type, args.dims, args.num_dims);
  CheckRowMajor(args.device_layout, shape);
  if (args.data == nullptr && shape.byte_size() != 0) throw hlo::Error("data is null");

  const hlo::Dimensions dense = RowMajorByteStrides(shape);
  hlo::Dimensions strides = dense;
  if (args.byte_strides != nullptr) {
    if (args.num_byte_strides != args.num_dims) {
      throw hlo::Error(std::to_string(args.num_byte_strides) + " strides are given for " +
                       shape.ToString());
    }
    strides.assign(args.byte_strides, args.byte_strides + args.num_byte_strides);
  }
  constexpr int64_t kLeastBorrowed = 4096;  // bytes; copying less is quicker than keeping track
  const bool zero_copy =
      args.host_buffer_semantics >= PJRT_HostBufferSemantics_kImmutableZeroCopy &&
      IsAligned(args.data) && SameStrides(strides, dense, shape) &&
      shape.byte_size() >= kLeastBorrowed;
  std::shared_ptr<Allocation> allocation;
  CompletionPtr done = Completion::Done();
  if (zero_copy) {
    done = Completion::OfHandle();
    allocation = Borrow(args, shape, done);
  } else {
    allocation = std::make_shared<Allocation>(shape.byte_size());
    CopyStrided(allocation->data(), dense, args.data, strides, shape);
  }
  auto event = std::unique_ptr<PJRT_Event>(NewEvent(std::move(done)));
  args.buffer = new PJRT_Buffer(device, shape, ReadyContents(std::move(allocation)));
  args.done_with_host_buffer = event.release();
}

void Client_CreateViewOfDeviceBuffer(PJRT_Client_CreateViewOfDeviceBuffer_Args& args) {
  PJRT_Device& device = DeviceFrom(args.memory, args.device);
  const hlo::Shape shape = ShapeFrom(args.element_type, args.dims, args.num_dims);
  CheckRowMajor(args.layout, shape);
  auto release = [callback = args.on_delete_callback, data = args.device_buffer_ptr,
                  arg = args.on_delete_callback_arg] {
    const process::MayFork elsewhere;
    if (callback != nullptr) callback(data, arg);
  };
  std::shared_ptr<Allocation> allocation;
  if (IsAligned(args.device_buffer_ptr) && args.device_buffer_ptr != nullptr) {
    allocation = std::make_shared<Allocation>(args.device_buffer_ptr, shape.byte_size(),
                                              /*writable=*/false, release);
  } else {
    // The engine wants alignment; values do not change, so that a copy serves as well.
    allocation = std::make_shared<Allocation>(shape.byte_size());
    if (shape.byte_size() > 0) {
      std::memcpy(allocation->data(), &Require(static_cast<char*>(args.device_buffer_ptr), "data"),
                  shape.byte_size());
    }
    release();
  }
  args.buffer = new PJRT_Buffer(device, shape, ReadyContents(std::move(allocation)));
}

void Client_CreateUninitializedBuffer(PJRT_Client_CreateUninitializedBuffer_Args& args) {
  PJRT_Device& device = DeviceFrom(args.memory, args.device);
  const hlo::Shape shape = ShapeFrom(args.shape_element_type, args.shape_dims, args.shape_num_dims);
  CheckRowMajor(args.shape_layout, shape);
  args.buffer = new PJRT_Buffer(device, shape,
                                ReadyContents(std::make_shared<Allocation>(shape.byte_size())));
}

void Client_CreateErrorBuffer(PJRT_Client_CreateErrorBuffer_Args& args) {
  PJRT_Device& device = DeviceFrom(args.memory, nullptr);
  const hlo::Shape shape = ShapeFrom(args.shape_element_type, args.shape_dims, args.shape_num_dims);
  FailurePtr failure = FailureFrom(args.error_code, args.error_message, args.error_message_size,
                                   args.payload, args.num_payload);
  args.buffer = new PJRT_Buffer(
      device, shape,
      std::make_shared<Contents>(Contents{Completion::Failed(std::move(failure)), nullptr}));
}

}  // namespace pjrt::boundary

// The promise of an alias buffer's value.
struct PJRT_FulfillAliasBufferCallback {
  hlo::Shape shape;
  pjrt::plugin::ContentsPtr contents;
};

namespace pjrt::boundary {

void Client_CreateAliasBuffer(PJRT_Client_CreateAliasBuffer_Args& args) {
  PJRT_Device& device = DeviceFrom(args.memory, nullptr);
  const hlo::Shape shape = ShapeFrom(args.shape_element_type, args.shape_dims, args.shape_num_dims);
  CheckRowMajor(args.shape_layout, shape);
  auto contents = std::make_shared<Contents>(Contents{std::make_shared<Completion>(), nullptr});
  auto promise = std::make_unique<PJRT_FulfillAliasBufferCallback>();
  promise->shape = shape;
  promise->contents = contents;
  args.alias_buffer = new PJRT_Buffer(device, shape, std::move(contents));
  args.fulfill_alias_buffer_cb = promise.release();
}

void Client_FulfillAliasBuffer(PJRT_Client_FulfillAliasBuffer_Args& args) {
  auto& promise = Require(args.fulfill_alias_buffer_cb, "fulfill_alias_buffer_cb");
  if (args.status_code != PJRT_Error_Code_OK) {
    promise.contents->ready->Set(
        FailureFrom(args.status_code, args.error_message, args.error_message_size));
    delete &promise;
    return;
  }
  PJRT_Buffer& buffer = Require(args.buffer, "buffer");
  if (buffer.shape != promise.shape) {
    throw hlo::Error("an alias buffer of " + promise.shape.ToString() +
                     " cannot be fulfilled by one of " + buffer.shape.ToString());
  }
  ContentsPtr source = buffer.Get();
  source->ready->OnSet([source, target = promise.contents](const FailurePtr& failure) {
    target->allocation = source->allocation;
    target->ready->Set(failure);
  });
  delete &promise;  // of a promise that could not be kept the caller may say so
}

void Buffer_Destroy(PJRT_Buffer_Destroy_Args& args) { delete args.buffer; }

void Buffer_Device(PJRT_Buffer_Device_Args& args) {
  args.device = &Require(args.buffer, "buffer").device;
}

void Buffer_Memory(PJRT_Buffer_Memory_Args& args) {
  args.memory = &Require(args.buffer, "buffer").device.memory;
}

void Buffer_Delete(PJRT_Buffer_Delete_Args& args) {
  ContentsPtr released = Require(args.buffer, "buffer").Release();
}

void Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args& args) {
  args.is_deleted = Require(args.buffer, "buffer").IsDeleted();
}

void Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args& args) {
  Require(args.buffer, "buffer");
  args.is_on_cpu = true;
}

void Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args& args) {
  args.event = NewEvent(Require(args.buffer, "buffer").Get()->ready);
}

void Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args& args) {
  args.dst_buffer =
      CopyTo(Require(args.buffer, "buffer"), Require(args.dst_device, "target device"));
}

void Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args& args) {
  args.dst_buffer =
      CopyTo(Require(args.buffer, "buffer"), *Memory::Get(args.dst_memory).devices[0]);
}

void Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args& args) {
  const PJRT_Buffer& buffer = Require(args.src, "buffer");
  if (!HasRoom(args, buffer.shape)) return;
  const ContentsPtr contents = buffer.Get();
  auto copy = [contents, target = args.dst, shape = buffer.shape,
               strides = ByteStrides(args.host_layout, buffer.shape)] {
    CopyStrided(target, strides, contents->allocation->data(), RowMajorByteStrides(shape), shape);
  };
  args.event = EventOf(contents, std::move(copy));
}

namespace {

void CheckRange(const PJRT_Buffer& buffer, int64_t offset, int64_t bytes) {
  if (offset < 0 || bytes < 0 || bytes > buffer.shape.byte_size() ||
      offset > buffer.shape.byte_size() - bytes) {
    throw hlo::Error(hlo::ErrorCode::kOutOfRange,
                     "bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                         " are not within the " + std::to_string(buffer.shape.byte_size()) +
                         " of " + buffer.shape.ToString());
  }
}

}  // namespace

void Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args& args) {
  const PJRT_Buffer& buffer = Require(args.buffer, "buffer");
  CheckRange(buffer, args.offset, args.transfer_size);
  const ContentsPtr contents = buffer.Get();
  auto copy = [contents, target = args.dst, offset = args.offset, bytes = args.transfer_size] {
    if (bytes == 0) return;
    std::memcpy(target, static_cast<const char*>(contents->allocation->data()) + offset, bytes);
  };
  args.event = EventOf(contents, std::move(copy));
}

namespace {

// A copy whose target the caller names later.
struct FutureCopy {
  ContentsPtr contents;
  int64_t offset, bytes;
  CompletionPtr done;
};

void RunFutureCopy(PJRT_Buffer_CopyRawToHostFuture_Callback_Args* args) {
  std::unique_ptr<FutureCopy> copy(static_cast<FutureCopy*>(args->callback_data));
  CompletionPtr done = copy->done;
  try {
    if (args->error_code != PJRT_Error_Code_OK) {
      done->Set(FailureFrom(args->error_code, args->error_message, args->error_message_size));
      return;
    }
    ContentsPtr contents = copy->contents;
    contents->ready->OnSet([contents, done, target = args->dst, offset = copy->offset,
                            bytes = copy->bytes](const FailurePtr& failure) {
      if (failure == nullptr && bytes > 0) {
        std::memcpy(target, static_cast<const char*>(contents->allocation->data()) + offset, bytes);
      }
      done->Set(failure);
    });
  } catch (...) {
    done->Set(CurrentFailure());
  }
}

}  // namespace

void Buffer_CopyRawToHostFuture(PJRT_Buffer_CopyRawToHostFuture_Args& args) {
  const PJRT_Buffer& buffer = Require(args.buffer, "buffer");
  CheckRange(buffer, args.offset, args.transfer_size);
  auto done = std::make_shared<Completion>();
  std::unique_ptr<FutureCopy> copy(
      new FutureCopy{buffer.Get(), args.offset, args.transfer_size, done});
  args.event = NewEvent(std::move(done));
  args.callback_data = copy.release();
  args.future_ready_callback = RunFutureCopy;
}

// The same bytes as another type or with other dimensions.
void Buffer_Bitcast(PJRT_Buffer_Bitcast_Args& args) {
  const PJRT_Buffer& buffer = Require(args.buffer, "buffer");
  const hlo::Shape shape = ShapeFrom(args.element_type, args.dims, args.num_dims);
  CheckRowMajor(args.device_layout, shape);
  if (shape.byte_size() != buffer.shape.byte_size()) {
    throw hlo::Error("the bytes of " + buffer.shape.ToString() + " cannot be seen as " +
                     shape.ToString() + ", which has another size");
  }
  args.out_buffer = new PJRT_Buffer(buffer.device, shape, buffer.Get());
}

namespace {

struct Dependency {
  ContentsPtr source, target;
};

void RunDependency(PJRT_Buffer_DonateWithControlDependency_Callback_Args* args) {
  std::unique_ptr<Dependency> dependency(static_cast<Dependency*>(args->callback_data));
  ContentsPtr target = dependency->target;
  try {
    if (args->error_code != PJRT_Error_Code_OK) {
      target->ready->Set(
          FailureFrom(args->error_code, args->error_message, args->error_message_size));
      return;
    }
    ContentsPtr source = std::move(dependency->source);
    source->ready->OnSet([source, target](const FailurePtr& failure) {
      target->allocation = source->allocation;
      target->ready->Set(failure);
    });
  } catch (...) {
    target->ready->Set(CurrentFailure());
  }
}

}  // namespace

// The buffer's value moves to a new buffer, which is ready once the caller says so too.
void Buffer_DonateWithControlDependency(PJRT_Buffer_DonateWithControlDependency_Args& args) {
  PJRT_Buffer& buffer = Require(args.buffer, "buffer");
  auto target = std::make_shared<Contents>(Contents{std::make_shared<Completion>(), nullptr});
  std::unique_ptr<Dependency> dependency(new Dependency{buffer.Get(), target});
  args.out_buffer = new PJRT_Buffer(buffer.device, buffer.shape, std::move(target));
  ContentsPtr released = buffer.Release();
  args.callback_data = dependency.release();
  args.dependency_ready_callback = RunDependency;
}

// An address says nothing of the value, so it waits for none: who asks may hold what the program
// waits for. JAX holds the interpreter's lock, which a callback wants.
void Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args& args) {
  const ContentsPtr contents = Require(args.buffer, "buffer").Get();
  std::shared_ptr<Allocation> place;
  if (!contents->ready->is_set()) {
    if (const auto placement = contents->placement.lock()) {
      place = placement->Place(contents->result);
    }
  }
  if (place == nullptr) place = Await(contents)->allocation;
  args.buffer_pointer = reinterpret_cast<uintptr_t>(place->data());
}

void Buffer_OpaqueDeviceMemoryDataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args& args) {
  PJRT_Buffer& buffer = Require(args.buffer, "buffer");
  ContentsPtr contents;
  {
    std::lock_guard lock(buffer.mutex);
    contents = buffer.external != nullptr ? buffer.external : buffer.contents;
  }
  if (contents == nullptr) contents = buffer.Get();  // throws
  args.device_memory_ptr = Await(contents)->allocation->data();
}

void Buffer_IncreaseExternalReferenceCount(PJRT_Buffer_IncreaseExternalReferenceCount_Args& args) {
  PJRT_Buffer& buffer = Require(args.buffer, "buffer");
  ContentsPtr contents = buffer.Get();
  std::lock_guard lock(buffer.mutex);
  if (buffer.external_references++ == 0) buffer.external = std::move(contents);
}

void Buffer_DecreaseExternalReferenceCount(PJRT_Buffer_DecreaseExternalReferenceCount_Args& args) {
  PJRT_Buffer& buffer = Require(args.buffer, "buffer");
  ContentsPtr released;
  std::lock_guard lock(buffer.mutex);
  if (buffer.external_references == 0) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "the buffer has no external reference to give back");
  }
  if (--buffer.external_references == 0) released = std::move(buffer.external);
}

}  // namespace pjrt::boundary
