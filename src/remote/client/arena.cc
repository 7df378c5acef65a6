#include "remote/client/arena.h"

#include <algorithm>

#include "hlo/size_arithmetic.h"

namespace remote {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kLeastPart = size_t{64} << 20;
constexpr size_t kKeptBytes = size_t{1} << 30;  // of parts that nobody uses

const char* Located(const Segment* segment, size_t offset, size_t bytes) {
  if (segment == nullptr || !segment->Holds(offset, bytes)) {
    throw hlo::Error(hlo::ErrorCode::kInternal, "the server names memory that it does not share");
  }
  return segment->data() + offset;
}

}  // namespace

Arena::Arena(std::shared_ptr<Connection> connection, bool local)
    : connection_(std::move(connection)), usable_(local) {}

std::optional<Arena::Block> Arena::Take(size_t bytes) {
  const size_t rounded = hlo::RoundUp(bytes, kPage);
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
  const std::optional<size_t> offset = part.free.Take(bytes);
  if (!offset) return {};
  Block block;
  block.region.set_segment(number);
  block.region.set_offset(*offset);
  block.data = part.segment->data() + *offset;
  block.segment = part.segment;
  return block;
}

bool Arena::AddPart(size_t bytes) {
  wire::CreateSegment call;
  call.set_segment(connection_->NewNumbers());
  call.set_bytes(std::max(hlo::RoundUp(bytes, kPage), kLeastPart));
  Part part;
  try {
    part.segment = Create(call);
  } catch (const hlo::Error& error) {
    if (error.code() == hlo::ErrorCode::kUnavailable) throw;
    return false;  // as much as the server gives is in use
  }
  if (part.segment == nullptr) return false;
  part.free.Give(Segment::kHeader, part.segment->bytes() - Segment::kHeader);
  std::lock_guard lock(mutex_);
  bytes_ += part.segment->bytes();
  parts_[call.segment()] = std::move(part);
  return true;
}

std::shared_ptr<Segment> Arena::Create(const wire::CreateSegment& call) {
  wire::Request request;
  *request.mutable_create_segment() = call;
  const wire::Reply reply = connection_->Ask(std::move(request));
  const wire::Segment& answer = reply.segment();
  std::shared_ptr<Segment> segment =
      Segment::Open(answer.process(), answer.descriptor(), answer.nonce(), !call.for_results());
  if (segment != nullptr) return segment;
  usable_ = false;
  wire::Request release;
  release.mutable_release_segment()->set_segment(call.segment());
  connection_->Post(std::move(release));
  return nullptr;
}

void Arena::ShareResults() {
  wire::CreateSegment call;
  call.set_segment(connection_->NewNumbers());
  call.set_for_results(true);
  try {
    results_ = Create(call);
    results_number_ = call.segment();
  } catch (const hlo::Error& error) {  // then they are copied
    if (error.code() == hlo::ErrorCode::kUnavailable) throw;
  }
}

std::shared_ptr<const char> Arena::At(const wire::Region& region) {
  std::shared_ptr<Segment> segment = results_;
  if (region.segment() != results_number_) {
    std::lock_guard lock(mutex_);
    auto found = parts_.find(region.segment());
    segment = found != parts_.end() ? found->second.segment : nullptr;
  }
  return std::shared_ptr<const char>(segment,
                                     Located(segment.get(), region.offset(), region.bytes()));
}

const char* Arena::ResultAt(size_t offset, size_t bytes) const {
  return Located(results_.get(), offset, bytes);
}

void Arena::Give(const Block& block) noexcept try {
  std::lock_guard lock(mutex_);
  auto found = parts_.find(block.region.segment());
  if (found == parts_.end()) return;
  Part& part = found->second;
  part.free.Give(block.region.offset(), hlo::RoundUp(block.region.bytes(), kPage));
  const size_t bytes = part.segment->bytes();
  if (part.free.bytes() + Segment::kHeader < bytes || bytes_ <= kKeptBytes) return;
  const auto release = Make<wire::Request>([number = found->first](wire::Request& request) {
    request.mutable_release_segment()->set_segment(number);
  });
  bytes_ -= bytes;
  parts_.erase(found);
  connection_->Post(std::move(*release));
} catch (const std::exception&) {  // the server is gone, or keeps it until the session ends
}

}  // namespace remote
