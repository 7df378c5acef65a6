// An array on a device.
#pragma once

#include <cstddef>
#include <memory>

#include "hlo/literal.h"
#include "hlo/shape.h"
#include "pjrt/client/event.h"
#include "pjrt/client/owned.h"
#include "process/small_memory.h"

namespace pjrt {

class Client;
class Device;
class Memory;

// Owns a PJRT_Buffer. Its contents may still be on their way: every use waits by itself, and an
// error of the work that produces it appears in Await, ToHost and the events of what consumes it.
// Thread-safe. Keeps its client alive.
class Buffer : public process::SmallObject {
 public:
  // Takes the handle over.
  Buffer(std::shared_ptr<Client> client, OwnedBuffer buffer);
  Buffer(std::shared_ptr<Client> client, OwnedBuffer buffer, hlo::Shape shape);
  // Of a shape that many share.
  Buffer(std::shared_ptr<Client> client, OwnedBuffer buffer,
         std::shared_ptr<const hlo::Shape> shape);
  Buffer(const Buffer&) = delete;

  const hlo::Shape& shape() const { return *shape_; }
  const std::shared_ptr<Client>& client() const { return client_; }
  PJRT_Buffer* handle() const { return buffer_.get(); }
  Device& device() const;
  Memory& memory() const;
  size_t on_device_size_in_bytes() const;
  // Whether the contents lie dense and row-major on the device, which may hold them otherwise.
  bool IsRowMajor() const;
  bool IsOnCpu() const;

  // Gives the device memory back as soon as pending work allows; only the shape and IsDeleted
  // remain usable.
  void Delete();
  // True after Delete and after an execution that this was donated to.
  bool IsDeleted() const;

  Event ReadyEvent() const;
  void Await() const { ReadyEvent().Await(); }

  // Copies the contents to `destination`, dense row-major, `bytes` of room (at least
  // shape().byte_size()). The first blocks; the second's event tells when it is done.
  void ToHost(void* destination, size_t bytes) const;
  Event ToHostAsync(void* destination, size_t bytes) const;
  hlo::Literal ToLiteral() const;
  // Bytes [offset, offset + bytes) as they lie on the device.
  Event CopyRawToHost(void* destination, int64_t offset, int64_t bytes) const;

  // Copies within the client. (Some plugins refuse a copy to where the buffer is already.)
  std::unique_ptr<Buffer> CopyToDevice(const Device& device) const;
  std::unique_ptr<Buffer> CopyToMemory(const Memory& memory) const;

  // The contents in the host's address space, for buffers that IsOnCpu, after Await. The memory
  // stays valid while an ExternalReference lives, even after Delete.
  class ExternalReference {
   public:
    explicit ExternalReference(const Buffer& buffer);
    ~ExternalReference();
    ExternalReference(const ExternalReference&) = delete;
    void* data() const { return data_; }

   private:
    const Buffer& buffer_;
    void* data_ = nullptr;
  };
  // The device address, for peers that share it.
  uintptr_t UnsafePointer() const;

 private:
  const Plugin& plugin() const;

  std::shared_ptr<Client> client_;
  OwnedBuffer buffer_;
  std::shared_ptr<const hlo::Shape> shape_;
};

}  // namespace pjrt
