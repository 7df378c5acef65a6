// How a program is to be compiled, as plugins want to hear it: a CompileOptionsProto.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace pjrt {

struct CompileOptions {
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  // Global device ids, replica-major, num_replicas * num_partitions of them; empty: the plugin
  // chooses.
  std::vector<int64_t> device_assignment;
  // Not bound to a device: each execution names its own (num_replicas = num_partitions = 1).
  bool portable = false;
  // The plugin's own options by name (for XLA: fields of its DebugOptions).
  std::map<std::string, std::variant<std::string, bool, int64_t, double>> overrides;

  // In protobuf's wire format. Throws hlo::Error if the assignment's size does not fit.
  std::string Serialize() const;
};

}  // namespace pjrt
