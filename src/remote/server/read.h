// Sending a buffer's contents to the client.
#pragma once

#include <memory>

#include "pjrt/client/buffer.h"
#include "remote/server/outbox.h"
#include "remote/server/shared_memory.h"

namespace remote {

struct ReadRequest {
  std::shared_ptr<pjrt::Buffer> buffer;
  std::shared_ptr<Outbox> outbox;
  uint64_t reply = 0;
  bool raw = false;  // bytes as they lie on the device, from `offset`; else all, row-major
  uint64_t offset = 0, bytes = 0;
  std::shared_ptr<char> shared;    // where the client wants them; null: in the replies
  std::shared_ptr<void> underway;  // kept until all is said
};

// Returns at once. The contents follow when they are there; of large ones one piece after another,
// so that the client takes one up while the next is copied. Throws what the plugin says at once.
void StartRead(ReadRequest request);

// The same, but only says where the contents lie if that is in `memory`. Nobody must consume the
// buffer meanwhile.
void StartLocatedRead(ReadRequest request, std::shared_ptr<const SharedMemory> memory);

}  // namespace remote
