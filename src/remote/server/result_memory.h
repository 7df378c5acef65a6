// Shared memory in which a session's executions put their results, so that its client reads them
// where they are. Only that session's arrays ever lie in it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "pjrt/c_api.h"
#include "process/free_list.h"
#include "remote/messages.h"
#include "remote/segment.h"

namespace remote {

// Thread-safe. What is taken keeps it alive.
class ResultMemory : public std::enable_shared_from_this<ResultMemory> {
 public:
  // Of the machine's size, of which only what is used takes memory. Throws
  // hlo::Error(kResourceExhausted).
  static std::shared_ptr<ResultMemory> Create();

  const std::shared_ptr<Segment>& segment() const { return segment_; }
  // Null for what is small enough to travel in a message, and when there is no more.
  void* Take(size_t bytes);
  void Give(void* data, size_t bytes);

 private:
  explicit ResultMemory(std::shared_ptr<Segment> segment);

  const std::shared_ptr<Segment> segment_;
  std::mutex mutex_;
  // Pages that were used before come first: fresh ones cost more than the copy.
  process::FreeList used_, fresh_;
  size_t taken_ = 0;                      // pieces
  std::shared_ptr<ResultMemory> itself_;  // while any is taken
};

// What one execution puts there. Kept until the execution is done.
class PlacedResults {
 public:
  PlacedResults(std::shared_ptr<ResultMemory> memory, size_t num_devices)
      : memory_(std::move(memory)), by_device_(num_devices) {}
  PlacedResults(const PlacedResults&) = delete;

  // For the execution.
  PJRT_ResultMemory_Extension Extension();
  // Says where they are, once the device is done.
  void MoveTo(size_t device, wire::Results* message);

 private:
  const std::shared_ptr<ResultMemory> memory_;
  std::vector<wire::Results> by_device_;
};

}  // namespace remote
