#include "process/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace process {
namespace {

using std::chrono::milliseconds;

// The exit status of a child that runs `body`, or -1 if it hung.
template <typename Body>
int InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, AChildFindsEveryMutexFreeAndNothingHalfDone) {
  static Mutex mutex;
  static int a = 0, b = 0;  // equal, unless somebody is inside
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        std::lock_guard lock(mutex);
        ++a;
        std::this_thread::yield();
        ++b;
      }
    });
  }
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(InChild([] {
                std::lock_guard lock(mutex);
                return a == b;
              }),
              0)
        << "fork " << i;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Fork, WaitsForANoForkAndNotForAMayFork) {
  std::atomic<int> stage{0};
  std::thread thread([&] {
    const NoFork no_fork;
    stage = 1;
    std::this_thread::sleep_for(milliseconds(100));
    stage = 2;
    const MayFork waiting;
    while (stage != 3) std::this_thread::yield();
  });
  while (stage == 0) std::this_thread::yield();
  EXPECT_EQ(InChild([&] { return stage == 2; }), 0);
  stage = 3;
  thread.join();
}

TEST(Fork, AThreadThatHasANoForkForksItself) {
  const NoFork outer;
  EXPECT_EQ(InChild([] {
              const NoFork inner;
              return true;
            }),
            0);
  // Still held: another thread's fork waits.
  std::atomic<bool> forked{false};
  std::thread other([&] {
    InChild([] { return true; });
    forked = true;
  });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(forked);
  {
    const MayFork waiting;
    other.join();
  }
  EXPECT_TRUE(forked);
}

TEST(Fork, AThreadThatWorksForAnotherIsCoveredByIt) {
  std::atomic<int> stage{0};
  std::thread caller([&] {
    const NoFork no_fork;
    std::thread worker([&] {
      const NoForkOfCaller covered;
      stage = 1;
      std::this_thread::sleep_for(milliseconds(100));  // meanwhile the fork waits at the door
      const NoFork inner;                              // which is open to this one
      stage = 2;
    });
    worker.join();
  });
  while (stage == 0) std::this_thread::yield();
  EXPECT_EQ(InChild([&] { return stage == 2; }), 0);
  caller.join();
}

TEST(Fork, ManyThreadsForkAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int k = 0; k < 25; ++k) {
        EXPECT_EQ(InChild([] {
                    const NoFork no_fork;
                    return true;
                  }),
                  0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Fork, GenerationsAreCounted) {
  const int64_t here = ForkGeneration();
  EXPECT_EQ(InChild([&] {
              return ForkGeneration() == here + 1 &&
                     InChild([&] { return ForkGeneration() == here + 2; }) == 0;
            }),
            0);
  EXPECT_EQ(ForkGeneration(), here);
}

std::string calls;
constexpr ForkHooks kFirst{.prepare = [] { calls += "first prepares, "; },
                           .parent = [] { calls += "first ends, "; },
                           .child = [] { calls += "first's child, "; }};
constexpr ForkHooks kSecond{.prepare = [] { calls += "second prepares, "; },
                            .parent = [] { calls += "second ends, "; },
                            .child = [] { calls += "second's child, "; }};

TEST(Fork, HooksRunOnceAndInOrder) {
  AtFork(kFirst);
  AtFork(kSecond);
  RegisterForkHandlers();  // as after loading another library
  const std::string before = "second prepares, first prepares, ";
  EXPECT_EQ(InChild([&] { return calls == before + "first's child, second's child, "; }), 0);
  EXPECT_EQ(calls, before + "first ends, second ends, ");
  calls.clear();
  PrepareFork();  // as an interpreter does
  EXPECT_EQ(calls, before);
  EXPECT_EQ(InChild([&] { return calls == before + "first's child, second's child, "; }), 0);
  EXPECT_EQ(calls, before);
  EndForkInParent();
  EXPECT_EQ(calls, before + "first ends, second ends, ");
}

}  // namespace
}  // namespace process
