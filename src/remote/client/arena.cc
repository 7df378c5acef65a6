#include "remote/client/arena.h"

#include <algorithm>

namespace remote {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kLeastPart = size_t{64} << 20;
constexpr size_t kKeptBytes = size_t{1} << 30;  // of parts that nobody uses

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Arena::Arena(std::shared_ptr<Connection> connection, bool local)
    : connection_(std::move(connection)), usable_(local) {}

std::optional<Arena::Block> Arena::Take(size_t bytes) {
  const size_t rounded = RoundUp(bytes, kPage);
  if (std::optional<Block> block = TakeFromParts(rounded, bytes)) return block;
  // Not under the lock: the reader, which brings the answer, gives blocks back.
  if (!usable_ || !AddPart(rounded)) return {};
  return TakeFromParts(rounded, bytes);
}

std::optional<Arena::Block> Arena::TakeFromParts(size_t rounded, size_t bytes) {
  std::lock_guard lock(mutex_);
  for (auto& [number, part] : parts_) {
    std::optional<Block> block = TakeFrom(number, part, rounded);
    if (!block) continue;
    block->region.set_bytes(bytes);
    return block;
  }
  return {};
}

std::optional<Arena::Block> Arena::TakeFrom(uint64_t number, Part& part, size_t bytes) {
  for (auto free = part.free.begin(); free != part.free.end(); ++free) {
    const auto [offset, available] = *free;
    if (available < bytes) continue;
    part.free.erase(free);
    if (available > bytes) part.free[offset + bytes] = available - bytes;
    Block block;
    block.region.set_segment(number);
    block.region.set_offset(offset);
    block.data = part.segment->data() + offset;
    block.segment = part.segment;
    return block;
  }
  return {};
}

bool Arena::AddPart(size_t bytes) {
  const size_t size = std::max(RoundUp(bytes, kPage), kLeastPart);
  const uint64_t number = connection_->NewNumbers();
  wire::Request request;
  request.mutable_create_segment()->set_segment(number);
  request.mutable_create_segment()->set_bytes(size);
  wire::Reply reply;
  try {
    reply = connection_->Ask(std::move(request));
  } catch (const hlo::Error& error) {
    if (error.code() == hlo::ErrorCode::kUnavailable) throw;
    return false;  // as much as the server gives is in use
  }
  Part part;
  const wire::Segment& answer = reply.segment();
  part.segment = Segment::Open(answer.process(), answer.descriptor(), answer.nonce());
  if (part.segment == nullptr) {
    usable_ = false;
    wire::Request release;
    release.mutable_release_segment()->set_segment(number);
    connection_->Post(std::move(release));
    return false;
  }
  part.free[Segment::kHeader] = part.segment->bytes() - Segment::kHeader;
  std::lock_guard lock(mutex_);
  bytes_ += part.segment->bytes();
  parts_[number] = std::move(part);
  return true;
}

void Arena::Give(const Block& block) noexcept {
  std::lock_guard lock(mutex_);
  auto found = parts_.find(block.region.segment());
  if (found == parts_.end()) return;
  Part& part = found->second;
  size_t offset = block.region.offset();
  size_t bytes = RoundUp(block.region.bytes(), kPage);
  auto next = part.free.lower_bound(offset);
  if (next != part.free.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = part.free.erase(next);
  }
  if (next != part.free.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      bytes += previous->second;
      part.free.erase(previous);
    }
  }
  part.free[offset] = bytes;
  if (bytes + Segment::kHeader < part.segment->bytes() || bytes_ <= kKeptBytes) return;
  bytes_ -= part.segment->bytes();
  wire::Request release;
  release.mutable_release_segment()->set_segment(found->first);
  parts_.erase(found);
  try {
    connection_->Post(std::move(release));
  } catch (const hlo::Error&) {  // the server is gone, and the memory with it
  }
}

}  // namespace remote
