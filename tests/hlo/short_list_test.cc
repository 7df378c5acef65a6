#include "hlo/short_list.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>

namespace hlo {
namespace {

ShortList<int> UpTo(int count) {
  ShortList<int> list;
  for (int i = 0; i < count; ++i) list.push_back(i);
  return list;
}

TEST(ShortList, HoldsWhatAVectorHolds) {
  for (int count : {0, 1, 3, 4, 7, 100}) {
    std::vector<int> expected(static_cast<size_t>(count));
    std::iota(expected.begin(), expected.end(), 0);
    const ShortList<int> list = UpTo(count);
    EXPECT_EQ(list.size(), expected.size());
    EXPECT_EQ(list.empty(), count == 0);
    EXPECT_EQ(std::vector<int>(list), expected);
    EXPECT_EQ(list, expected);
    EXPECT_EQ(ShortList<int>(expected), list);
    if (count > 0) {
      EXPECT_EQ(list.front(), 0);
      EXPECT_EQ(list.back(), count - 1);
      EXPECT_NE(list, UpTo(count - 1));
    }
  }
}

TEST(ShortList, CopiesAndMovesBetweenShortAndLong) {
  for (int from : {2, 50}) {
    for (int to : {0, 3, 70}) {
      const ShortList<int> source = UpTo(from);
      ShortList<int> copied = UpTo(to), moved = UpTo(to), replaced = source;
      copied = source;
      EXPECT_EQ(copied, source);
      moved = std::move(replaced);
      EXPECT_EQ(moved, source);
      ShortList<int> made(std::move(moved));
      EXPECT_EQ(made, source);
      EXPECT_TRUE(moved.empty());  // NOLINT: it is, so that it may be used again
      moved.push_back(5);
      EXPECT_EQ(moved, (ShortList<int>{5}));
      copied = *&copied;
      EXPECT_EQ(copied, source);
    }
  }
}

TEST(ShortList, LosesElements) {
  ShortList<int> list = UpTo(9);
  list.EraseIf([](int i) { return i % 3 == 0; });
  EXPECT_EQ(list, (ShortList<int>{1, 2, 4, 5, 7, 8}));
  list.pop_back();
  EXPECT_EQ(list.back(), 7);
  list.clear();
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(UpTo(2), (ShortList<int>{0, 1}));
}

}  // namespace
}  // namespace hlo
