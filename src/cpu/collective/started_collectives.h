// The collectives that one run of a program has started and not yet awaited.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/collective/communicator.h"

namespace cpu {

class StartedCollectives {
 public:
  StartedCollectives(Communicator* communicator, int64_t count)
      : communicator_(communicator), tickets_(count) {}
  // A run that fails in between must not give its memory back while it is still in use.
  ~StartedCollectives() {
    for (uint64_t ticket : tickets_) {
      if (ticket == 0) continue;
      try {
        communicator_->Wait(ticket);
      } catch (...) {  // the error that ended the run came first
      }
    }
  }
  StartedCollectives(const StartedCollectives&) = delete;

  void Start(int64_t number, uint64_t ticket) { tickets_[number] = ticket; }
  // Throws hlo::Error if the collective failed.
  void Wait(int64_t number) {
    const uint64_t ticket = tickets_[number];
    tickets_[number] = 0;
    communicator_->Wait(ticket);
  }

 private:
  Communicator* communicator_;
  std::vector<uint64_t> tickets_;  // 0: none; tickets begin at 1
};

}  // namespace cpu
