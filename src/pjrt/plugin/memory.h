// A device's memory space. There is one kind, "device": the process's own memory.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "pjrt/c_api.h"

namespace pjrt::plugin {

struct Memory : PJRT_Memory {
  explicit Memory(PJRT_Device* device, int id);
  ~Memory();

  static constexpr char kKind[] = "device";
  static constexpr int kKindId = 0;
  static Memory& Get(PJRT_Memory* memory);  // throws for null

  PJRT_Device* device;
  int id;
  std::string debug_string;

  // What the framework attaches, by key.
  struct UserData {
    void* data = nullptr;
    void (*destroy)(void*) = nullptr;
  };
  std::mutex mutex;
  std::map<const void*, UserData> user_data;
};

}  // namespace pjrt::plugin
