#include "cpu/memory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "hlo/error.h"

namespace cpu {
namespace {

TEST(Memory, BlocksAreAlignedAndWritable) {
  for (size_t bytes :
       {0ul, 1ul, 63ul, 64ul, 65ul, 1000ul, 4097ul, 1ul << 20, 3000000ul, 9999999ul}) {
    Block block(bytes);
    EXPECT_EQ(block.bytes(), bytes);
    ASSERT_NE(block.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data()) % 64, 0u);
    if (bytes >= 2u << 20) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data()) % (2u << 20), 0u);
    }
    std::memset(block.data(), 1, bytes);
  }
}

TEST(Memory, ABlockIsReused) {
  for (size_t bytes : {100ul, 5000000ul}) {
    void* first = nullptr;
    {
      Block block(bytes);
      first = block.data();
    }
    Block again(bytes - 1);
    EXPECT_EQ(again.data(), first);
  }
}

TEST(Memory, MoveTransfersOwnership) {
  Block a(100);
  void* data = a.data();
  Block b(std::move(a));
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(b.data(), data);
  Block c;
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(c.bytes(), 100u);
}

// What earlier tests left to the engine's threads may be freed meanwhile, so each comparison is one
// that a free elsewhere cannot make false.
TEST(Memory, StatisticsCount) {
  MemoryStatistics before = GetMemoryStatistics();
  MemoryStatistics inside;
  {
    Block block(10 << 20);
    inside = GetMemoryStatistics();
    EXPECT_LE(inside.bytes_in_use, before.bytes_in_use + (12 << 20));
    EXPECT_EQ(inside.allocations, before.allocations + 1);
    EXPECT_GE(inside.largest_allocation, 10 << 20);
  }
  MemoryStatistics after = GetMemoryStatistics();
  EXPECT_LE(after.bytes_in_use, inside.bytes_in_use - (10 << 20));
  EXPECT_GE(after.peak_bytes_in_use, 10 << 20);
  EXPECT_GT(after.bytes_pooled, 0);
  TrimMemory();
  EXPECT_EQ(GetMemoryStatistics().bytes_pooled, 0);
}

TEST(Memory, PoolingDoesNotMultiplyTheFootprint) {
  TrimMemory();
  // Blocks of ever other sizes, one at a time: what is kept stays near one block's size.
  for (int i = 0; i < 40; ++i) Block block((200 << 20) + i * (30 << 20));
  MemoryStatistics statistics = GetMemoryStatistics();
  EXPECT_LE(statistics.bytes_pooled, statistics.peak_bytes_in_use * 5 / 4 + (64 << 20));
  TrimMemory();
}

TEST(Memory, ImpossibleSizesThrow) {
  for (size_t bytes : {size_t{1} << 45, size_t{1} << 60, ~size_t{0}}) {
    try {
      Block block(bytes);
      FAIL() << bytes;
    } catch (const hlo::Error& error) {
      EXPECT_EQ(error.code(), hlo::ErrorCode::kResourceExhausted);
      EXPECT_NE(std::string(error.what()).find(std::to_string(bytes)), std::string::npos);
    }
  }
}

TEST(Memory, SeveralThreadsAllocate) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      std::vector<Block> blocks(16);
      for (int i = 0; i < 5000; ++i) {
        size_t bytes = (i * 7919 + t) % 20000 + 8;
        Block block(bytes);
        std::memset(block.data(), t, bytes);
        blocks[i % 16] = std::move(block);
        const char* data = static_cast<const char*>(blocks[i % 16].data());
        if (data[0] != t || data[bytes - 1] != t) std::abort();
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

// The limit is read once in a process: a fresh process tests it.
TEST(MemoryDeathTest, TheLimitIsKept) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("TORCH_XLA_MEMORY_LIMIT", "1000000", 1);
        try {
          Block small(500000);
          Block large(600000);
        } catch (const hlo::Error& error) {
          bool named = std::string(error.what()).find("1000000") != std::string::npos &&
                       std::string(error.what()).find("600000") != std::string::npos;
          _exit(named && GetMemoryStatistics().bytes_limit == 1000000 ? 0 : 1);
        }
        _exit(2);
      },
      testing::ExitedWithCode(0), "");
}

// A cgroup below this process's own, of version 1 or 2, which is removed at the end.
class Cgroup {
 public:
  explicit Cgroup(int64_t memory_limit) {
    std::ifstream mine("/proc/self/cgroup");
    for (std::string line; folder_.empty() && std::getline(mine, line);) {
      const std::string path = line.substr(std::min(line.size(), line.rfind(':') + 1));
      if (line.find(":memory:") != line.npos) {
        Make("/sys/fs/cgroup/memory" + path, "memory.limit_in_bytes", memory_limit);
      } else if (line.starts_with("0::")) {
        Make("/sys/fs/cgroup" + path, "memory.max", memory_limit);
      }
    }
  }
  ~Cgroup() {
    if (!folder_.empty()) rmdir(folder_.c_str());
  }
  bool is_there() const { return !folder_.empty(); }
  bool Enter() const {
    return (std::ofstream(folder_ + "/cgroup.procs") << getpid() << std::flush).good();
  }

 private:
  void Make(const std::string& parent, const std::string& file, int64_t limit) {
    const std::string folder = parent + "/memory_test_" + std::to_string(getpid());
    if (mkdir(folder.c_str(), 0755) != 0) return;
    const bool is_limited = access((folder + "/" + file).c_str(), W_OK) == 0 &&
                            (std::ofstream(folder + "/" + file) << limit << std::flush).good();
    if (is_limited) {
      folder_ = folder;
    } else {
      rmdir(folder.c_str());
    }
  }
  std::string folder_;
};

bool IsRefused(size_t bytes) {
  try {
    Block block(bytes);
    return false;
  } catch (const hlo::Error& error) {
    return error.code() == hlo::ErrorCode::kResourceExhausted;
  }
}

// Runs in the process that the next test starts.
TEST(Memory, InsideACgroup) {
  if (std::getenv("MEMORY_TEST_CGROUP") == nullptr) GTEST_SKIP() << "part of the next test";
  EXPECT_EQ(GetMemoryStatistics().bytes_limit, int64_t{256} << 20);
  EXPECT_TRUE(IsRefused(size_t{3} << 30));
  Block block(size_t{64} << 20);
  std::memset(block.data(), 1, block.bytes());
  EXPECT_FALSE(IsRefused(size_t{150} << 20));
  TrimMemory();
  {
    const std::vector<char> others(size_t{100} << 20, 1);
    EXPECT_TRUE(IsRefused(size_t{150} << 20));  // the kernel would end the process
  }
  EXPECT_FALSE(IsRefused(size_t{150} << 20));
}

TEST(Memory, ACgroupsLimitIsAnErrorAndNotTheEndOfTheProcess) {
  const Cgroup cgroup(int64_t{256} << 20);
  if (!cgroup.is_there()) GTEST_SKIP() << "this user may not make cgroups with a limit here";
  const pid_t child = fork();
  if (child == 0) {
    unsetenv("TORCH_XLA_MEMORY_LIMIT");
    setenv("MEMORY_TEST_CGROUP", "1", 1);
    if (!cgroup.Enter()) _exit(3);
    execl("/proc/self/exe", "memory_test", "--gtest_filter=Memory.InsideACgroup", nullptr);
    _exit(4);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace cpu
