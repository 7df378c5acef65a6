// For how long another process has given no sign of life, as far as this one could have heard it:
// time in which this process itself did not run, because it was stopped too, does not count.
#pragma once

#include <algorithm>
#include <chrono>

namespace cpu {

class Silence {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // How often processes that may be silent for `timeout` give signs of life, and listen.
  static Milliseconds Period(Milliseconds timeout) {
    return std::clamp(timeout / 10, Milliseconds(10), Milliseconds(2000));
  }

  // After each period, which took `elapsed`. True before the process has been silent for `timeout`:
  // its last sign may be as old as a period, and so may be what this process knows.
  bool Listen(bool heard, Milliseconds elapsed, Milliseconds timeout) {
    length_ = heard ? Milliseconds(0) : length_ + std::min(elapsed, 2 * Period(timeout));
    return length_ + 2 * Period(timeout) >= timeout;
  }

 private:
  Milliseconds length_{0};
};

}  // namespace cpu
