#include "process/heap.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

namespace process {
namespace {

int64_t ResidentBytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(Heap, FreedMemoryBelowWhatIsUsedGoesBack) {
#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "Not this allocator.";
#endif
  // Too small to be mapped one by one, and the last one lies above the others.
  constexpr size_t kBytes = 64 << 10, kCount = 1024;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (size_t i = 0; i < kCount; ++i) {
    blocks.push_back(std::make_unique_for_overwrite<char[]>(kBytes));
    std::memset(blocks.back().get(), 1, kBytes);
  }
  const int64_t before = ResidentBytes();
  blocks.erase(blocks.begin(), blocks.end() - 1);
  ReleaseFreeMemory();
  EXPECT_LT(ResidentBytes(), before - static_cast<int64_t>(kBytes * kCount / 2));
}

}  // namespace
}  // namespace process
