// Bytes handed out with a deleter.
#pragma once

#include <cstddef>
#include <string>
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

namespace pjrt::boundary {

// Gives the caller `bytes` as the C functions do: where they are, and what frees them.
template <typename Serialized>
void HandOut(std::string bytes, const char*& data, size_t& size, Serialized*& handle,
             void (*&deleter)(Serialized*)) {
  handle = new Serialized{std::move(bytes)};
  data = handle->bytes.data();
  size = handle->bytes.size();
  deleter = [](Serialized* serialized) { delete serialized; };
}

}  // namespace pjrt::boundary
