// How the client calls a plugin.
#pragma once

#include <cstddef>

namespace pjrt {

// An argument struct followed by zeros that are declared part of it. A plugin newer than c_api.h
// finds its newer fields there, zero, instead of refusing a struct that it thinks is too short.
template <typename Args>
class Arguments {
 public:
  Arguments() { storage_.args.struct_size = sizeof(storage_); }
  Arguments(const Arguments&) = delete;
  Args* operator->() { return &storage_.args; }
  Args* get() { return &storage_.args; }

 private:
  struct {
    Args args;
    std::byte newer_fields[256];
  } storage_{};
};

#define PJRT_INVOKE(plugin, name, arguments) \
  (plugin).Invoke(&PJRT_Api::PJRT_##name, "PJRT_" #name, (arguments).get())

}  // namespace pjrt
