// Counters and metrics, under the names that torch_xla's users know, and their report.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "process/fork.h"

namespace lazy {

// The counter of that name, made on first use; the address is good for the life of the process.
// Adding to it is one relaxed atomic.
std::atomic<int64_t>* Counter(std::string_view name);
inline void Count(std::atomic<int64_t>* counter, int64_t n = 1) {
  counter->fetch_add(n, std::memory_order_relaxed);
}

enum class MetricUnit { kNumber, kNanoseconds, kBytes };

// A series of samples: totals, and the latest 1024 (XLA_METRICS_SAMPLES) with their times.
class Metric {
 public:
  explicit Metric(MetricUnit unit) : unit_(unit) {}
  // Of that name, made on first use.
  static Metric* Get(std::string_view name, MetricUnit unit = MetricUnit::kNanoseconds);

  void AddSample(double value);
  struct Data {
    MetricUnit unit;
    int64_t total_samples;
    double accumulator;
    std::vector<std::pair<double, double>>
        samples;  // (seconds since the epoch, value), oldest first
  };
  Data data() const;
  void Clear();

 private:
  mutable process::Mutex mutex_;
  MetricUnit unit_;
  int64_t total_samples_ = 0;
  double accumulator_ = 0;
  std::vector<std::pair<double, double>>
      samples_;  // a ring of which `total_samples_` tells the start
};

// Adds the time from its construction to its destruction.
class TimedSection {
 public:
  explicit TimedSection(Metric* metric);
  ~TimedSection();
  TimedSection(const TimedSection&) = delete;

 private:
  Metric* metric_;
  int64_t start_ns_;
};

// Names of those that have counted something, sorted.
std::vector<std::string> CounterNames();
std::vector<std::string> MetricNames();
// False when nothing of that name has counted.
bool CounterValue(const std::string& name, int64_t* value);
bool MetricData(const std::string& name, Metric::Data* data);
void ClearCounters();
void ClearMetrics();

// The text of torch_xla.debug.metrics.metrics_report(): metrics, then counters, sorted by name.
// With names given, only those; a counter name ending in "*" stands for all that begin so.
std::string MetricsReport();
std::string MetricsReport(const std::vector<std::string>& counter_names,
                          const std::vector<std::string>& metric_names);

// "01s002ms003.456us", "12.00KB", "3.00".
std::string FormatMetric(MetricUnit unit, double value);

}  // namespace lazy
