#include "lazy/metrics.h"

#include <pybind11/stl.h>

#include "lazy/recording_time.h"
#include "python/bindings.h"

namespace torch_xla {

namespace py = pybind11;

void BindMetrics(py::module_& m) {
  m.def("_xla_metrics_report", [] {
    lazy::TimeRecording();
    return lazy::MetricsReport();
  });
  m.def("_short_xla_metrics_report",
        [](const std::vector<std::string>& counters, const std::vector<std::string>& metrics) {
          return lazy::MetricsReport(counters, metrics);
        });
  m.def("_xla_counter_names", &lazy::CounterNames);
  m.def("_xla_counter_value", [](const std::string& name) -> std::optional<int64_t> {
    int64_t value = 0;
    if (!lazy::CounterValue(name, &value)) return std::nullopt;
    return value;
  });
  m.def("_xla_increment_counter",
        [](const std::string& name, int64_t n) { lazy::Count(lazy::Counter(name), n); });
  m.def("_xla_metric_names", &lazy::MetricNames);
  m.def("_xla_metric_data", [](const std::string& name) -> py::object {
    lazy::Metric::Data data;
    if (!lazy::MetricData(name, &data)) return py::none();
    return py::make_tuple(data.total_samples, data.accumulator, data.samples);
  });
  m.def("_clear_xla_counters", &lazy::ClearCounters);
  m.def("_clear_xla_metrics", [] {
    lazy::TimeRecording();
    lazy::ClearMetrics();
  });
}

}  // namespace torch_xla
