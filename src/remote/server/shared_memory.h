// The memory that a session shares with its client.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "remote/messages.h"
#include "remote/segment.h"
#include "remote/server/result_memory.h"

namespace remote {

// Of a session, used or not. A segment takes a descriptor, and all processes' mappings are few.
inline constexpr size_t kMostSegmentBytes = size_t{16} << 30;
inline constexpr size_t kMostSegments = 512;

// Thread-safe.
class SharedMemory {
 public:
  bool Has(uint64_t number) const;
  // Memory for the client's arrays. Throws hlo::Error(kResourceExhausted).
  std::shared_ptr<Segment> Add(uint64_t number, size_t bytes);
  // Memory for results. Throws the same.
  std::shared_ptr<Segment> AddResults(uint64_t number);
  void Release(uint64_t number);
  // Null before AddResults.
  std::shared_ptr<ResultMemory> results() const;

  // `bytes` of the client's; they live as long as the result. Throws for what is not there.
  std::shared_ptr<char> At(const wire::Region& region, size_t bytes) const;
  // Where the client finds them; nothing if they are not shared.
  std::optional<wire::Region> Find(const void* data, size_t bytes) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<Segment>> segments_;
  size_t bytes_ = 0;
  uint64_t results_number_ = 0;
  std::shared_ptr<ResultMemory> results_;
};

}  // namespace remote
