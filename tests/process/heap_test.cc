#include "process/heap.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "process/sanitizers.h"

namespace process {
namespace {

int64_t ResidentBytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(Heap, FreedMemoryBelowWhatIsUsedGoesBack) {
#ifndef __GLIBC__
  GTEST_SKIP() << "Not this allocator.";
#endif
  if (kKeepsFreedMemory) GTEST_SKIP() << "Not this allocator.";
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
