// What recording takes, operation by operation: the metric LazyTracing.
#pragma once

#include <atomic>

#include "lazy/metrics.h"
#include "process/clock.h"

namespace lazy {

// Two looks at the clock and a sample are a part of what recording a small operation takes. So they
// are taken from the moment on at which the program first looks at metrics, or clears them.
inline std::atomic<bool> recording_is_timed{false};
inline void TimeRecording() { recording_is_timed.store(true, std::memory_order_relaxed); }

// While one lives its thread records.
class RecordingTime {
 public:
  RecordingTime() {
    if (recording_is_timed.load(std::memory_order_relaxed)) start_ns_ = process::NowNanoseconds();
  }
  ~RecordingTime() {
    if (start_ns_ != 0) Add();
  }
  RecordingTime(const RecordingTime&) = delete;

 private:
  void Add() const {
    static Metric* time = Metric::Get("LazyTracing");
    time->AddSample(static_cast<double>(process::NowNanoseconds() - start_ns_));
  }

  int64_t start_ns_ = 0;  // 0: it is not timed
};

}  // namespace lazy
