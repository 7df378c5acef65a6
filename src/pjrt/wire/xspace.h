// The trace of a profiler: xplane.proto of XLA's profilers, which the profiler extension of PJRT
// plugins returns and which TensorBoard reads. A space holds planes (the host's threads; one plane
// per device), a plane lines (a thread; a device's programs, its operations), a line events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace pjrt {

// A value of a stat that names an entry of the plane's stat_metadata, whose name is the value.
struct XReference {
  uint64_t metadata_id = 0;
  bool operator==(const XReference&) const = default;
};
struct XBytes {
  std::string bytes;
  bool operator==(const XBytes&) const = default;
};
using XValue = std::variant<int64_t, uint64_t, double, std::string, XBytes, XReference>;

struct XStat {
  int64_t metadata_id = 0;
  XValue value;
};

struct XEvent {
  int64_t metadata_id = 0;
  int64_t offset_ps = 0;  // from the line's timestamp_ns
  int64_t duration_ps = 0;
  std::vector<XStat> stats;
};

struct XLine {
  int64_t id = 0;
  std::string name;
  int64_t timestamp_ns = 0;  // since the epoch
  std::vector<XEvent> events;
};

// What all events of one name have in common.
struct XEventMetadata {
  int64_t id = 0;
  std::string name, display_name, metadata;
  std::vector<XStat> stats;
};

struct XPlane {
  int64_t id = 0;
  std::string name;
  std::vector<XLine> lines;
  std::vector<XEventMetadata> event_metadata;
  std::unordered_map<int64_t, std::string> stat_names;
  std::vector<XStat> stats;
};

struct XSpace {
  std::vector<XPlane> planes;
  std::vector<std::string> errors, warnings, hostnames;
};

// Concatenated, the bytes of several spaces are their union.
std::string Serialize(const XSpace& space);
// Throws hlo::Error for bytes that are no XSpace.
XSpace ParseXSpace(std::string_view bytes);

// Fills a plane, giving numbers to names.
class XPlaneBuilder {
 public:
  explicit XPlaneBuilder(std::string name) { plane_.name = std::move(name); }

  // The number of the events of that name.
  int64_t EventNumber(const std::string& name);
  XEventMetadata& event_metadata(int64_t number) { return plane_.event_metadata[number - 1]; }
  XStat Stat(const std::string& name, XValue value);
  // A stat whose text is kept once for all events of the plane.
  XStat SharedText(const std::string& name, const std::string& text);

  XPlane& plane() { return plane_; }

 private:
  int64_t StatNumber(const std::string& name);

  XPlane plane_;
  std::unordered_map<std::string, int64_t> event_numbers_, stat_numbers_;
};

}  // namespace pjrt
