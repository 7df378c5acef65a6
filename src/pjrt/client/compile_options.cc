#include "pjrt/client/compile_options.h"

#include "hlo/error.h"
#include "hlo/shape.h"
#include "pjrt/wire/proto.h"

namespace pjrt {
namespace {

ProtoWriter DeviceAssignment(const CompileOptions& options) {
  ProtoWriter assignment;
  assignment.Varint(1, options.num_replicas);
  assignment.Varint(2, options.num_partitions);
  for (int64_t partition = 0; partition < options.num_partitions; ++partition) {
    ProtoWriter ids;
    for (int64_t replica = 0; replica < options.num_replicas; ++replica) {
      ids.Raw(options.device_assignment[replica * options.num_partitions + partition]);
    }
    ProtoWriter computation;
    computation.Bytes(1, ids.bytes());
    assignment.Message(3, computation);
  }
  return assignment;
}

ProtoWriter Override(const std::variant<std::string, bool, int64_t, double>& value) {
  ProtoWriter writer;
  if (const auto* text = std::get_if<std::string>(&value)) writer.Bytes(1, *text);
  if (const auto* truth = std::get_if<bool>(&value)) writer.Varint(2, *truth);
  if (const auto* integer = std::get_if<int64_t>(&value)) writer.Varint(3, *integer);
  if (const auto* real = std::get_if<double>(&value)) writer.Double(4, *real);
  return writer;
}

}  // namespace

std::string CompileOptions::Serialize() const {
  const int64_t devices = num_replicas * num_partitions;
  if (!device_assignment.empty() && static_cast<int64_t>(device_assignment.size()) != devices) {
    throw hlo::Error("the device assignment " + hlo::ToString(device_assignment) + " must name " +
                     std::to_string(devices) + " devices (" + std::to_string(num_replicas) +
                     " replicas of " + std::to_string(num_partitions) + " partitions)");
  }
  ProtoWriter build;
  build.Varint(1, -1);  // no particular device ordinal
  build.Varint(4, num_replicas);
  build.Varint(5, num_partitions);
  if (num_partitions > 1) build.Varint(6, 1);  // the partitions run one program
  if (!device_assignment.empty()) build.Message(9, DeviceAssignment(*this));

  ProtoWriter options;
  options.Message(3, build);
  if (portable) options.Varint(4, 1);
  for (const auto& [name, value] : overrides) {
    ProtoWriter entry;
    entry.Bytes(1, name);
    entry.Message(2, Override(value));
    options.Message(7, entry);
  }
  return options.bytes();
}

}  // namespace pjrt
