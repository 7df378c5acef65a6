// Signs of life between the processes of a SharedSegment, from a thread that does not wait for the
// program: one that computes for minutes is told from one that is stopped.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/collective/shared_segment.h"

namespace cpu {

class SharedPulse {
 public:
  // All processes have joined `segment`, which must stay. `ranks` are theirs, for messages. Throws
  // hlo::Error if the system gives no thread.
  SharedPulse(SharedSegment& segment, std::vector<int64_t> ranks,
              std::chrono::milliseconds timeout);
  ~SharedPulse();
  SharedPulse(const SharedPulse&) = delete;

  std::chrono::milliseconds timeout() const;
  // True if the process has given no sign of life for the timeout.
  bool IsSilent(int64_t process) const;

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
  int64_t process_;
};

}  // namespace cpu
