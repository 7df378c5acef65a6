// Signs of life between ranks: how often they are given, when their lack counts, and the threads
// that give them and listen for those of others.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

namespace cpu {

// Whether another process is to be taken for dead: it has given no sign of life for too long, as
// far as this one could have heard it. Time in which this process itself did not run, because it
// was stopped too, does not count.
class FailureDetector {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // How often processes that may be silent for `timeout` give signs of life, and listen.
  static Milliseconds Period(Milliseconds timeout) {
    return std::clamp(timeout / 10, Milliseconds(10), Milliseconds(2000));
  }

  // After each period, which took `elapsed`. True before the process has been silent for `timeout`:
  // its last sign may be as old as a period, and so may be what this process knows.
  bool Listen(bool heard, Milliseconds elapsed, Milliseconds timeout) {
    silent_for_ = heard ? Milliseconds(0) : silent_for_ + std::min(elapsed, 2 * Period(timeout));
    return silent_for_ + 2 * Period(timeout) >= timeout;
  }

 private:
  Milliseconds silent_for_{0};
};

// It gets no signals, which are for the program's own threads. Throws
// hlo::Error(kResourceExhausted).
std::thread StartHeartbeatThread(std::function<void()> work);

// On the standard error stream: the program may be in no collective that could say so.
void WarnOfSilence(int64_t rank, std::chrono::milliseconds timeout);

}  // namespace cpu
