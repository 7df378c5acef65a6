// Signals belong to the threads of the program. One that is sent to a process goes to any of its
// threads that does not block it: a program that waits for a signal (sigwait) blocks it on the
// threads that it knows, and on another its default action ends the process.
#pragma once

#include <signal.h>

namespace process {

// While one lives, its thread takes no signals, nor do the threads that it starts, which inherit
// that for good. Left are those that an error of the thread itself raises, such as SIGSEGV: the
// program may have handlers that report them.
class BlockSignals {
 public:
  BlockSignals();
  ~BlockSignals();
  BlockSignals(const BlockSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace process
