#include "remote/server/shared_memory.h"

namespace remote {

bool SharedMemory::Has(uint64_t number) const {
  std::lock_guard lock(mutex_);
  return segments_.contains(number) || (results_ != nullptr && results_number_ == number);
}

std::shared_ptr<Segment> SharedMemory::Add(uint64_t number, size_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes > kMostSegmentBytes || bytes_ + bytes > kMostSegmentBytes) {
    throw hlo::Error(hlo::ErrorCode::kResourceExhausted,
                     "a session shares at most " + std::to_string(kMostSegmentBytes) + " bytes");
  }
  if (segments_.size() >= kMostSegments) {
    throw hlo::Error(hlo::ErrorCode::kResourceExhausted,
                     "a session shares at most " + std::to_string(kMostSegments) + " segments");
  }
  auto segment = Segment::Create(Segment::kHeader + bytes);
  segments_[number] = segment;
  bytes_ += segment->bytes();
  return segment;
}

std::shared_ptr<Segment> SharedMemory::AddResults(uint64_t number) {
  std::lock_guard lock(mutex_);
  if (results_ != nullptr) {
    throw hlo::Error(hlo::ErrorCode::kAlreadyExists, "a session has memory for results once");
  }
  results_ = ResultMemory::Create();
  results_number_ = number;
  return results_->segment();
}

void SharedMemory::Release(uint64_t number) {
  std::lock_guard lock(mutex_);
  auto found = segments_.find(number);
  if (found == segments_.end()) return;
  bytes_ -= found->second->bytes();
  segments_.erase(found);
}

std::shared_ptr<ResultMemory> SharedMemory::results() const {
  std::lock_guard lock(mutex_);
  return results_;
}

std::shared_ptr<char> SharedMemory::At(const wire::Region& region, size_t bytes) const {
  std::lock_guard lock(mutex_);
  auto found = segments_.find(region.segment());
  if (found == segments_.end()) {
    throw hlo::Error("there is no segment " + std::to_string(region.segment()));
  }
  const std::shared_ptr<Segment>& segment = found->second;
  if (region.bytes() != bytes || !segment->Holds(region.offset(), bytes)) {
    throw hlo::Error(hlo::ErrorCode::kOutOfRange,
                     std::to_string(bytes) + " bytes at " + std::to_string(region.offset()) +
                         " are not within a segment of " + std::to_string(segment->bytes()));
  }
  return std::shared_ptr<char>(segment, segment->data() + region.offset());
}

std::optional<wire::Region> SharedMemory::Find(const void* data, size_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  auto within = [&](uint64_t number, const Segment& segment) -> std::optional<wire::Region> {
    const auto begin = reinterpret_cast<uintptr_t>(segment.data());
    if (address < begin || !segment.Holds(address - begin, bytes)) return {};
    wire::Region region;
    region.set_segment(number);
    region.set_offset(address - begin);
    region.set_bytes(bytes);
    return region;
  };
  std::lock_guard lock(mutex_);
  if (results_ != nullptr) {
    if (auto region = within(results_number_, *results_->segment())) return region;
  }
  for (const auto& [number, segment] : segments_) {
    if (auto region = within(number, *segment)) return region;
  }
  return {};
}

}  // namespace remote
