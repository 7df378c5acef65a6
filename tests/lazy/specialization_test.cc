// Which program serves which indices, and which one is compiled next.
#include "lazy/specialization.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>

#include "lazy/data.h"
#include "lazy/device.h"
#include "lazy/metrics.h"
#include "lazy/part.h"
#include "lazy/program_cache.h"
#include "lazy/storage.h"
#include "lazy/sync.h"

namespace lazy {
namespace {

using Mask = std::vector<bool>;

Specialization Next(const std::vector<Specialization>& known, Assignment assignment) {
  std::vector<const Specialization*> pointers;
  for (const Specialization& one : known) pointers.push_back(&one);
  return Specialize(pointers, std::move(assignment));
}

TEST(SpecializationTest, TheFirstHasConstantsOnly) {
  Specialization first = Next({}, {3, 7});
  EXPECT_EQ(first.varying_count(), 0);
  EXPECT_TRUE(first.Serves({3, 7}));
  EXPECT_FALSE(first.Serves({3, 8}));
  EXPECT_FALSE(first.Serves({2, 7}));
}

TEST(SpecializationTest, TheSecondTakesWhatDiffers) {
  Specialization second = Next({Next({}, {3, 7, 0})}, {3, 8, 0});
  EXPECT_EQ(second.varies, (Mask{false, true, false}));
  EXPECT_TRUE(second.Serves({3, 7, 0}));
  EXPECT_TRUE(second.Serves({3, -1, 0}));
  EXPECT_FALSE(second.Serves({4, 8, 0}));
  EXPECT_FALSE(second.Serves({3, 8, 1}));
}

TEST(SpecializationTest, WhatVariedOnceVariesFromThenOn) {
  std::vector<Specialization> known{Next({}, {0, 0, 0})};
  known.push_back(Next(known, {1, 0, 0}));
  known.push_back(Next(known, {0, 5, 0}));
  EXPECT_EQ(known.back().varies, (Mask{true, true, false}));
  EXPECT_TRUE(known.back().Serves({9, 9, 0}));
}

// Also the one that a program has, and whose value no other program knows.
TEST(SpecializationTest, ConstantsOfEachProgramCount) {
  std::vector<Specialization> known{{{0, 0}, {}}, {{0, 1}, {true, false}}};
  EXPECT_EQ(Next(known, {0, 2}).varies, (Mask{true, true}));
}

TEST(SpecializationTest, CompilationsAreBounded) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Specialization> known;
    for (int step = 0; step < 200; ++step) {
      Assignment wanted(20);
      // Some vary often, some seldom.
      for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = random() % (100 * (i + 1)) < 50;
      bool is_served = false;
      for (const Specialization& one : known) is_served = is_served || one.Serves(wanted);
      if (is_served) continue;
      known.push_back(Next(known, wanted));
      ASSERT_TRUE(known.back().Serves(wanted));
    }
    EXPECT_LE(known.size(), kMostPartial + 1);
  }
}

#ifdef PLUGIN_CPU

hlo::Value Sum(hlo::Builder& b, hlo::Value x, hlo::Value y) { return b.Add(x, y); }
hlo::Value RowOf(hlo::Builder& b, hlo::Value x, Index at) { return TakePart(b, x, 0, at, 1); }

class DynamicProgramTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("PJRT_DEVICE", "LIBRARY", 1);
    setenv("PJRT_LIBRARY_PATH", PLUGIN_CPU, 1);
  }
  DynamicProgramTest() { ClearComputationCache(); }

  // The sum of two elements of 0, 1, 2, …, 9.
  float SumAt(int64_t i, int64_t j) {
    static const SharedShape shape = InternShape(hlo::Shape(hlo::ElementType::kF32, {10}));
    std::vector<float> numbers;
    for (int n = 0; n < 10; ++n) numbers.push_back(static_cast<float>(n));
    Device* device = Runtime::Get().device(0);
    const Value x{Node::MakeData(Data::FromHost(device, *shape, numbers.data()), shape.get()), 0};
    auto row = [&](int64_t at) {
      OperandList operands;
      operands.Add(x);
      operands.Add({Node::MakeIndex(at), 0});
      return Value{Op<&RowOf>::Record(operands, std::tuple()), 0};
    };
    OperandList operands;
    operands.Add(row(i));
    operands.Add(row(j));
    auto storage = Storage::Make(device, {Op<&Sum>::Record(operands, std::tuple()), 0});
    Sync(device, true);
    return Materialized(storage)->buffer().ToLiteral().data<float>()[0];
  }

  static int64_t Count(const char* name) {
    int64_t count = 0;
    return CounterValue(name, &count) ? count : 0;
  }
};

TEST_F(DynamicProgramTest, TheSecondValueIsTheLastThatCompiles) {
  const int64_t compiled = Count("ProgramCompile"), dynamic = Count("DynamicCompile");
  for (int64_t i : {2, 5, 0, 9, 2, 7}) EXPECT_EQ(SumAt(i, 3), static_cast<float>(i + 3));
  EXPECT_EQ(Count("ProgramCompile") - compiled, 2);
  EXPECT_EQ(Count("DynamicCompile") - dynamic, 1);
  EXPECT_EQ(SumAt(2, 8), 10.0f);  // what has not varied yet is a constant of both
  EXPECT_EQ(SumAt(4, 1), 5.0f);
  EXPECT_EQ(Count("ProgramCompile") - compiled, 3);
  EXPECT_EQ(ComputationCacheStatistics().entries, 3);
}

TEST_F(DynamicProgramTest, ProgramsThatWereDroppedAreCompiledAgain) {
  EXPECT_EQ(SumAt(1, 1), 2.0f);
  EXPECT_EQ(SumAt(2, 1), 3.0f);
  ClearComputationCache();
  EXPECT_EQ(SumAt(3, 1), 4.0f);
  EXPECT_EQ(ComputationCacheStatistics().entries, 1);
}

#endif

}  // namespace
}  // namespace lazy
