// Arrays from the host to the server and back.
#include <algorithm>
#include <cstring>

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"
#include "pjrt/boundary/layout.h"
#include "remote/client/blob.h"
#include "remote/client/buffer.h"

namespace pjrt::boundary {
namespace {

namespace wire = remote::wire;
using remote::Arena;

PJRT_Device& DeviceFrom(PJRT_Memory* memory, PJRT_Device* device) {
  if (memory != nullptr) device = Memory::Get(memory).devices.at(0);
  PJRT_Device& found = Require(device, "memory and device");
  if (!found.addressable) {
    throw hlo::Error(found.description.debug_string + " is not one that the server can reach");
  }
  return found;
}

hlo::Dimensions HostStrides(const PJRT_Client_BufferFromHostBuffer_Args& args,
                            const hlo::Shape& shape) {
  if (args.byte_strides == nullptr) return RowMajorByteStrides(shape);
  if (args.num_byte_strides != args.num_dims) {
    throw hlo::Error(std::to_string(args.num_byte_strides) + " strides are given for " +
                     shape.ToString());
  }
  return hlo::Dimensions(args.byte_strides, args.byte_strides + args.num_byte_strides);
}

// Sends what `fill` writes, `bytes` of it, by the way that suits the size. The array is the
// caller's again when this returns.
template <typename Fill>
void SendArray(PJRT_Client& client, wire::Request request, size_t bytes, const Fill& fill) {
  wire::BufferFromHost& call = *request.mutable_buffer_from_host();
  if (bytes > remote::kMostInlineBytes) {
    if (std::optional<Arena::Block> block = client.arena.Take(bytes)) {
      fill(block->data);
      *call.mutable_region() = block->region;
      // An engine that reads the memory in place answers when the buffer is gone: that must not
      // keep the client.
      auto give = [owner = client.weak_from_this(), block = *block](wire::Reply&) {
        if (const auto client = owner.lock()) client->arena.Give(block);
      };
      client.connection->Call(std::move(request), {std::move(give)});
      return;
    }
  }
  std::string data(bytes, '\0');
  fill(data.data());
  if (bytes <= remote::kMostInlineBytes) {
    call.set_data(std::move(data));
  } else {
    call.set_blob(remote::SendBlob(*client.connection, data));
  }
  client.connection->Post(std::move(request));
}

}  // namespace

void Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args& args) {
  PJRT_Client& client = Require(args.client, "client");
  PJRT_Device& device = DeviceFrom(args.memory, args.device);
  const hlo::Shape shape = ShapeFrom(args.type, args.dims, args.num_dims);
  CheckRowMajor(args.device_layout, shape);
  if (args.data == nullptr && shape.byte_size() != 0) throw hlo::Error("data is null");
  const hlo::Dimensions strides = HostStrides(args, shape);

  const uint64_t number = client.connection->NewNumbers();
  wire::Request request;
  wire::BufferFromHost& call = *request.mutable_buffer_from_host();
  call.set_buffer(number);
  remote::ToMessage(shape, call.mutable_shape());
  *call.mutable_place() = client.PlaceOf(args.memory, args.device);
  SendArray(client, std::move(request), shape.byte_size(), [&](void* target) {
    CopyStrided(target, RowMajorByteStrides(shape), args.data, strides, shape);
  });
  args.done_with_host_buffer = NewEvent(Completion::Done());
  args.buffer = new PJRT_Buffer(device, args.memory, shape, number, Completion::Done());
}

namespace {

// A copy to the host under way.
struct Reading {
  std::shared_ptr<PJRT_Client> client;
  char* target;  // dense, or `dense` until all is there
  size_t bytes;
  std::optional<Arena::Block> block;
  bool locate = false;
  std::function<void()> finish;  // may be empty
  CompletionPtr done;

  void Take(wire::Reply& reply) {
    FailurePtr failure = remote::FailureOf(reply);
    try {
      if (failure == nullptr) Copy(reply.contents());
      if (failure == nullptr && !reply.more() && finish) finish();
    } catch (...) {
      failure = CurrentFailure();
    }
    if (reply.more() && failure == nullptr) return;
    if (block) client->arena.Give(*block);
    block.reset();
    if (locate) Free(reply.reply());
    done->Set(std::move(failure));
  }

 private:
  void Copy(const wire::Contents& contents) {
    if (contents.has_located()) {
      if (contents.located().bytes() != bytes) throw hlo::Error("the server located other bytes");
      std::memcpy(target, client->arena.At(contents.located()).get(), bytes);
      return;
    }
    const char* source = block ? block->data + contents.offset() : contents.data().data();
    const size_t came = block ? contents.bytes() : contents.data().size();
    if (contents.offset() <= bytes && came <= bytes - contents.offset() && came > 0) {
      std::memcpy(target + contents.offset(), source, came);
    }
  }

  void Free(uint64_t read) {
    try {
      const auto request = remote::Make<wire::Request>(
          [read](wire::Request& request) { request.mutable_free()->add_reads(read); });
      client->connection->Post(std::move(*request));
    } catch (const std::exception&) {  // the server is gone, or has it until the session ends
    }
  }
};

CompletionPtr AskForContents(const std::shared_ptr<PJRT_Client>& client, uint64_t number,
                             wire::Request request, size_t bytes, char* target,
                             std::function<void()> finish,
                             CompletionPtr done = std::make_shared<Completion>()) {
  auto reading = std::make_shared<Reading>();
  reading->done = std::move(done);
  reading->client = client;
  reading->target = target;
  reading->bytes = bytes;
  reading->finish = std::move(finish);
  wire::Read& call = *request.mutable_read();
  call.set_buffer(number);
  call.set_bytes(bytes);
  const bool large = bytes > remote::kMostInlineBytes;
  reading->locate = large && !call.raw() && client->arena.shares_results();
  call.set_locate(reading->locate);
  if (large && !reading->locate) reading->block = client->arena.Take(bytes);
  if (reading->block) *call.mutable_region() = reading->block->region;
  client->connection->Call(std::move(request),
                           {[reading](wire::Reply& reply) { reading->Take(reply); }});
  return reading->done;
}

// The dense contents of a small result come with its end, or else are asked for then.
CompletionPtr WaitForSmallResult(const PJRT_Buffer& buffer, char* target,
                                 std::function<void()> finish) {
  auto done = std::make_shared<Completion>();
  buffer.ready->OnSet(
      [done, target, finish, completed = buffer.completed, place = buffer.place,
       client = buffer.client, number = buffer.Get(),
       bytes = static_cast<size_t>(buffer.shape.byte_size())](const FailurePtr& failure) {
        if (failure != nullptr) return done->Set(failure);
        auto found = completed->contents.find(place);
        try {
          if (found != completed->contents.end() && found->second.size() == bytes) {
            std::memcpy(target, found->second.data(), bytes);
            if (finish) finish();
            return done->Set();
          }
          AskForContents(client, number, {}, bytes, target, finish, done);
        } catch (...) {
          done->Set(CurrentFailure());
        }
      });
  return done;
}

CompletionPtr StartReading(const PJRT_Buffer& buffer, wire::Request request, size_t bytes,
                           char* target, std::function<void()> finish) {
  if (buffer.CopyShared(target, request.read().offset(), bytes)) {
    if (finish) finish();
    return Completion::Done();
  }
  if (buffer.is_wanted && buffer.is_certain() && !request.has_read()) {
    return WaitForSmallResult(buffer, target, std::move(finish));
  }
  if (const auto program = buffer.program.lock(); program != nullptr &&
                                                  bytes <= remote::kMostSmallResultBytes &&
                                                  buffer.client->description.host_memory()) {
    program->Want(buffer.place);
  }
  return AskForContents(buffer.client, buffer.Get(), std::move(request), bytes, target,
                        std::move(finish));
}

}  // namespace

void Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args& args) {
  const PJRT_Buffer& buffer = Require(args.src, "buffer");
  if (!HasRoom(args, buffer.shape)) return;
  const auto needed = static_cast<size_t>(buffer.shape.byte_size());
  const hlo::Dimensions dense = RowMajorByteStrides(buffer.shape);
  const hlo::Dimensions strides = ByteStrides(args.host_layout, buffer.shape);
  CompletionPtr done;
  if (SameStrides(strides, dense, buffer.shape)) {
    done = StartReading(buffer, {}, needed, static_cast<char*>(args.dst), {});
  } else {
    auto whole = std::make_shared<std::string>(needed, '\0');
    done = StartReading(buffer, {}, needed, whole->data(),
                        [whole, target = args.dst, strides, dense, shape = buffer.shape] {
                          CopyStrided(target, strides, whole->data(), dense, shape);
                        });
  }
  args.event = NewEvent(std::move(done));
}

void Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args& args) {
  const PJRT_Buffer& buffer = Require(args.buffer, "buffer");
  if (args.offset < 0 || args.transfer_size < 0) {
    throw hlo::Error(hlo::ErrorCode::kOutOfRange, "offset and size must not be negative");
  }
  wire::Request request;
  request.mutable_read()->set_raw(true);
  request.mutable_read()->set_offset(args.offset);
  args.event = NewEvent(StartReading(buffer, std::move(request), args.transfer_size,
                                     static_cast<char*>(args.dst), {}));
}

}  // namespace pjrt::boundary
