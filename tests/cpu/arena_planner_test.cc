#include "cpu/arena_planner.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace cpu {
namespace {

constexpr int64_t kUnit = kAlignment;

TEST(ArenaPlanner, WhatIsFreeIsTakenAgain) {
  ArenaPlanner planner;
  const int64_t a = planner.Allocate(1000), b = planner.Allocate(500);
  planner.Free(a);
  EXPECT_EQ(planner.Allocate(900), a);
  EXPECT_EQ(planner.total_bytes(), 1024 + 512);
  planner.Free(b);
}

TEST(ArenaPlanner, TheSmallestGapThatFits) {
  ArenaPlanner planner;
  const int64_t large = planner.Allocate(10 * kUnit);
  planner.Allocate(kUnit);
  const int64_t small = planner.Allocate(3 * kUnit);
  planner.Allocate(kUnit);
  planner.Free(large);
  planner.Free(small);
  EXPECT_EQ(planner.Allocate(2 * kUnit), small);
  EXPECT_EQ(planner.Allocate(2 * kUnit), large);
}

TEST(ArenaPlanner, NeighboursThatAreFreeAreOneGap) {
  ArenaPlanner planner;
  int64_t offsets[3];
  for (int64_t& offset : offsets) offset = planner.Allocate(kUnit);
  planner.Allocate(kUnit);
  for (int i : {0, 2, 1}) planner.Free(offsets[i]);
  EXPECT_EQ(planner.Allocate(3 * kUnit), offsets[0]);
  EXPECT_EQ(planner.total_bytes(), 4 * kUnit);
}

TEST(ArenaPlanner, AGapAtTheEndGrows) {
  ArenaPlanner planner;
  planner.Allocate(kUnit);
  const int64_t last = planner.Allocate(kUnit);
  planner.Free(last);
  EXPECT_EQ(planner.Allocate(4 * kUnit), last);
  EXPECT_EQ(planner.total_bytes(), 5 * kUnit);
}

// Values of any lifetimes lie apart as long as they live, on whole lines of the cache, and in no
// more memory than twice what lives at a time.
TEST(ArenaPlanner, LiveValuesNeverOverlap) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    ArenaPlanner planner;
    std::map<int64_t, int64_t> live;  // offset and bytes
    int64_t bytes = 0, most = 0;
    for (int step = 0; step < 2000; ++step) {
      if (!live.empty() && random() % 2 == 0) {
        auto value = std::next(live.begin(), static_cast<int64_t>(random() % live.size()));
        planner.Free(value->first);
        bytes -= value->second;
        live.erase(value);
        continue;
      }
      const auto size = static_cast<int64_t>(random() % 5000);
      const int64_t offset = planner.Allocate(size);
      ASSERT_EQ(offset % kUnit, 0);
      auto next = live.lower_bound(offset);
      // No two share an address, not even empty ones.
      ASSERT_TRUE(next == live.end() || offset + std::max<int64_t>(size, 1) <= next->first);
      ASSERT_TRUE(next == live.begin() ||
                  std::prev(next)->first + std::prev(next)->second <= offset);
      ASSERT_FALSE(live.contains(offset));
      ASSERT_LE(offset + size, planner.total_bytes());
      live[offset] = size;
      bytes += size;
      most = std::max(most, bytes);
    }
    EXPECT_LE(planner.total_bytes(), 2 * most + 100 * kUnit) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cpu
