// Arrays on a device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "cpu/memory.h"
#include "hlo/shape.h"
#include "pjrt/boundary/buffer_description.h"
#include "pjrt/boundary/event.h"
#include "pjrt/c_api.h"
#include "pjrt/plugin/client.h"
#include "process/small_memory.h"

namespace pjrt::plugin {

using namespace boundary;

// Bytes, owned or lent. Freed when the last of buffers, pending work and external references is
// done with them.
class Allocation {
 public:
  // Contents undefined.
  explicit Allocation(size_t bytes);
  // Lent by the host until `release` is called.
  Allocation(void* data, size_t bytes, bool writable, std::function<void()> release);
  ~Allocation();
  Allocation(const Allocation&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  bool writable() const { return writable_; }

 private:
  cpu::Block block_;
  void* data_;
  size_t bytes_;
  bool writable_ = true;
  std::function<void()> release_;
};

// Decides where the results of a run lie: when it begins, or before, when somebody asks.
class Placement {
 public:
  virtual ~Placement() = default;
  // Thread-safe. Waits for nothing.
  virtual std::shared_ptr<Allocation> Place(size_t result) = 0;
};

// An array's value: an allocation that is there and filled once `ready` is set (without a failure).
// Buffers that are copies of each other share it, since values do not change.
struct Contents {
  CompletionPtr ready;
  std::shared_ptr<Allocation> allocation;
  // Of a run's result; whoever has not seen that it is ready asks here for its memory.
  std::weak_ptr<Placement> placement = {};
  size_t result = 0;
};
using ContentsPtr = std::shared_ptr<Contents>;

// What the engine asks of its buffers' addresses.
inline bool IsAligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % cpu::kAlignment == 0;
}

// The device meant by a memory, or else a device. Throws if both are null, and for a device of
// another process.
PJRT_Device& DeviceFrom(PJRT_Memory* memory, PJRT_Device* device);

}  // namespace pjrt::plugin

// Thread-safe.
struct PJRT_Buffer : process::SmallObject {
  PJRT_Buffer(PJRT_Device& device, hlo::Shape shape, pjrt::plugin::ContentsPtr contents);
  // As a result of a program is described, which all its runs share.
  PJRT_Buffer(PJRT_Device& device,
              std::shared_ptr<const pjrt::boundary::BufferDescription> description,
              pjrt::plugin::ContentsPtr contents);

  // Throws if deleted or donated.
  pjrt::plugin::ContentsPtr Get() const;
  // The value, which this buffer then has no more.
  pjrt::plugin::ContentsPtr Release();
  bool IsDeleted() const;

  const std::shared_ptr<const pjrt::boundary::BufferDescription> description;
  const hlo::Shape& shape;  // the description's
  const std::shared_ptr<PJRT_Client> client;
  PJRT_Device& device;

  mutable std::mutex mutex;
  pjrt::plugin::ContentsPtr contents;  // null once deleted or donated
  // Keeps the value for those who read it directly.
  pjrt::plugin::ContentsPtr external;
  int64_t external_references = 0;
};
