#include "remote/client/buffer.h"

#include <cstring>
#include <utility>

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"

using pjrt::boundary::Completion;
using pjrt::boundary::CompletionPtr;

PJRT_Buffer::PJRT_Buffer(PJRT_Device& device, PJRT_Memory* memory, hlo::Shape shape,
                         uint64_t number, CompletionPtr ready)
    : BufferDescription(std::move(shape)),
      client(device.client->shared_from_this()),
      device(device),
      memory(memory != nullptr ? memory : device.default_memory),
      ready(std::move(ready)),
      number_(number) {}

PJRT_Buffer::~PJRT_Buffer() { Delete(); }

uint64_t PJRT_Buffer::Get() const {
  std::lock_guard lock(mutex_);
  if (deleted_) {
    throw hlo::Error("the buffer of " + shape.ToString() + " has been deleted or donated");
  }
  return number_;
}

void PJRT_Buffer::Delete() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(deleted_, true)) return;
  }
  client->connection->FreeBuffer(number_, may_be_donated_ ? 0 : shape.byte_size());
}

bool PJRT_Buffer::CopyShared(void* target, size_t offset, size_t bytes) const {
  // A forked child cannot keep the parent from giving the memory back.
  if (client->connection->InForkedChild()) return false;
  if (completed == nullptr || !ready->is_set() || ready->failure() != nullptr) return false;
  const auto found = completed->offsets.find(place);
  const auto all = static_cast<size_t>(shape.byte_size());
  if (found == completed->offsets.end() || offset > all || bytes > all - offset) return false;
  // Who frees or donates it meanwhile waits.
  std::lock_guard lock(mutex_);
  if (deleted_ || may_be_donated_) return false;
  std::memcpy(target, client->arena.ResultAt(found->second + offset, bytes), bytes);
  return true;
}

void PJRT_Buffer::MayBeDonated() {
  std::lock_guard lock(mutex_);
  may_be_donated_ = true;
}

bool PJRT_Buffer::IsDeleted() {
  {
    std::lock_guard lock(mutex_);
    if (deleted_) return true;
  }
  if (!may_be_donated_) return false;
  remote::wire::Request request;
  request.mutable_is_deleted()->set_buffer(number_);
  const remote::wire::Reply reply = client->connection->Ask(std::move(request));
  const auto& numbers = reply.numbers().numbers();
  return !numbers.empty() && numbers[0] != 0;
}

namespace pjrt::boundary {

const BufferDescription& DescriptionOf(const PJRT_Buffer& buffer) { return buffer; }

void Buffer_Destroy(PJRT_Buffer_Destroy_Args& args) { delete args.buffer; }

void Buffer_Device(PJRT_Buffer_Device_Args& args) {
  args.device = &Require(args.buffer, "buffer").device;
}

void Buffer_Memory(PJRT_Buffer_Memory_Args& args) {
  args.memory = &Require(Require(args.buffer, "buffer").memory, "the buffer's memory");
}

void Buffer_Delete(PJRT_Buffer_Delete_Args& args) { Require(args.buffer, "buffer").Delete(); }

void Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args& args) {
  args.is_deleted = Require(args.buffer, "buffer").IsDeleted();
}

void Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args& args) {
  Require(args.buffer, "buffer");
  args.is_on_cpu = false;  // not in this process
}

void Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args& args) {
  PJRT_Buffer& buffer = Require(args.buffer, "buffer");
  buffer.Get();
  args.event = NewEvent(buffer.ready);
}

namespace {

PJRT_Buffer* CopyTo(const PJRT_Buffer& buffer, PJRT_Memory* memory, PJRT_Device* device) {
  PJRT_Client& client = *buffer.client;
  const uint64_t target = client.connection->NewNumbers();
  remote::wire::Request request;
  remote::wire::Copy& copy = *request.mutable_copy();
  copy.set_source(buffer.Get());
  copy.set_target(target);
  *copy.mutable_place() = client.PlaceOf(memory, device);
  auto ready = std::make_shared<Completion>();
  client.connection->Call(std::move(request), {CompletionHandler(ready)});
  PJRT_Device& owner = memory != nullptr ? *Memory::Get(memory).devices.at(0) : *device;
  return new PJRT_Buffer(owner, memory, buffer.shape, target, std::move(ready));
}

}  // namespace

void Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args& args) {
  args.dst_buffer =
      CopyTo(Require(args.buffer, "buffer"), nullptr, &Require(args.dst_device, "target device"));
}

void Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args& args) {
  args.dst_buffer = CopyTo(Require(args.buffer, "buffer"), &Memory::Get(args.dst_memory), nullptr);
}

}  // namespace pjrt::boundary
