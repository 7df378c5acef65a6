#include "cpu/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace cpu {
namespace {

int64_t SumInParallel(ThreadPool& pool, int64_t chunks) {
  std::atomic<int64_t> sum{0};
  pool.ParallelFor(chunks, [&](int64_t chunk) { sum += chunk + 1; });
  return sum;
}

// Runs `child` in a forked process; true if it returned true within the time.
template <typename F>
bool TrueInChild(F child) {
  pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    _exit(child() ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ThreadPool, RunsEveryChunkOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t chunks : {0, 1, 2, 3, 7, 100, 1000}) {
      std::vector<std::atomic<int>> times(chunks);
      pool.ParallelFor(chunks, [&](int64_t chunk) { ++times[chunk]; });
      for (int64_t i = 0; i < chunks; ++i) EXPECT_EQ(times[i], 1) << i << " of " << chunks;
    }
  }
}

TEST(ThreadPool, OneChunkRunsOnTheCaller) {
  ThreadPool pool(4);
  std::thread::id ran;
  pool.ParallelFor(1, [&](int64_t) { ran = std::this_thread::get_id(); });
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST(ThreadPool, UsesSeveralThreads) {
  ThreadPool pool(2);
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  // Two chunks that wait for each other finish only if two threads run them.
  pool.ParallelFor(2, [&](int64_t) {
    ++inside;
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (inside < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (inside == 2) met = true;
  });
  EXPECT_TRUE(met);
}

TEST(ThreadPool, NestedCallsRun) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  pool.ParallelFor(10, [&](int64_t) { sum += SumInParallel(pool, 10); });
  EXPECT_EQ(sum, 550);
}

TEST(ThreadPool, ConcurrentCallersAreCorrect) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int j = 0; j < 2000; ++j) wrong += SumInParallel(pool, 16) != 136;
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, StressOfShortJobsAndPauses) {
  ThreadPool pool(4);
  for (int i = 0; i < 20000; ++i) {
    int64_t chunks = i % 37 + 1;
    ASSERT_EQ(SumInParallel(pool, chunks), chunks * (chunks + 1) / 2);
    // Longer than the spin now and then, so that workers fall asleep and wake.
    if (i % 500 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

TEST(ThreadPool, RethrowsAndStaysUsable) {
  ThreadPool pool(2);
  for (int i = 0; i < 100; ++i) {
    EXPECT_THROW(pool.ParallelFor(50,
                                  [&](int64_t chunk) {
                                    if (chunk == 7) throw std::runtime_error("seven");
                                  }),
                 std::runtime_error);
    EXPECT_EQ(SumInParallel(pool, 100), 5050);
  }
}

TEST(ThreadPool, WorksInAForkedChild) {
  ThreadPool pool(2);
  EXPECT_EQ(SumInParallel(pool, 100), 5050);
  EXPECT_TRUE(TrueInChild([&] {
    for (int i = 0; i < 100; ++i) {
      if (SumInParallel(pool, 100) != 5050) return false;
    }
    // A grandchild too.
    return TrueInChild([&] { return SumInParallel(pool, 64) == 2080; });
  }));
  EXPECT_EQ(SumInParallel(pool, 100), 5050);
}

TEST(ThreadPool, TheChildHasThreadsOfItsOwn) {
  ThreadPool pool(2);
  SumInParallel(pool, 8);
  EXPECT_TRUE(TrueInChild([&] {
    std::atomic<int> inside{0};
    pool.ParallelFor(2, [&](int64_t) {
      ++inside;
      while (inside < 2) std::this_thread::yield();  // the alarm ends a hang
    });
    return inside == 2;
  }));
}

TEST(ThreadPool, ForkWhileAnotherThreadComputes) {
  ThreadPool pool(2);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) SumInParallel(pool, 64);
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(TrueInChild([&] { return SumInParallel(pool, 100) == 5050; }));
  }
  stop = true;
  busy.join();
}

TEST(ThreadPool, DestructionInAChildIsSafe) {
  auto pool = std::make_unique<ThreadPool>(2);
  SumInParallel(*pool, 8);
  EXPECT_TRUE(TrueInChild([&] {
    pool.reset();
    return true;
  }));
}

}  // namespace
}  // namespace cpu
