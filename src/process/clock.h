// The time as a number, as profiles and events have it.
#pragma once

#include <chrono>
#include <cstdint>

namespace process {

// Nanoseconds since the clock's epoch.
template <typename Clock = std::chrono::steady_clock>
int64_t NowNanoseconds() {
  return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}

}  // namespace process
