#include "lazy/metrics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>

#include "process/clock.h"
#include "process/fork.h"

namespace lazy {
namespace {

// Never destroyed: counters are used until the process is gone.
struct MetricRegistry {
  process::Mutex mutex;
  std::map<std::string, std::unique_ptr<std::atomic<int64_t>>, std::less<>> counters;
  std::map<std::string, std::unique_ptr<Metric>, std::less<>> metrics;
  static MetricRegistry& Get() {
    static MetricRegistry* registry = new MetricRegistry;
    return *registry;
  }
};

size_t SampleLimit() {
  static const size_t limit = [] {
    const char* text = std::getenv("XLA_METRICS_SAMPLES");
    long value = text != nullptr ? std::atol(text) : 1024;
    return static_cast<size_t>(value > 0 ? value : 1024);
  }();
  return limit;
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<double> Percentiles() {
  std::vector<double> out;
  const char* text = std::getenv("XLA_METRICS_PERCENTILES");
  std::stringstream stream(text != nullptr ? text : "0.01:0.05:0.1:0.2:0.5:0.8:0.9:0.95:0.99");
  for (std::string part; std::getline(stream, part, ':');) out.push_back(std::atof(part.c_str()));
  return out;
}

std::string FormatTime(double nanoseconds) {
  struct Unit {
    const char* name;
    double size;
    int width;
  };
  static constexpr Unit kUnits[] = {
      {"d", 86400e9, 2}, {"h", 3600e9, 2}, {"m", 60e9, 2}, {"s", 1e9, 2}, {"ms", 1e6, 3}};
  std::string out;
  char part[64];
  double rest = nanoseconds;
  for (const Unit& unit : kUnits) {
    double count = std::floor(rest / unit.size);
    if (count <= 0 && out.empty()) continue;
    rest -= count * unit.size;
    std::snprintf(part, sizeof(part), "%0*.0f%s", unit.width, count, unit.name);
    out += part;
  }
  std::snprintf(part, sizeof(part), "%07.3fus", rest / 1e3);
  return out + part;
}

std::string FormatBytes(double value) {
  static constexpr const char* kSuffixes[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  size_t i = 0;
  for (; value >= 1024 && i + 1 < std::size(kSuffixes); ++i) value /= 1024;
  char out[64];
  std::snprintf(out, sizeof(out), "%.2f%s", value, kSuffixes[i]);
  return out;
}

void AppendMetric(std::string& out, const std::string& name, const Metric::Data& data) {
  out += "Metric: " + name + "\n  TotalSamples: " + std::to_string(data.total_samples) +
         "\n  Accumulator: " + FormatMetric(data.unit, data.accumulator) + "\n";
  double elapsed = data.samples.back().first - data.samples.front().first;
  if (elapsed > 0) {
    double sum = 0;
    for (const auto& sample : data.samples) sum += sample.second;
    if (data.unit != MetricUnit::kNumber) {
      out += "  ValueRate: " + FormatMetric(data.unit, sum / elapsed) + " / second\n";
    }
    char rate[64];
    std::snprintf(rate, sizeof(rate), "  Rate: %g / second\n", data.samples.size() / elapsed);
    out += rate;
  }
  std::vector<double> values;
  for (const auto& sample : data.samples) values.push_back(sample.second);
  std::sort(values.begin(), values.end());
  out += "  Percentiles: ";
  bool first = true;
  for (double percentile : Percentiles()) {
    size_t index = std::min(values.size() - 1, static_cast<size_t>(percentile * values.size()));
    char label[32];
    std::snprintf(label, sizeof(label), "%s%g%%=", first ? "" : "; ", percentile * 100);
    out += label + FormatMetric(data.unit, values[index]);
    first = false;
  }
  out += "\n";
}

bool Matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    if (!pattern.empty() && pattern.back() == '*') {
      return name.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0;
    }
    return name == pattern;
  });
}

}  // namespace

std::atomic<int64_t>* Counter(std::string_view name) {
  MetricRegistry& registry = MetricRegistry::Get();
  std::lock_guard lock(registry.mutex);
  auto it = registry.counters.find(name);
  if (it == registry.counters.end()) {
    it = registry.counters.emplace(std::string(name), std::make_unique<std::atomic<int64_t>>(0))
             .first;
  }
  return it->second.get();
}

Metric* Metric::Get(std::string_view name, MetricUnit unit) {
  MetricRegistry& registry = MetricRegistry::Get();
  std::lock_guard lock(registry.mutex);
  auto it = registry.metrics.find(name);
  if (it == registry.metrics.end()) {
    it = registry.metrics.emplace(std::string(name), std::make_unique<Metric>(unit)).first;
  }
  return it->second.get();
}

void Metric::AddSample(double value) {
  std::lock_guard lock(mutex_);
  std::pair<double, double> sample(WallSeconds(), value);
  if (samples_.size() < SampleLimit()) {
    samples_.push_back(sample);
  } else {
    samples_[total_samples_ % samples_.size()] = sample;
  }
  ++total_samples_;
  accumulator_ += value;
}

Metric::Data Metric::data() const {
  std::lock_guard lock(mutex_);
  Data data{unit_, total_samples_, accumulator_, {}};
  size_t n = samples_.size();
  size_t start = static_cast<size_t>(total_samples_) > n ? total_samples_ % n : 0;
  for (size_t i = 0; i < n; ++i) data.samples.push_back(samples_[(start + i) % n]);
  return data;
}

void Metric::Clear() {
  std::lock_guard lock(mutex_);
  total_samples_ = 0;
  accumulator_ = 0;
  samples_.clear();
}

TimedSection::TimedSection(Metric* metric)
    : metric_(metric), start_ns_(process::NowNanoseconds()) {}
TimedSection::~TimedSection() {
  metric_->AddSample(static_cast<double>(process::NowNanoseconds() - start_ns_));
}

std::vector<std::string> CounterNames() {
  MetricRegistry& registry = MetricRegistry::Get();
  std::lock_guard lock(registry.mutex);
  std::vector<std::string> names;
  for (const auto& [name, counter] : registry.counters) {
    if (counter->load(std::memory_order_relaxed) != 0) names.push_back(name);
  }
  return names;
}

std::vector<std::string> MetricNames() {
  MetricRegistry& registry = MetricRegistry::Get();
  std::lock_guard lock(registry.mutex);
  std::vector<std::string> names;
  for (const auto& [name, metric] : registry.metrics) {
    if (metric->data().total_samples != 0) names.push_back(name);
  }
  return names;
}

bool CounterValue(const std::string& name, int64_t* value) {
  MetricRegistry& registry = MetricRegistry::Get();
  std::lock_guard lock(registry.mutex);
  auto it = registry.counters.find(name);
  if (it == registry.counters.end()) return false;
  *value = it->second->load(std::memory_order_relaxed);
  return *value != 0;
}

bool MetricData(const std::string& name, Metric::Data* data) {
  Metric* metric = nullptr;
  {
    MetricRegistry& registry = MetricRegistry::Get();
    std::lock_guard lock(registry.mutex);
    auto it = registry.metrics.find(name);
    if (it == registry.metrics.end()) return false;
    metric = it->second.get();
  }
  *data = metric->data();
  return data->total_samples != 0;
}

void ClearCounters() {
  MetricRegistry& registry = MetricRegistry::Get();
  std::lock_guard lock(registry.mutex);
  for (const auto& [name, counter] : registry.counters) counter->store(0);
}

void ClearMetrics() {
  MetricRegistry& registry = MetricRegistry::Get();
  std::lock_guard lock(registry.mutex);
  for (const auto& [name, metric] : registry.metrics) metric->Clear();
}

std::string MetricsReport() { return MetricsReport({"*"}, {"*"}); }

std::string MetricsReport(const std::vector<std::string>& counter_names,
                          const std::vector<std::string>& metric_names) {
  std::string out;
  for (const std::string& name : MetricNames()) {
    Metric::Data data;
    if (Matches(metric_names, name) && MetricData(name, &data)) AppendMetric(out, name, data);
  }
  for (const std::string& name : CounterNames()) {
    int64_t value = 0;
    if (Matches(counter_names, name) && CounterValue(name, &value)) {
      out += "Counter: " + name + "\n  Value: " + std::to_string(value) + "\n";
    }
  }
  return out;
}

std::string FormatMetric(MetricUnit unit, double value) {
  switch (unit) {
    case MetricUnit::kNanoseconds:
      return FormatTime(value);
    case MetricUnit::kBytes:
      return FormatBytes(value);
    case MetricUnit::kNumber:
      break;
  }
  char out[64];
  std::snprintf(out, sizeof(out), "%.2f", value);
  return out;
}

}  // namespace lazy
