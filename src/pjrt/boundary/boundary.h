// The C boundary: what comes in is checked and completed, and no C++ exception goes out.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "hlo/error.h"
#include "pjrt/boundary/error.h"
#include "pjrt/c_api.h"
#include "process/fork.h"

namespace pjrt::boundary {

// A caller's struct as we know it: fields behind the caller's end are zero. (An older caller's
// structs are shorter than ours.)
template <typename Struct>
Struct Complete(const Struct& callers) {
  Struct complete{};
  std::memcpy(static_cast<void*>(&complete), &callers,
              std::min<size_t>(callers.struct_size, sizeof(Struct)));
  return complete;
}

// For handles and pointers without which a function makes no sense.
template <typename T>
T& Require(T* pointer, const char* what) {
  if (pointer == nullptr) throw hlo::Error(std::string(what) + " is null");
  return *pointer;
}

template <typename Args>
void CheckHeader(const Args* args) {
  constexpr size_t kHeader = 2 * sizeof(void*);
  if (args == nullptr) throw hlo::Error("the argument struct is null");
  if (args->struct_size < kHeader) {
    throw hlo::Error("the argument struct says that it has " + std::to_string(args->struct_size) +
                     " bytes, fewer than its header's " + std::to_string(kHeader));
  }
}

// One entry of the table. Writes nothing behind the end of the caller's struct.
template <typename Args, void (*function)(Args&)>
PJRT_Error* Entry(Args* args) noexcept {
  const process::NoFork no_fork;
  try {
    CheckHeader(args);
    if (args->struct_size >= sizeof(Args)) {
      function(*args);
    } else {
      Args complete = Complete(*args);
      function(complete);
      std::memcpy(static_cast<void*>(args), &complete, args->struct_size);
    }
    return nullptr;
  } catch (...) {
    return CurrentError();
  }
}

}  // namespace pjrt::boundary
