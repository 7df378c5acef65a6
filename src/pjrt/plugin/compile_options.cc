#include "pjrt/plugin/compile_options.h"

#include "hlo/error.h"
#include "hlo/shape.h"
#include "pjrt/wire/proto.h"

namespace pjrt::plugin {
namespace {

constexpr char kMessage[] = "CompileOptionsProto";

// A repeated integer, packed or not.
void AppendIntegers(const ProtoReader& field, std::vector<int64_t>& values) {
  if (field.is_varint()) {
    values.push_back(field.value());
    return;
  }
  ProtoReader packed(field.bytes(), kMessage);
  while (!packed.at_end()) values.push_back(static_cast<int64_t>(packed.Varint()));
}

// DeviceAssignmentProto lists replicas by partition ("computation").
std::vector<int64_t> ParseDeviceAssignment(std::string_view bytes) {
  std::vector<std::vector<int64_t>> by_partition;
  size_t replicas = 0;
  for (ProtoReader assignment(bytes, kMessage); assignment.Next();) {
    if (assignment.field() != 3) continue;
    std::vector<int64_t>& ids = by_partition.emplace_back();
    for (ProtoReader computation(assignment.bytes(), kMessage); computation.Next();) {
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
  for (ProtoReader build(bytes, kMessage); build.Next();) {
    if (build.field() == 4) options.num_replicas = build.value();
    if (build.field() == 5) options.num_partitions = build.value();
    if (build.field() == 9) options.device_assignment = ParseDeviceAssignment(build.bytes());
  }
}

std::string ParseOverrideValue(std::string_view bytes) {
  std::string value;
  for (ProtoReader option(bytes, kMessage); option.Next();) {
    if (option.field() == 1) value = option.bytes();
    if (option.field() == 2) value = option.value() != 0 ? "true" : "false";
    if (option.field() == 3) value = std::to_string(option.value());
    if (option.field() == 4) value = std::to_string(option.real());
  }
  return value;
}

void ParseOverride(std::string_view bytes, CompileOptions& options) {
  std::string name, value;
  for (ProtoReader entry(bytes, kMessage); entry.Next();) {
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

}  // namespace

CompileOptions ParseCompileOptions(std::string_view bytes) {
  CompileOptions options;
  for (ProtoReader proto(bytes, kMessage); proto.Next();) {
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
  ProtoWriter assignment;
  assignment.Varint(1, num_replicas);
  assignment.Varint(2, num_partitions);
  for (int64_t partition = 0; partition < num_partitions; ++partition) {
    ProtoWriter ids;
    for (int64_t replica = 0; replica < num_replicas; ++replica) {
      ids.Raw(device_ids[replica * num_partitions + partition]);
    }
    ProtoWriter computation;
    computation.Bytes(1, ids.bytes());
    assignment.Message(3, computation);
  }
  return assignment.bytes();
}

}  // namespace pjrt::plugin
