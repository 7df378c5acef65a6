#include "lazy/profile_planes.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

namespace lazy {
namespace {

constexpr char kName[] = "/host:CPU";

pjrt::XValue ToXValue(SpanValue value) {
  return std::visit([](auto&& v) { return pjrt::XValue(std::move(v)); }, std::move(value));
}

pjrt::XLine LineOf(SpanLine from, int64_t start_ns, pjrt::XPlaneBuilder& builder) {
  pjrt::XLine line{from.id, std::move(from.name), start_ns, {}};
  for (SpanRecord& span : from.spans) {
    pjrt::XEvent event;
    event.metadata_id = builder.EventNumber(span.name);
    event.offset_ps = (span.start_ns - start_ns) * 1000;
    event.duration_ps = (span.end_ns - span.start_ns) * 1000;
    for (auto& [name, value] : span.arguments) {
      event.stats.push_back(builder.Stat(name, ToXValue(std::move(value))));
    }
    line.events.push_back(std::move(event));
  }
  return line;
}

// Moves a plane's lines into another, which numbers names otherwise.
class Merger {
 public:
  Merger(const pjrt::XPlane& from, pjrt::XPlaneBuilder& to) : from_(from), to_(to) {
    for (const pjrt::XEventMetadata& metadata : from.event_metadata) {
      kinds_[metadata.id] = &metadata;
    }
  }

  void Merge() {
    for (const pjrt::XLine& line : from_.lines) {
      pjrt::XLine& target = LineFor(line);
      for (pjrt::XEvent event : line.events) {
        event.offset_ps += (line.timestamp_ns - target.timestamp_ns) * 1000;
        Renumber(event);
        target.events.push_back(std::move(event));
      }
    }
  }

 private:
  pjrt::XLine& LineFor(const pjrt::XLine& line) {
    std::vector<pjrt::XLine>& lines = to_.plane().lines;
    auto found = std::find_if(lines.begin(), lines.end(),
                              [&](const pjrt::XLine& other) { return other.id == line.id; });
    if (found != lines.end()) return *found;
    lines.push_back({line.id, line.name, line.timestamp_ns, {}});
    return lines.back();
  }

  void Renumber(pjrt::XEvent& event) {
    std::vector<pjrt::XStat> stats = std::exchange(event.stats, {});
    auto kind = kinds_.find(event.metadata_id);
    event.metadata_id = to_.EventNumber(kind == kinds_.end() ? "" : kind->second->name);
    if (kind != kinds_.end()) Add(kind->second->stats, event);
    Add(stats, event);
  }

  void Add(const std::vector<pjrt::XStat>& stats, pjrt::XEvent& event) {
    for (const pjrt::XStat& stat : stats) {
      const std::string& name = NameOf(stat.metadata_id);
      const auto* reference = std::get_if<pjrt::XReference>(&stat.value);
      event.stats.push_back(
          reference == nullptr
              ? to_.Stat(name, stat.value)
              : to_.SharedText(name, NameOf(static_cast<int64_t>(reference->metadata_id))));
    }
  }

  const std::string& NameOf(int64_t number) const {
    static const std::string none;
    auto found = from_.stat_names.find(number);
    return found == from_.stat_names.end() ? none : found->second;
  }

  const pjrt::XPlane& from_;
  pjrt::XPlaneBuilder& to_;
  std::unordered_map<int64_t, const pjrt::XEventMetadata*> kinds_;
};

}  // namespace

pjrt::XPlane HostPlane(RecordedSpans recorded, pjrt::XSpace& plugins) {
  pjrt::XPlaneBuilder builder(kName);
  for (SpanLine& line : recorded.lines) {
    builder.plane().lines.push_back(LineOf(std::move(line), recorded.start_ns, builder));
  }
  for (const pjrt::XPlane& plane : plugins.planes) {
    if (plane.name == kName) Merger(plane, builder).Merge();
  }
  std::erase_if(plugins.planes, [](const pjrt::XPlane& plane) { return plane.name == kName; });
  for (pjrt::XLine& line : builder.plane().lines) {
    // Outer events before those within them.
    std::stable_sort(line.events.begin(), line.events.end(), [](const auto& a, const auto& b) {
      return std::pair(a.offset_ps, -a.duration_ps) < std::pair(b.offset_ps, -b.duration_ps);
    });
  }
  return std::move(builder.plane());
}

}  // namespace lazy
