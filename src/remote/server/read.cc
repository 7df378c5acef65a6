#include "remote/server/read.h"

#include <algorithm>
#include <new>
#include <string>

#include "pjrt/client/client.h"
#include "pjrt/client/wait.h"

namespace remote {
namespace {

// A piece costs a reply, and the client has nothing to do before the first has come.
constexpr uint64_t kLeastPieceBytes = uint64_t{1} << 20, kMostSharedPieceBytes = uint64_t{4} << 20;
constexpr uint64_t kPieces = 8;

// A device's memory is reached in pieces where that costs nothing: in the host's.
bool ComesInPieces(const ReadRequest& request) {
  const pjrt::Buffer& buffer = *request.buffer;
  if (request.raw) return true;
  return request.bytes > kLeastPieceBytes &&
         buffer.client()->plugin().has(&PJRT_Api::PJRT_Buffer_CopyRawToHost) && buffer.IsOnCpu() &&
         buffer.on_device_size_in_bytes() == request.bytes && buffer.IsRowMajor();
}

struct Piece {
  uint64_t offset, bytes;  // within what was asked for
  bool last;
};

void Send(const ReadRequest& request, const char* memory, const Piece& piece,
          const hlo::Error* error) noexcept {
  request.outbox->Answer(request.reply, [&](wire::Reply& reply) {
    reply.set_more(!piece.last);
    if (error != nullptr) return ToMessage(*error, reply.mutable_error());
    wire::Contents& contents = *reply.mutable_contents();
    contents.set_offset(piece.offset);
    contents.set_bytes(piece.bytes);
    if (request.shared == nullptr) contents.set_data(memory + piece.offset, piece.bytes);
  });
}

// The whole was copied: with the replies it still goes in pieces that fit into messages.
void SendAll(const ReadRequest& request, const char* memory, const hlo::Error* error) noexcept {
  const uint64_t most = request.shared != nullptr ? request.bytes : kMostPieceBytes;
  uint64_t offset = 0;
  do {
    const uint64_t bytes = std::min(most, request.bytes - offset);
    const bool last = error != nullptr || offset + bytes == request.bytes;
    Send(request, memory, {offset, bytes, last}, error);
    if (last) return;
    offset += bytes;
  } while (true);
}

std::shared_ptr<char> NewMemory(uint64_t bytes) {
  try {
    return std::shared_ptr<char>(new char[std::max<uint64_t>(bytes, 1)],
                                 std::default_delete<char[]>());
  } catch (const std::bad_alloc&) {
    throw hlo::Error(
        hlo::ErrorCode::kResourceExhausted,
        "the runtime server has no " + std::to_string(bytes) + " bytes of memory to read a buffer");
  }
}

}  // namespace

void StartRead(ReadRequest request) {
  const std::shared_ptr<char> memory =
      request.shared != nullptr ? request.shared : NewMemory(request.bytes);
  if (!ComesInPieces(request)) {
    pjrt::OnReadyOrWait(
        request.buffer->ToHostAsync(memory.get(), request.bytes),
        [request, memory](const hlo::Error* error) { SendAll(request, memory.get(), error); });
    return;
  }
  const uint64_t most = request.shared == nullptr ? kMostPieceBytes : kMostSharedPieceBytes;
  const uint64_t step = std::clamp(request.bytes / kPieces, kLeastPieceBytes, most);
  uint64_t offset = 0;
  do {
    const uint64_t bytes = std::min(step, request.bytes - offset);
    const Piece piece{offset, bytes, offset + bytes == request.bytes};
    pjrt::OnReadyOrWait(
        request.buffer->CopyRawToHost(memory.get() + offset, request.offset + offset, bytes),
        [request, memory, piece](const hlo::Error* error) {
          Send(request, memory.get(), piece, error);
        });
    offset += bytes;
  } while (offset < request.bytes);
}

void StartLocatedRead(ReadRequest request, std::shared_ptr<const SharedMemory> memory) {
  request.buffer->ReadyEvent().OnReady([request, memory](const hlo::Error* failure) {
    try {
      std::optional<wire::Region> region;
      if (failure == nullptr) {
        const pjrt::Buffer::ExternalReference reference(*request.buffer);
        region = memory->Find(reference.data(), request.bytes);
      }
      if (!region) return StartRead(request);
      request.outbox->Answer(request.reply, [&](wire::Reply& reply) {
        reply.mutable_contents()->set_bytes(request.bytes);
        *reply.mutable_contents()->mutable_located() = *region;
      });
    } catch (const hlo::Error& error) {
      Send(request, nullptr, {0, 0, true}, &error);
    } catch (const std::exception&) {
      request.outbox->Fail();
    }
  });
}

}  // namespace remote
