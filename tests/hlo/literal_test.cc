#include "hlo/literal.h"

#include <gtest/gtest.h>

#include "hlo/error.h"

namespace hlo {
namespace {

TEST(Literal, CopiesShareUntilWritten) {
  Literal a = Literal::FromVector<float>({1, 2, 3});
  Literal b = a;
  EXPECT_EQ(a.bytes(), b.bytes());
  b.mutable_data<float>()[0] = 7;
  EXPECT_NE(a.bytes(), b.bytes());
  EXPECT_EQ(a.data<float>()[0], 1);
  EXPECT_FALSE(a == b);
}

TEST(Literal, SplatAndIsAll) {
  Literal splat =
      Literal::Splat(Shape(ElementType::kBF16, {2, 3}), Literal::Scalar(BFloat16(1.5f)));
  EXPECT_TRUE(splat.IsSplat());
  EXPECT_TRUE(splat.IsAll(1.5));
  EXPECT_FALSE(splat.IsAll(1));
  EXPECT_EQ(splat.AsDouble(5), 1.5);
  EXPECT_EQ(splat.ToString(), "bf16[2,3] {1.5, 1.5, 1.5, 1.5, 1.5, 1.5}");
}

TEST(Literal, WrongTypeAndSizeThrow) {
  Literal a = Literal::FromVector<float>({1, 2, 3});
  EXPECT_THROW(a.data<int32_t>(), Error);
  EXPECT_THROW(Literal::FromVector<float>({1, 2, 3}, {2, 2}), Error);
  EXPECT_THROW(a.AsDouble(3), Error);
}

TEST(Literal, EqualLiteralsHashEqual) {
  Literal a = Literal::FromVector<int64_t>({1, 2, 3});
  Literal b = Literal::FromVector<int64_t>({1, 2, 3});
  EXPECT_TRUE(a == b);
  EXPECT_EQ(a.Hash(), b.Hash());
  EXPECT_FALSE(a == Literal::FromVector<int64_t>({1, 2, 3}, {3, 1}));
}

TEST(Literal, NumbersConvert) {
  EXPECT_EQ(Literal::FromDouble(ElementType::kPred, 0.5).AsInt(), 1);
  EXPECT_EQ(Literal::FromInt(ElementType::kS8, -3).AsInt(), -3);
  EXPECT_EQ(Literal::FromInt(ElementType::kU64, -1).data<uint64_t>()[0], ~uint64_t{0});
  EXPECT_EQ(Literal::FromDouble(ElementType::kC64, 2.5).AsDouble(), 2.5);
}

}  // namespace
}  // namespace hlo
