#include "cpu/library/bind.h"
#include "cpu/library/select_places.h"
#include "cpu/library/sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "hlo/evaluator.h"
#include "library_testing.h"

namespace cpu {
namespace {

using namespace cpu::testing;  // NOLINT
using hlo::Builder;
using hlo::Computation;
using hlo::Dimensions;
using hlo::Value;

template <typename T>
bool Less(const void* const* scalars) {
  return *static_cast<const T*>(scalars[0]) < *static_cast<const T*>(scalars[1]);
}

Computation* Comparator(Builder& builder, const std::vector<ElementType>& types, int64_t key,
                        hlo::ComparisonDirection direction) {
  std::vector<Shape> parameters;
  for (ElementType type : types) parameters.insert(parameters.end(), 2, Shape::Scalar(type));
  auto kind =
      hlo::IsFloat(types[key]) ? hlo::ComparisonType::kTotalOrder : hlo::ComparisonType::kNotype;
  return builder.Region("comparator", parameters, [&](Builder& b, const std::vector<Value>& p) {
    return std::vector<Value>{b.Compare(p[2 * key], p[2 * key + 1], direction, kind)};
  });
}

// Sorts keys and their positions through `comparator` and through the recognised order; both must
// agree with the reference evaluator.
void CheckKeys(ElementType type, const Dimensions& dimensions, int64_t dimension,
               hlo::ComparisonDirection direction, SortComparator native) {
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  Builder builder(module.entry());
  Shape keys(type, dimensions), positions(ElementType::kS32, dimensions);
  Computation* comparator = Comparator(builder, {ElementType::kS32, type}, 1, direction);
  Literal a(positions), b = RandomLiteral(keys, 11);
  for (size_t i = 0; i < a.data<int32_t>().size(); ++i) {
    a.mutable_data<int32_t>()[i] = static_cast<int32_t>(i);
  }
  Value first = builder.Parameter(positions), second = builder.Parameter(keys);
  Value sort = builder.Sort({first, second}, dimension, true, comparator);
  auto expected = hlo::EvaluateInstruction(*sort, {a, b});
  auto order = RecognizeSortOrder(*comparator);
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(order->operand, 1);
  for (bool recognized : {true, false}) {
    if (!recognized && native == nullptr) continue;
    Literal x(positions), y(keys);
    SortOperand operands[] = {
        {a.bytes(), x.mutable_bytes(), 4},
        {b.bytes(), y.mutable_bytes(), static_cast<int64_t>(hlo::ByteWidth(type))}};
    SortRows(ThreadPool::Default(), dimensions, dimension, operands, native,
             recognized ? order : std::nullopt);
    EXPECT_EQ(x, expected[0]) << hlo::ShortName(type);
    EXPECT_EQ(y, expected[1]) << hlo::ShortName(type);
  }
}

bool LessSecondS32(const void* const* scalars) { return Less<int32_t>(scalars + 2); }
bool LessSecondF32(const void* const* scalars) { return Less<float>(scalars + 2); }

TEST(Sort, MatchesTheEvaluator) {
  using enum hlo::ComparisonDirection;
  for (const Dimensions& dimensions :
       {Dimensions{1}, Dimensions{17}, Dimensions{5, 300}, Dimensions{0, 4}, Dimensions{3, 4, 5}}) {
    for (int64_t d = 0; d < static_cast<int64_t>(dimensions.size()); ++d) {
      for (ElementType type :
           {ElementType::kPred, ElementType::kS8, ElementType::kU8, ElementType::kS16,
            ElementType::kU16, ElementType::kS32, ElementType::kU32, ElementType::kS64,
            ElementType::kU64, ElementType::kF32, ElementType::kF64}) {
        SortComparator native = type == ElementType::kS32   ? LessSecondS32
                                : type == ElementType::kF32 ? LessSecondF32
                                                            : nullptr;
        CheckKeys(type, dimensions, d, kLt, native);
        CheckKeys(type, dimensions, d, kGt, nullptr);
      }
    }
  }
}

// Many lines of a few elements, most of them equal in narrow types: side by side, beyond a block's
// lines, and in groups that do not fill a block.
TEST(Sort, ShortLines) {
  using enum hlo::ComparisonDirection;
  for (const Dimensions& dimensions :
       {Dimensions{3, 9, 70}, Dimensions{150, 32}, Dimensions{33, 5, 3}, Dimensions{2, 7, 64}}) {
    for (int64_t d = 1; d < static_cast<int64_t>(dimensions.size()); ++d) {
      for (ElementType type : {ElementType::kPred, ElementType::kU8, ElementType::kS16,
                               ElementType::kS64, ElementType::kF32, ElementType::kF64}) {
        CheckKeys(type, dimensions, d, kLt, nullptr);
        CheckKeys(type, dimensions, d, kGt, nullptr);
      }
    }
  }
}

// As the buffers of a program are, where nobody else reads what is sorted.
TEST(Sort, ShortLinesInPlace) {
  const Dimensions dimensions = {4, 6, 100};
  const Literal given = RandomLiteral(Shape(ElementType::kF64, dimensions), 3);
  Literal in_place = given, apart(given.shape());
  const SortOrder order{.type = ElementType::kF64, .total_order = true};
  for (Literal* output : {&in_place, &apart}) {
    const void* input = output == &apart ? given.bytes() : output->bytes();
    const SortOperand operand = {input, output->mutable_bytes(), 8};
    SortRows(ThreadPool::Default(), dimensions, 1, {&operand, 1}, nullptr, order);
  }
  EXPECT_EQ(in_place, apart);
}

// They are parted by their highest bits first; those of 16 bits are equal in great numbers.
TEST(Sort, LinesBeyondTheCache) {
  for (ElementType type :
       {ElementType::kS16, ElementType::kF32, ElementType::kS64, ElementType::kF64}) {
    CheckKeys(type, {30000}, 0, hlo::ComparisonDirection::kLt, nullptr);
    CheckKeys(type, {30000}, 0, hlo::ComparisonDirection::kGt, nullptr);
  }
}

// Wide keys are told apart by their highest bits first: here many are equal in these, some in all.
TEST(Sort, KeysThatDifferInTheirLowestBitsAlone) {
  constexpr int64_t kCount = 50000;
  const Shape shape(ElementType::kU64, {kCount});
  Literal keys(shape), positions(shape), x(shape), y(shape);
  for (int64_t i = 0; i < kCount; ++i) {
    const uint64_t mixed = static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u;
    keys.mutable_data<uint64_t>()[i] = (mixed >> 62) << 60 | (mixed >> 20 & 4095);
    positions.mutable_data<uint64_t>()[i] = i;
  }
  const SortOrder order{.operand = 0, .type = ElementType::kU64};
  const SortOperand operands[] = {{keys.bytes(), x.mutable_bytes(), 8},
                                  {positions.bytes(), y.mutable_bytes(), 8}};
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    SortRows(pool, shape.dimensions(), 0, operands, nullptr, order);
    const auto sorted = x.data<uint64_t>(), at = y.data<uint64_t>();
    for (int64_t i = 1; i < kCount; ++i) {
      ASSERT_EQ(sorted[i], keys.data<uint64_t>()[at[i]]);
      ASSERT_TRUE(sorted[i - 1] < sorted[i] || (sorted[i - 1] == sorted[i] && at[i - 1] < at[i]))
          << i;
    }
  }
}

TEST(Sort, ResultsThatNobodyReadsAreNotWritten) {
  const std::vector<int32_t> keys = {3, 1, 2}, values = {30, 10, 20};
  std::vector<int32_t> out(3);
  const SortOperand operands[] = {{keys.data(), nullptr, 4}, {values.data(), out.data(), 4}};
  SortRows(ThreadPool::Default(), {3}, 0, operands, Less<int32_t>);
  EXPECT_EQ(out, (std::vector<int32_t>{10, 20, 30}));
}

TEST(Sort, LongLinesAreSortedInParallel) {
  constexpr int64_t kCount = 200000;
  Shape shape(ElementType::kS32, {kCount});
  Literal a = RandomLiteral(shape, 3), positions(shape);
  for (int64_t i = 0; i < kCount; ++i) positions.mutable_data<int32_t>()[i] = i;
  SortOrder order{.operand = 0, .type = ElementType::kS32};
  ThreadPool pool(3);
  for (bool keyed : {true, false}) {
    Literal x(shape), y(shape);
    SortOperand operands[] = {{a.bytes(), x.mutable_bytes(), 4},
                              {positions.bytes(), y.mutable_bytes(), 4}};
    SortRows(pool, shape.dimensions(), 0, operands, Less<int32_t>,
             keyed ? std::optional(order) : std::nullopt);
    auto keys = x.data<int32_t>(), at = y.data<int32_t>();
    for (int64_t i = 1; i < kCount; ++i) {
      ASSERT_TRUE(keys[i - 1] < keys[i] || (keys[i - 1] == keys[i] && at[i - 1] < at[i])) << i;
    }
  }
}

TEST(Sort, FloatsInTotalOrder) {
  float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  std::vector<float> values = {nan, 1, -0.0f, inf, 0.0f, -nan, -inf, -1};
  std::vector<float> out(values.size());
  SortOperand operand{values.data(), out.data(), 4};
  SortOrder order{.operand = 0, .type = ElementType::kF32, .total_order = true};
  SortRows(ThreadPool::Default(), {8}, 0, {&operand, 1}, nullptr, order);
  EXPECT_TRUE(std::isnan(out[0]) && std::signbit(out[0]));
  EXPECT_EQ(out[1], -inf);
  EXPECT_EQ(out[2], -1);
  EXPECT_TRUE(out[3] == 0 && std::signbit(out[3]));
  EXPECT_TRUE(out[4] == 0 && !std::signbit(out[4]));
  EXPECT_EQ(out[6], inf);
  EXPECT_TRUE(std::isnan(out[7]) && !std::signbit(out[7]));
}

TEST(Sort, AContradictoryComparatorIsHarmless) {
  std::vector<int32_t> values(5000), out(5000, -1);
  for (int i = 0; i < 5000; ++i) values[i] = i;
  SortOperand operand{values.data(), out.data(), 4};
  SortRows(ThreadPool::Default(), {5000}, 0, {&operand, 1},
           [](const void* const*) { return true; });
  std::sort(out.begin(), out.end());
  EXPECT_EQ(out, values);
}

TEST(TopK, LargestWithTheirIndices) {
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  Builder builder(module.entry());
  Literal a = Literal::FromVector<float>({3, 1, 4, 1, 5, 9, 2, 6, 5, 3}, {2, 5});
  hlo::CustomCallAttributes attributes;
  attributes.target = "mhlo.topk";
  Shape result = Shape::Tuple({Shape(ElementType::kF32, {2, 3}), Shape(ElementType::kS32, {2, 3})});
  auto got =
      RunLibraryCall(*builder.CustomCall({builder.Parameter(a.shape())}, result, attributes), {a});
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0], Literal::FromVector<float>({5, 4, 3, 9, 6, 5}, {2, 3}));
  EXPECT_EQ(got[1], Literal::FromVector<int32_t>({4, 2, 0, 0, 2, 3}, {2, 3}));
}

TEST(TopK, NeedsResultsThatHoldWhatIsWritten) {
  const auto is_bound = [](const Shape& values, const Shape& indices) {
    hlo::Module module;
    module.set_entry(module.AddComputation("main"));
    Builder builder(module.entry());
    hlo::CustomCallAttributes attributes;
    attributes.target = "TopK";
    auto* operand = builder.Parameter(Shape(ElementType::kF32, {4, 5}));
    return BindTopK(*builder.CustomCall({operand}, Shape::Tuple({values, indices}), attributes)) !=
           nullptr;
  };
  const Shape values(ElementType::kF32, {4, 3}), indices(ElementType::kS32, {4, 3});
  EXPECT_TRUE(is_bound(values, indices));
  EXPECT_FALSE(is_bound(Shape(ElementType::kF32, {1, 3}), indices));
  EXPECT_FALSE(is_bound(Shape(ElementType::kF16, {4, 3}), indices));
  EXPECT_FALSE(is_bound(Shape(ElementType::kF32, {4, 6}), Shape(ElementType::kS32, {4, 6})));
  EXPECT_FALSE(is_bound(values, Shape(ElementType::kS32, {4, 2})));
  EXPECT_FALSE(is_bound(values, Shape(ElementType::kS32, {3, 3})));
}

// Keys of few bits are mostly equal, and those of many differ in their first digit already.
TEST(SelectPlaces, AreThoseOfAStableSort) {
  std::mt19937_64 random(5);
  for (const int bits : {0, 1, 3, 12, 40, 64}) {
    for (const int64_t count : {1, 70, 1000, 20000}) {
      std::vector<uint64_t> keys(count);
      for (uint64_t& key : keys) key = bits == 0 ? 7 : random() >> (64 - bits);
      std::vector<uint32_t> sorted(count);
      std::iota(sorted.begin(), sorted.end(), 0);
      std::ranges::stable_sort(sorted, {}, [&](uint32_t i) { return keys[i]; });
      for (const int64_t first : {int64_t{0}, count / 100, count / 2, count - 1}) {
        for (const int64_t wanted : {int64_t{1}, std::min<int64_t>(300, count - first)}) {
          std::vector<uint32_t> positions(wanted);
          SelectPlaces(keys, first, positions);
          EXPECT_TRUE(std::ranges::equal(positions, std::span(sorted).subspan(first, wanted)))
              << wanted << " from " << first << " of " << count << " keys of " << bits << " bits";
        }
      }
    }
  }
}

// Lines as columns, more than a block of them, with equal keys and fewer rows than are collected.
TEST(SelectFirstOfLines, AreThoseOfEachLine) {
  std::mt19937_64 random(5);
  const SortOrder order{.type = ElementType::kU64};
  for (const int bits : {0, 3, 40, 64}) {
    for (const int64_t count : {1, 5, 7, 1000}) {
      for (const int64_t lines : {1, 8, 37}) {
        // (Between elements of other lines.)
        const int64_t stride = lines + 3;
        std::vector<uint64_t> keys(count * stride);
        for (uint64_t& key : keys) key = bits == 0 ? ~uint64_t{0} : random() >> (64 - bits);
        const int64_t wanted = std::min<int64_t>(5, count);
        std::vector<uint32_t> positions(wanted * lines);
        const auto* start = reinterpret_cast<const std::byte*>(keys.data());
        SelectFirstOfLines(order, {start, count, stride, lines}, sizeof(uint64_t), positions);
        for (int64_t line = 0; line < lines; ++line) {
          std::vector<uint32_t> sorted(count);
          std::iota(sorted.begin(), sorted.end(), 0);
          std::ranges::stable_sort(sorted, {}, [&](uint32_t i) { return keys[i * stride + line]; });
          EXPECT_TRUE(std::ranges::equal(std::span(positions).subspan(line * wanted, wanted),
                                         std::span(sorted).first(wanted)))
              << "line " << line << " of " << lines << ", " << count << " keys of " << bits
              << " bits";
        }
      }
    }
  }
}

}  // namespace
}  // namespace cpu
