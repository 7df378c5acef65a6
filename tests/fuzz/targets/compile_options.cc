// Bytes as the options that a client compiles with.
#include "pjrt/plugin/compile_options.h"

#include <cstdint>

#include "hlo/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto options =
        pjrt::plugin::ParseCompileOptions({reinterpret_cast<const char*>(data), size});
    if (options.num_replicas < 1 || options.num_partitions < 1) __builtin_trap();
    if (!options.device_assignment.empty() &&
        static_cast<int64_t>(options.device_assignment.size()) != options.num_devices()) {
      __builtin_trap();
    }
  } catch (const hlo::Error&) {
  }
  return 0;
}
