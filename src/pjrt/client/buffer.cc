#include "pjrt/client/buffer.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "pjrt/client/call.h"
#include "pjrt/client/client.h"
#include "pjrt/element_type.h"

namespace pjrt {
namespace {

hlo::Shape QueryShape(const Plugin& plugin, PJRT_Buffer* buffer) {
  Arguments<PJRT_Buffer_ElementType_Args> type;
  type->buffer = buffer;
  PJRT_INVOKE(plugin, Buffer_ElementType, type);
  Arguments<PJRT_Buffer_Dimensions_Args> dimensions;
  dimensions->buffer = buffer;
  PJRT_INVOKE(plugin, Buffer_Dimensions, dimensions);
  return hlo::Shape(ToElementType(type->type),
                    hlo::Dimensions(dimensions->dims, dimensions->dims + dimensions->num_dims));
}

}  // namespace

Buffer::Buffer(std::shared_ptr<Client> client, OwnedBuffer buffer)
    : client_(std::move(client)), buffer_(std::move(buffer)) {
  shape_ = std::make_shared<const hlo::Shape>(QueryShape(plugin(), buffer_.get()));
}

Buffer::Buffer(std::shared_ptr<Client> client, OwnedBuffer buffer, hlo::Shape shape)
    : Buffer(std::move(client), std::move(buffer),
             std::make_shared<const hlo::Shape>(std::move(shape))) {}

Buffer::Buffer(std::shared_ptr<Client> client, OwnedBuffer buffer,
               std::shared_ptr<const hlo::Shape> shape)
    : client_(std::move(client)), buffer_(std::move(buffer)), shape_(std::move(shape)) {}

const Plugin& Buffer::plugin() const { return client_->plugin(); }

Device& Buffer::device() const {
  Arguments<PJRT_Buffer_Device_Args> args;
  args->buffer = handle();
  PJRT_INVOKE(plugin(), Buffer_Device, args);
  return client_->device(args->device);
}

Memory& Buffer::memory() const {
  Arguments<PJRT_Buffer_Memory_Args> args;
  args->buffer = handle();
  PJRT_INVOKE(plugin(), Buffer_Memory, args);
  return client_->memory(args->memory);
}

size_t Buffer::on_device_size_in_bytes() const {
  Arguments<PJRT_Buffer_OnDeviceSizeInBytes_Args> args;
  args->buffer = handle();
  PJRT_INVOKE(plugin(), Buffer_OnDeviceSizeInBytes, args);
  return args->on_device_size_in_bytes;
}

bool Buffer::IsOnCpu() const {
  Arguments<PJRT_Buffer_IsOnCpu_Args> args;
  args->buffer = handle();
  PJRT_INVOKE(plugin(), Buffer_IsOnCpu, args);
  return args->is_on_cpu;
}

void Buffer::Delete() {
  Arguments<PJRT_Buffer_Delete_Args> args;
  args->buffer = handle();
  PJRT_INVOKE(plugin(), Buffer_Delete, args);
}

bool Buffer::IsDeleted() const {
  Arguments<PJRT_Buffer_IsDeleted_Args> args;
  args->buffer = handle();
  PJRT_INVOKE(plugin(), Buffer_IsDeleted, args);
  return args->is_deleted;
}

bool Buffer::IsRowMajor() const {
  Arguments<PJRT_Buffer_GetMemoryLayout_Args> args;
  args->buffer = handle();
  PJRT_INVOKE(plugin(), Buffer_GetMemoryLayout, args);
  if (args->layout.type != PJRT_Buffer_MemoryLayout_Type_Tiled) return false;
  const PJRT_Buffer_MemoryLayout_Tiled& tiled = args->layout.tiled;
  std::vector<int64_t> order(tiled.minor_to_major,
                             tiled.minor_to_major + tiled.minor_to_major_size);
  // Where there is but one element it lies nowhere else.
  std::erase_if(order, [&](int64_t dimension) { return shape_->dimension(dimension) == 1; });
  return tiled.num_tiles == 0 && std::ranges::is_sorted(order, std::greater<>());
}

Event Buffer::ReadyEvent() const {
  Arguments<PJRT_Buffer_ReadyEvent_Args> args;
  args->buffer = handle();
  PJRT_INVOKE(plugin(), Buffer_ReadyEvent, args);
  return Event(plugin(), args->event);
}

Event Buffer::ToHostAsync(void* destination, size_t bytes) const {
  const size_t needed = shape_->byte_size();
  if (bytes < needed) {
    throw hlo::Error("reading " + shape_->ToString() + " needs " + std::to_string(needed) +
                     " bytes of room, but there are " + std::to_string(bytes));
  }
  RowMajorLayout layout(shape_->rank());
  Arguments<PJRT_Buffer_ToHostBuffer_Args> args;
  args->src = handle();
  args->host_layout = layout.get();
  args->dst = destination;
  args->dst_size = bytes;
  std::byte nowhere;
  if (destination == nullptr) args->dst = &nowhere;  // null would ask for the size
  PJRT_INVOKE(plugin(), Buffer_ToHostBuffer, args);
  return Event(plugin(), args->event);
}

void Buffer::ToHost(void* destination, size_t bytes) const {
  ToHostAsync(destination, bytes).Await();
}

hlo::Literal Buffer::ToLiteral() const {
  hlo::Literal literal(*shape_);
  ToHost(literal.mutable_bytes(), literal.byte_size());
  return literal;
}

Event Buffer::CopyRawToHost(void* destination, int64_t offset, int64_t bytes) const {
  Arguments<PJRT_Buffer_CopyRawToHost_Args> args;
  args->buffer = handle();
  args->dst = destination;
  args->offset = offset;
  args->transfer_size = bytes;
  PJRT_INVOKE(plugin(), Buffer_CopyRawToHost, args);
  return Event(plugin(), args->event);
}

std::unique_ptr<Buffer> Buffer::CopyToDevice(const Device& device) const {
  Arguments<PJRT_Buffer_CopyToDevice_Args> args;
  args->buffer = handle();
  args->dst_device = device.handle();
  PJRT_INVOKE(plugin(), Buffer_CopyToDevice, args);
  return std::make_unique<Buffer>(client_, OwnedBuffer(plugin(), args->dst_buffer), shape_);
}

std::unique_ptr<Buffer> Buffer::CopyToMemory(const Memory& memory) const {
  Arguments<PJRT_Buffer_CopyToMemory_Args> args;
  args->buffer = handle();
  args->dst_memory = memory.handle();
  PJRT_INVOKE(plugin(), Buffer_CopyToMemory, args);
  return std::make_unique<Buffer>(client_, OwnedBuffer(plugin(), args->dst_buffer), shape_);
}

uintptr_t Buffer::UnsafePointer() const {
  Arguments<PJRT_Buffer_UnsafePointer_Args> args;
  args->buffer = handle();
  PJRT_INVOKE(plugin(), Buffer_UnsafePointer, args);
  return args->buffer_pointer;
}

Buffer::ExternalReference::ExternalReference(const Buffer& buffer) : buffer_(buffer) {
  Arguments<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args> pointer;
  pointer->buffer = buffer.handle();
  PJRT_INVOKE(buffer.plugin(), Buffer_OpaqueDeviceMemoryDataPointer, pointer);
  data_ = pointer->device_memory_ptr;
  Arguments<PJRT_Buffer_IncreaseExternalReferenceCount_Args> args;
  args->buffer = buffer.handle();
  PJRT_INVOKE(buffer.plugin(), Buffer_IncreaseExternalReferenceCount, args);
}

Buffer::ExternalReference::~ExternalReference() {
  Arguments<PJRT_Buffer_DecreaseExternalReferenceCount_Args> args;
  args->buffer = buffer_.handle();
  const Plugin& plugin = buffer_.plugin();
  (void)plugin.ToError(plugin.api().PJRT_Buffer_DecreaseExternalReferenceCount(args.get()));
}

}  // namespace pjrt
