#include "process/block_signals.h"

#include <pthread.h>

#include <initializer_list>

namespace process {

BlockSignals::BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    sigdelset(&all, own);
  }
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

BlockSignals::~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace process
