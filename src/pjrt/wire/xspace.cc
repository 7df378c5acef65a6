#include "pjrt/wire/xspace.h"

#include "hlo/error.h"
#include "pjrt/wire/proto.h"

namespace pjrt {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

ProtoWriter Write(const XStat& stat) {
  ProtoWriter out;
  out.Varint(1, stat.metadata_id);
  std::visit(Overloaded{
                 [&](double value) { out.Double(2, value); },
                 [&](uint64_t value) { out.Varint(3, static_cast<int64_t>(value)); },
                 [&](int64_t value) { out.Varint(4, value); },
                 [&](const std::string& value) { out.Bytes(5, value); },
                 [&](const XBytes& value) { out.Bytes(6, value.bytes); },
                 [&](XReference value) { out.Varint(7, static_cast<int64_t>(value.metadata_id)); },
             },
             stat.value);
  return out;
}

void Write(int field, const std::vector<XStat>& stats, ProtoWriter& out) {
  for (const XStat& stat : stats) out.Message(field, Write(stat));
}

ProtoWriter Write(const XEvent& event) {
  ProtoWriter out;
  out.Varint(1, event.metadata_id);
  out.Varint(2, event.offset_ps);
  out.Varint(3, event.duration_ps);
  Write(4, event.stats, out);
  return out;
}

ProtoWriter Write(const XLine& line) {
  ProtoWriter out;
  out.Varint(1, line.id);
  out.Bytes(2, line.name);
  out.Varint(3, line.timestamp_ns);
  for (const XEvent& event : line.events) out.Message(4, Write(event));
  return out;
}

ProtoWriter Write(const XEventMetadata& metadata) {
  ProtoWriter out;
  out.Varint(1, metadata.id);
  out.Bytes(2, metadata.name);
  if (!metadata.metadata.empty()) out.Bytes(3, metadata.metadata);
  if (!metadata.display_name.empty()) out.Bytes(4, metadata.display_name);
  Write(5, metadata.stats, out);
  return out;
}

// An entry of a map from numbers to messages.
ProtoWriter Entry(int64_t key, const ProtoWriter& value) {
  ProtoWriter out;
  out.Varint(1, key);
  out.Message(2, value);
  return out;
}

ProtoWriter Write(const XPlane& plane) {
  ProtoWriter out;
  out.Varint(1, plane.id);
  out.Bytes(2, plane.name);
  for (const XLine& line : plane.lines) out.Message(3, Write(line));
  for (const XEventMetadata& metadata : plane.event_metadata) {
    out.Message(4, Entry(metadata.id, Write(metadata)));
  }
  for (const auto& [number, name] : plane.stat_names) {
    ProtoWriter metadata;
    metadata.Varint(1, number);
    metadata.Bytes(2, name);
    out.Message(5, Entry(number, metadata));
  }
  Write(6, plane.stats, out);
  return out;
}

XStat ReadStat(ProtoReader in) {
  XStat stat;
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        stat.metadata_id = in.value();
        break;
      case 2:
        stat.value = in.real();
        break;
      case 3:
        stat.value = static_cast<uint64_t>(in.value());
        break;
      case 4:
        stat.value = in.value();
        break;
      case 5:
        stat.value = std::string(in.bytes());
        break;
      case 6:
        stat.value = XBytes{std::string(in.bytes())};
        break;
      case 7:
        stat.value = XReference{static_cast<uint64_t>(in.value())};
        break;
      default:
        break;
    }
  }
  return stat;
}

XEvent ReadEvent(ProtoReader in) {
  XEvent event;
  while (in.Next()) {
    if (in.field() == 1) event.metadata_id = in.value();
    if (in.field() == 2) event.offset_ps = in.value();
    if (in.field() == 3) event.duration_ps = in.value();
    if (in.field() == 4) event.stats.push_back(ReadStat(in.message()));
  }
  return event;
}

XLine ReadLine(ProtoReader in) {
  XLine line;
  std::string display_name;
  while (in.Next()) {
    if (in.field() == 1) line.id = in.value();
    if (in.field() == 2) line.name = in.bytes();
    if (in.field() == 3) line.timestamp_ns = in.value();
    if (in.field() == 4) line.events.push_back(ReadEvent(in.message()));
    if (in.field() == 11) display_name = in.bytes();
  }
  if (line.name.empty()) line.name = display_name;
  return line;
}

XEventMetadata ReadEventMetadata(ProtoReader in) {
  XEventMetadata metadata;
  while (in.Next()) {
    if (in.field() == 1) metadata.id = in.value();
    if (in.field() == 2) metadata.name = in.bytes();
    if (in.field() == 3) metadata.metadata = in.bytes();
    if (in.field() == 4) metadata.display_name = in.bytes();
    if (in.field() == 5) metadata.stats.push_back(ReadStat(in.message()));
  }
  return metadata;
}

XEventMetadata ReadEventMetadataEntry(ProtoReader in) {
  XEventMetadata metadata;
  int64_t key = 0;
  while (in.Next()) {
    if (in.field() == 1) key = in.value();
    if (in.field() == 2) metadata = ReadEventMetadata(in.message());
  }
  metadata.id = key;
  return metadata;
}

void ReadStatName(ProtoReader entry, XPlane& plane) {
  int64_t key = 0;
  std::string name;
  while (entry.Next()) {
    if (entry.field() == 1) key = entry.value();
    if (entry.field() != 2) continue;
    for (ProtoReader metadata = entry.message(); metadata.Next();) {
      if (metadata.field() == 2) name = metadata.bytes();
    }
  }
  plane.stat_names[key] = std::move(name);
}

XPlane ReadPlane(ProtoReader in) {
  XPlane plane;
  while (in.Next()) {
    if (in.field() == 1) plane.id = in.value();
    if (in.field() == 2) plane.name = in.bytes();
    if (in.field() == 3) plane.lines.push_back(ReadLine(in.message()));
    if (in.field() == 4) plane.event_metadata.push_back(ReadEventMetadataEntry(in.message()));
    if (in.field() == 5) ReadStatName(in.message(), plane);
    if (in.field() == 6) plane.stats.push_back(ReadStat(in.message()));
  }
  return plane;
}

}  // namespace

std::string Serialize(const XSpace& space) {
  ProtoWriter out;
  for (const XPlane& plane : space.planes) out.Message(1, Write(plane));
  for (const std::string& error : space.errors) out.Bytes(2, error);
  for (const std::string& warning : space.warnings) out.Bytes(3, warning);
  for (const std::string& hostname : space.hostnames) out.Bytes(4, hostname);
  return out.bytes();
}

namespace {

XSpace ReadSpace(std::string_view bytes) {
  XSpace space;
  for (ProtoReader in(bytes, "trace (XSpace)"); in.Next();) {
    if (in.field() == 1) space.planes.push_back(ReadPlane(in.message()));
    if (in.field() == 2) space.errors.emplace_back(in.bytes());
    if (in.field() == 3) space.warnings.emplace_back(in.bytes());
    if (in.field() == 4) space.hostnames.emplace_back(in.bytes());
  }
  return space;
}

}  // namespace

XSpace ParseXSpace(std::string_view bytes) {
  try {
    return ReadSpace(bytes);
  } catch (const hlo::Error&) {
    // XLA's profilers count the zero that ends their bytes, as it would end a string.
    if (!bytes.ends_with('\0')) throw;
    return ReadSpace(bytes.substr(0, bytes.size() - 1));
  }
}

int64_t XPlaneBuilder::EventNumber(const std::string& name) {
  auto [found, is_new] = event_numbers_.try_emplace(name, event_numbers_.size() + 1);
  if (is_new) {
    XEventMetadata& metadata = plane_.event_metadata.emplace_back();
    metadata.id = found->second;
    metadata.name = name;
  }
  return found->second;
}

int64_t XPlaneBuilder::StatNumber(const std::string& name) {
  auto [found, is_new] = stat_numbers_.try_emplace(name, stat_numbers_.size() + 1);
  if (is_new) plane_.stat_names[found->second] = name;
  return found->second;
}

XStat XPlaneBuilder::Stat(const std::string& name, XValue value) {
  return {StatNumber(name), std::move(value)};
}

XStat XPlaneBuilder::SharedText(const std::string& name, const std::string& text) {
  return {StatNumber(name), XReference{static_cast<uint64_t>(StatNumber(text))}};
}

}  // namespace pjrt
