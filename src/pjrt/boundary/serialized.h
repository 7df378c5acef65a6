// Bytes handed out with a deleter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

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

// Gives the caller `bytes` as the C functions do: where they are, and what frees them.
template <typename Serialized>
void HandOut(std::string bytes, const char*& data, size_t& size, Serialized*& handle,
             void (*&deleter)(Serialized*)) {
  handle = new Serialized{std::move(bytes)};
  data = handle->bytes.data();
  size = handle->bytes.size();
  deleter = [](Serialized* serialized) { delete serialized; };
}

// FNV-1a: the same in every process and version.
inline uint64_t Fingerprint64(std::string_view bytes, uint64_t seed = 0xcbf29ce484222325) {
  for (char c : bytes) seed = (seed ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return seed;
}

}  // namespace pjrt::plugin
