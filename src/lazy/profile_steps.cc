#include "lazy/profile_planes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace lazy {
namespace {

struct HostStep {
  int64_t number = 0, start_ns = 0, end_ns = 0;
};

std::optional<int64_t> Argument(const SpanRecord& span, const char* name) {
  for (const auto& [key, value] : span.arguments) {
    if (key != name) continue;
    if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  }
  return {};
}

// In the order of their starts.
std::vector<HostStep> StepsOf(const std::vector<SpanLine>& host) {
  std::vector<HostStep> steps;
  for (const SpanLine& line : host) {
    for (const SpanRecord& span : line.spans) {
      if (auto number = Argument(span, "step_num")) {
        steps.push_back({*number, span.start_ns, span.end_ns});
      }
    }
  }
  std::sort(steps.begin(), steps.end(),
            [](const HostStep& a, const HostStep& b) { return a.start_ns < b.start_ns; });
  return steps;
}

// Which step launched a run, by the run's number.
std::map<int64_t, size_t> StepOfRun(const std::vector<SpanLine>& host,
                                    const std::vector<HostStep>& steps) {
  std::map<int64_t, size_t> step_of_run;
  for (const SpanLine& line : host) {
    for (const SpanRecord& span : line.spans) {
      auto run = Argument(span, "run_id");
      if (!run) continue;
      auto after =
          std::upper_bound(steps.begin(), steps.end(), span.start_ns,
                           [](int64_t time, const HostStep& step) { return time < step.start_ns; });
      if (after == steps.begin()) continue;
      const auto step = after - 1;
      if (span.start_ns < step->end_ns) step_of_run[*run] = step - steps.begin();
    }
  }
  return step_of_run;
}

const std::string* StatName(const pjrt::XPlane& plane, const pjrt::XStat& stat) {
  auto found = plane.stat_names.find(stat.metadata_id);
  return found == plane.stat_names.end() ? nullptr : &found->second;
}

int64_t StatNumber(pjrt::XPlane& plane, const std::string& name) {
  int64_t last = 0;
  for (const auto& [number, known] : plane.stat_names) {
    if (known == name) return number;
    last = std::max(last, number);
  }
  plane.stat_names[last + 1] = name;
  return last + 1;
}

std::optional<int64_t> RunOf(const pjrt::XPlane& plane, const pjrt::XEvent& event) {
  for (const pjrt::XStat& stat : event.stats) {
    const std::string* name = StatName(plane, stat);
    if (name == nullptr || *name != "run_id") continue;
    if (const auto* number = std::get_if<uint64_t>(&stat.value)) return *number;
  }
  return {};
}

bool IsOfEngine(const pjrt::XPlane& plane) {
  for (const pjrt::XStat& stat : plane.stats) {
    const std::string* name = StatName(plane, stat);
    if (name == nullptr || *name != "device_type_string") continue;
    if (const auto* type = std::get_if<std::string>(&stat.value)) return *type == "CPU";
  }
  return false;
}

pjrt::XLine* FindLine(pjrt::XPlane& plane, const char* name) {
  for (pjrt::XLine& line : plane.lines) {
    if (line.name == name) return &line;
  }
  return nullptr;
}

struct DeviceStep {
  int64_t number = 0, start_ps = 0, end_ps = 0;
};

// From each step's first program to the next step's first.
std::vector<DeviceStep> DeviceSteps(const pjrt::XPlane& plane, const pjrt::XLine& modules,
                                    const std::vector<HostStep>& steps,
                                    const std::map<int64_t, size_t>& step_of_run) {
  std::map<size_t, DeviceStep> by_step;
  for (const pjrt::XEvent& event : modules.events) {
    auto run = RunOf(plane, event);
    if (!run) continue;
    auto found = step_of_run.find(*run);
    if (found == step_of_run.end()) continue;
    auto [step, is_new] = by_step.try_emplace(
        found->second, DeviceStep{steps[found->second].number, event.offset_ps});
    step->second.end_ps = event.offset_ps + event.duration_ps;
  }
  std::vector<DeviceStep> result;
  for (const auto& [index, step] : by_step) {
    if (!result.empty()) result.back().end_ps = step.start_ps;
    result.push_back(step);
  }
  return result;
}

void MarkSteps(pjrt::XPlane& plane, const std::vector<HostStep>& steps,
               const std::map<int64_t, size_t>& step_of_run) {
  pjrt::XLine* line = FindLine(plane, "Steps");
  pjrt::XLine* modules = FindLine(plane, "XLA Modules");
  if (line == nullptr || modules == nullptr) return;
  std::vector<DeviceStep> marked = DeviceSteps(plane, *modules, steps, step_of_run);
  if (marked.empty()) return;
  int64_t last = 0;
  for (const auto& metadata : plane.event_metadata) last = std::max(last, metadata.id);
  const int64_t group = StatNumber(plane, "group_id"), name = StatNumber(plane, "step_name");
  line->events.clear();
  for (const DeviceStep& step : marked) {
    const std::string number = std::to_string(step.number);
    plane.event_metadata.push_back({++last, number, "", "", {}});
    line->events.push_back(
        {last, step.start_ps, step.end_ps - step.start_ps, {{group, step.number}, {name, number}}});
  }
}

}  // namespace

void MarkSteps(const std::vector<SpanLine>& host, pjrt::XSpace& space) {
  const std::vector<HostStep> steps = StepsOf(host);
  if (steps.empty()) return;
  const std::map<int64_t, size_t> step_of_run = StepOfRun(host, steps);
  for (pjrt::XPlane& plane : space.planes) {
    if (IsOfEngine(plane)) MarkSteps(plane, steps, step_of_run);
  }
}

}  // namespace lazy
