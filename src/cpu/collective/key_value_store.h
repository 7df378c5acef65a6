// What the ranks of a world find each other by: a store that all of them reach.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace cpu {

// Called from one thread at a time.
struct KeyValueStore {
  std::function<void(const std::string& key, const std::string& value)> put;
  // Blocks until the key is there; nothing when the time is over. Throws hlo::Error when the store
  // cannot be reached.
  std::function<std::optional<std::string>(const std::string& key,
                                           std::chrono::milliseconds timeout)>
      get;
};

}  // namespace cpu
