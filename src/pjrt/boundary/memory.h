// A memory space, as the framework sees it: a description, and what the framework attaches.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "pjrt/c_api.h"

namespace pjrt::boundary {

struct Memory : PJRT_Memory {
  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  static Memory& Get(PJRT_Memory* memory);  // throws for null

  int id = 0;
  std::string kind;  // "device", "pinned_host"
  int kind_id = 0;
  std::string debug_string, text;
  std::vector<PJRT_Device*> devices;  // that reach it; at least one

  // What the framework attaches, by key.
  struct UserData {
    void* data = nullptr;
    void (*destroy)(void*) = nullptr;
  };
  std::mutex mutex;
  std::map<const void*, UserData> user_data;
};

}  // namespace pjrt::boundary
