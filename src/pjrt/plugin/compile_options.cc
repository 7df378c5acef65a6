#include "pjrt/plugin/compile_options.h"

#include <bit>

#include "hlo/error.h"
#include "hlo/shape.h"

namespace pjrt::plugin {
namespace {

// Protobuf's wire format: each field is a varint key (number << 3 | wire type) and a value.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : rest_(bytes) {}

  // Moves to the next field; false at the end. `value()` or `bytes()` then hold it, by wire type.
  bool Next() {
    if (rest_.empty()) return false;
    const uint64_t key = Varint();
    field_ = static_cast<int>(key >> 3);
    wire_type_ = static_cast<int>(key & 7);
    switch (wire_type_) {
      case 0:
        value_ = Varint();
        return true;
      case 1:
        bytes_ = Take(8);
        return true;
      case 2:
        bytes_ = Take(Varint());
        return true;
      case 5:
        bytes_ = Take(4);
        return true;
      default:
        Malformed();
    }
  }
  int field() const { return field_; }
  bool is_varint() const { return wire_type_ == 0; }
  int64_t value() const { return static_cast<int64_t>(value_); }
  std::string_view bytes() const { return bytes_; }
  bool at_end() const { return rest_.empty(); }

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(Take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    Malformed();
  }

 private:
  std::string_view Take(uint64_t size) {
    if (size > rest_.size()) Malformed();
    std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  [[noreturn]] static void Malformed() {
    throw hlo::Error("the compile options are no valid CompileOptionsProto");
  }

  std::string_view rest_;
  int field_ = 0, wire_type_ = 0;
  uint64_t value_ = 0;
  std::string_view bytes_;
};

// A repeated integer, packed or not.
void AppendIntegers(const ProtoReader& field, std::vector<int64_t>& values) {
  if (field.is_varint()) {
    values.push_back(field.value());
    return;
  }
  ProtoReader packed(field.bytes());
  while (!packed.at_end()) values.push_back(static_cast<int64_t>(packed.Varint()));
}

// DeviceAssignmentProto lists replicas by partition ("computation").
std::vector<int64_t> ParseDeviceAssignment(std::string_view bytes) {
  std::vector<std::vector<int64_t>> by_partition;
  size_t replicas = 0;
  for (ProtoReader assignment(bytes); assignment.Next();) {
    if (assignment.field() != 3) continue;
    std::vector<int64_t>& ids = by_partition.emplace_back();
    for (ProtoReader computation(assignment.bytes()); computation.Next();) {
      if (computation.field() == 1) AppendIntegers(computation, ids);
    }
    if (by_partition.size() > 1 && ids.size() != replicas) {
      throw hlo::Error("the device assignment has partitions with different numbers of replicas");
    }
    replicas = ids.size();
  }
  std::vector<int64_t> ids;
  for (size_t replica = 0; replica < replicas; ++replica) {
    for (const auto& partition : by_partition) ids.push_back(partition[replica]);
  }
  return ids;
}

void ParseBuildOptions(std::string_view bytes, CompileOptions& options) {
  for (ProtoReader build(bytes); build.Next();) {
    if (build.field() == 4) options.num_replicas = build.value();
    if (build.field() == 5) options.num_partitions = build.value();
    if (build.field() == 9) options.device_assignment = ParseDeviceAssignment(build.bytes());
  }
}

std::string ParseOverrideValue(std::string_view bytes) {
  std::string value;
  for (ProtoReader option(bytes); option.Next();) {
    if (option.field() == 1) value = option.bytes();
    if (option.field() == 2) value = option.value() != 0 ? "true" : "false";
    if (option.field() == 3) value = std::to_string(option.value());
    if (option.field() == 4 && option.bytes().size() == 8) {
      uint64_t bits = 0;
      for (int i = 7; i >= 0; --i) bits = bits << 8 | static_cast<uint8_t>(option.bytes()[i]);
      value = std::to_string(std::bit_cast<double>(bits));
    }
  }
  return value;
}

void ParseOverride(std::string_view bytes, CompileOptions& options) {
  std::string name, value;
  for (ProtoReader entry(bytes); entry.Next();) {
    if (entry.field() == 1) name = entry.bytes();
    if (entry.field() == 2) value = ParseOverrideValue(entry.bytes());
  }
  options.overrides[name] = value;
}

void Check(const CompileOptions& options) {
  constexpr int64_t kMost = 1 << 20;
  if (options.num_replicas < 1 || options.num_replicas > kMost || options.num_partitions < 1 ||
      options.num_partitions > kMost) {
    throw hlo::Error("the compile options ask for " + std::to_string(options.num_replicas) +
                     " replicas of " + std::to_string(options.num_partitions) + " partitions");
  }
  const auto given = static_cast<int64_t>(options.device_assignment.size());
  if (given != 0 && given != options.num_devices()) {
    throw hlo::Error("the device assignment " + hlo::ToString(options.device_assignment) +
                     " does not fit " + std::to_string(options.num_replicas) + " replicas of " +
                     std::to_string(options.num_partitions) + " partitions");
  }
}

void AppendVarint(uint64_t value, std::string& bytes) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
}

void AppendBytes(int field, const std::string& value, std::string& bytes) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | 2, bytes);
  AppendVarint(value.size(), bytes);
  bytes += value;
}

}  // namespace

CompileOptions ParseCompileOptions(std::string_view bytes) {
  CompileOptions options;
  for (ProtoReader proto(bytes); proto.Next();) {
    if (proto.field() == 2) options.tupled_arguments = proto.value() != 0;
    if (proto.field() == 3) ParseBuildOptions(proto.bytes(), options);
    if (proto.field() == 4) options.portable = proto.value() != 0;
    if (proto.field() == 7) ParseOverride(proto.bytes(), options);
  }
  Check(options);
  return options;
}

std::string SerializeDeviceAssignment(int64_t num_replicas, int64_t num_partitions,
                                      const std::vector<int64_t>& device_ids) {
  std::string assignment;
  AppendVarint(1 << 3, assignment);
  AppendVarint(num_replicas, assignment);
  AppendVarint(2 << 3, assignment);
  AppendVarint(num_partitions, assignment);
  for (int64_t partition = 0; partition < num_partitions; ++partition) {
    std::string ids;
    for (int64_t replica = 0; replica < num_replicas; ++replica) {
      AppendVarint(device_ids[replica * num_partitions + partition], ids);
    }
    std::string computation;
    AppendBytes(1, ids, computation);
    AppendBytes(3, computation, assignment);
  }
  return assignment;
}

}  // namespace pjrt::plugin
