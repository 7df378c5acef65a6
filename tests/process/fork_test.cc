#include "process/fork.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "process/sanitizers.h"

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

// Forks beside threads that hold a mutex most of the time: each child finds it free, and nothing
// half done.
void ForkBesideThreads(int threads_count, int forks) {
  static Mutex mutex;
  static int a = 0, b = 0;  // equal, unless somebody is inside
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < threads_count; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        std::lock_guard lock(mutex);
        ++a;
        std::this_thread::yield();
        ++b;
      }
    });
  }
  for (int i = 0; i < forks && !testing::Test::HasFailure(); ++i) {
    EXPECT_EQ(InChild([] {
                std::lock_guard lock(mutex);
                return a == b;
              }),
              0)
        << "fork " << i;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Fork, AChildFindsEveryMutexFreeAndNothingHalfDone) { ForkBesideThreads(3, 200); }

// More than have a line of memory of their own.
TEST(Fork, MoreThreadsThanUsual) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 1100; ++i) {
    try {
      others.emplace_back([&] {
        {
          const NoFork enters_once;
        }
        stop.wait(false);
      });
    } catch (const std::system_error&) {
      break;  // the machine has no more: the rest holds as well
    }
  }
  ForkBesideThreads(3, 5);
  stop = true;
  stop.notify_all();
  for (std::thread& other : others) other.join();
}

// What the kernel does from now on when this process, or one that it starts, asks it to order the
// memory of all threads.
void AnswerMembarrier(uint32_t answer) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, answer),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0), 0);
}

TEST(Fork, WithoutMembarrier) {
  EXPECT_EQ(InChild([] {  // from the start of a program, as on an old kernel
              AnswerMembarrier(SECCOMP_RET_ERRNO | ENOSYS);
              execl("/proc/self/exe", "process_test",
                    "--gtest_filter=Fork.AChildFindsEveryMutexFreeAndNothingHalfDone", nullptr);
              return false;
            }),
            0);
  EXPECT_EQ(InChild([] {  // later, as in a sandbox
              AnswerMembarrier(SECCOMP_RET_ERRNO | EPERM);
              ForkBesideThreads(3, 30);
              return !testing::Test::HasFailure();
            }),
            0);
}

// Without it a fork could miss a thread that has just come in, which no test meets often enough.
TEST(Fork, AsksForMembarrier) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer has to see the order";
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  if (commands < 0 || (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) {
    GTEST_SKIP() << "this kernel cannot";
  }
  EXPECT_EQ(InChild([] {
              AnswerMembarrier(SECCOMP_RET_KILL_PROCESS);
              return fork() >= 0;
            }),
            -1);
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

// A child would wait for ever for who makes it.
TEST(Fork, WaitsForTheFirstRunOfAStatic) {
  static std::atomic<bool> is_begun{false};
  const auto made = [] {
    static const int number = [] {
      is_begun = true;
      std::this_thread::sleep_for(milliseconds(100));
      return 7;
    }();
    return number;
  };
  std::thread thread([&] { made(); });
  while (!is_begun) std::this_thread::yield();
  EXPECT_EQ(InChild([&] { return made() == 7; }), 0);
  thread.join();
}

// And another may try again.
TEST(Fork, WaitsNoMoreForAStaticThatThrew) {
  const auto made = [](bool fails) {
    static const int number = [&] {
      if (fails) throw std::system_error(std::make_error_code(std::errc::io_error));
      return 7;
    }();
    return number;
  };
  EXPECT_THROW(made(true), std::system_error);
  std::thread([&] { EXPECT_EQ(InChild([&] { return made(false) == 7; }), 0); }).join();
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
