#include "process/block_signals.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <thread>

namespace process {
namespace {

sigset_t Blocked() {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return blocked;
}

TEST(BlockSignals, ThreadsThatAreStartedMeanwhileTakeNone) {
  sigset_t blocked;
  std::thread thread;
  {
    const BlockSignals scope;
    thread = std::thread([&] { blocked = Blocked(); });
  }
  thread.join();
  for (const int sent : {SIGTERM, SIGINT, SIGUSR1, SIGALRM, SIGCHLD}) {
    EXPECT_TRUE(sigismember(&blocked, sent)) << sent;
  }
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    EXPECT_FALSE(sigismember(&blocked, own)) << own;
  }
}

TEST(BlockSignals, ItsThreadTakesThemAgain) {
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
  {
    const BlockSignals scope;
  }
  const sigset_t blocked = Blocked();
  EXPECT_TRUE(sigismember(&blocked, SIGUSR1)) << "as before";
  EXPECT_FALSE(sigismember(&blocked, SIGTERM));
  pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr);
}

}  // namespace
}  // namespace process
