// What this plugin reads of a CompileOptionsProto.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pjrt::plugin {

struct CompileOptions {
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  std::vector<int64_t> device_assignment;  // replica-major; empty: not given
  bool portable = false;
  bool tupled_arguments = false;
  std::map<std::string, std::string> overrides;  // the plugin's own options, values as text

  int64_t num_devices() const { return num_replicas * num_partitions; }
};

// Unknown fields are skipped. Throws hlo::Error for bytes that are not protobuf, impossible counts,
// and an assignment that does not fit them.
CompileOptions ParseCompileOptions(std::string_view bytes);

// A DeviceAssignmentProto. `device_ids` is replica-major.
std::string SerializeDeviceAssignment(int64_t num_replicas, int64_t num_partitions,
                                      const std::vector<int64_t>& device_ids);

}  // namespace pjrt::plugin
