// Bytes handed out with a deleter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

struct PJRT_SerializedTopology {
  std::string bytes;
};
struct PJRT_SerializedExecutable {
  std::string bytes;
};
struct PJRT_SerializedCompileOptions {
  std::string bytes;
};
struct PJRT_DeviceAssignmentSerialized {
  std::string bytes;
};
struct PJRT_Layouts_SerializedLayout {
  std::string bytes;
};

namespace pjrt::plugin {

// FNV-1a: the same in every process and version.
inline uint64_t Fingerprint64(std::string_view bytes, uint64_t seed = 0xcbf29ce484222325) {
  for (char c : bytes) seed = (seed ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return seed;
}

}  // namespace pjrt::plugin
