#include "lazy/operation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <complex>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include "lazy/data.h"
#include "lazy/node.h"
#include "lazy/op.h"

namespace lazy {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

hlo::Value Times(hlo::Builder& b, hlo::Value x, double factor) {
  return b.Multiply(x, b.Full(x->shape(), factor));
}

using Everything =
    std::tuple<std::optional<double>, std::vector<double>, std::array<float, 2>,
               std::complex<double>, std::variant<bool, int64_t, double, std::complex<double>>,
               std::pair<float, int64_t>, std::vector<std::optional<double>>>;
hlo::Value WithEverything(hlo::Builder& b, hlo::Value x, Everything) { return b.Negate(x); }

Value Leaf(int64_t size) {
  SharedShape shape = InternShape(hlo::Shape(hlo::ElementType::kF32, {size}));
  Reference<Data> data(new Data(nullptr, shape.get(), nullptr));
  return {Node::MakeData(std::move(data), shape.get()), 0};
}

template <auto f, typename Attribute>
Value Record(const Value& x, Attribute attribute) {
  OperandList operands;
  operands.Add(x);
  return {Op<f>::Record(operands, {attribute}), 0};
}

void GiveUpAllUnused() {
  OperationTable::GiveUpUnused();  // were perhaps recorded since the last time
  OperationTable::GiveUpUnused();
}

TEST(AttributeTest, AreToldApartByTheirBits) {
  const Value x = Leaf(2);
  auto operation = [&](double factor) { return Record<&Times>(x, factor).node->operation(); };
  EXPECT_EQ(operation(kNaN), operation(kNaN));
  EXPECT_NE(operation(kNaN), operation(-kNaN));
  EXPECT_NE(operation(0.0), operation(-0.0));
  EXPECT_EQ(operation(-0.0), operation(-0.0));
}

TEST(AttributeTest, OfEveryKindAreToldApartByTheirBits) {
  const Value x = Leaf(2);
  auto of = [](double n) {
    const auto f = static_cast<float>(n);
    return Everything(n, {n}, {f, f}, {n, n}, std::complex<double>(n, n), {f, 1}, {n});
  };
  auto operation = [&](const Everything& attributes) {
    return Record<&WithEverything>(x, attributes).node->operation();
  };
  EXPECT_EQ(operation(of(kNaN)), operation(of(kNaN)));
  const Everything zeros = of(0.0), minus_zeros = of(-0.0);
  auto expect_difference = [&]<size_t i>(std::integral_constant<size_t, i>) {
    Everything changed = zeros;
    std::get<i>(changed) = std::get<i>(minus_zeros);
    EXPECT_NE(operation(changed), operation(zeros)) << "attribute " << i;
    EXPECT_FALSE(SameAttribute(changed, zeros)) << "attribute " << i;
  };
  [&]<size_t... i>(std::index_sequence<i...>) {
    (expect_difference(std::integral_constant<size_t, i>()), ...);
  }(std::make_index_sequence<std::tuple_size_v<Everything>>());
}

TEST(OperationTest, IsGivenUpWhenNobodyRefersToIt) {
  GiveUpAllUnused();
  const size_t operations = OperationTable::TotalCount(), shapes = InternedShapeCount();
  {
    Value y = Record<&Times>(Leaf(1001), 2.0);
    GiveUpAllUnused();
    EXPECT_EQ(OperationTable::TotalCount(), operations + 2);  // of the leaf, too
    EXPECT_EQ(InternedShapeCount(), shapes + 1);
    EXPECT_EQ(y.shape().dimensions(), hlo::Dimensions{1001});
  }
  GiveUpAllUnused();
  EXPECT_EQ(OperationTable::TotalCount(), operations);
  EXPECT_EQ(InternedShapeCount(), shapes);
}

TEST(OperationTest, IsKeptWhileItIsRecordedAgain) {
  const Value x = Leaf(1002);
  const uint64_t number = Record<&Times>(x, 2.0).node->operation()->number();
  for (int i = 0; i < 3; ++i) {
    OperationTable::GiveUpUnused();
    EXPECT_EQ(Record<&Times>(x, 2.0).node->operation()->number(), number);
  }
  GiveUpAllUnused();
  EXPECT_NE(Record<&Times>(x, 2.0).node->operation()->number(), number);
}

TEST(OperationTest, IsKeptByAReference) {
  const Value x = Leaf(1003);
  Value y = Record<&Times>(x, 2.0);
  const uint64_t number = y.node->operation()->number();
  OperationReference kept(y.node->operation());
  OperationReference copy = kept;
  y = Value();
  kept = OperationReference();
  GiveUpAllUnused();
  EXPECT_EQ(Record<&Times>(x, 2.0).node->operation()->number(), number);
}

TEST(OperationTest, AreBoundedThoughOthersAreMadeAgainAndAgain) {
  GiveUpAllUnused();
  constexpr size_t kKept = 65536;  // TORCH_XLA_OPERATIONS_KEPT's default
  const size_t before = OperationTable::TotalCount();
  const Value x = Leaf(1006);
  const uint64_t number = Record<&Times>(x, 2.0).node->operation()->number();
  size_t most = 0;
  for (size_t i = 0; i < 2 * kKept; ++i) {
    Record<&Times>(x, 3.0 + static_cast<double>(i));
    if (i % 1000 == 0) Record<&Times>(x, 2.0);
    most = std::max(most, OperationTable::TotalCount());
  }
  EXPECT_GT(most, before + kKept / 2);
  EXPECT_LE(most, before + kKept + 10);
  EXPECT_EQ(Record<&Times>(x, 2.0).node->operation()->number(), number);  // recorded all the time
  GiveUpAllUnused();
}

TEST(OperationTest, AreGivenUpWhileOthersRecord) {
  std::atomic<bool> done{false};
  std::thread sweeper([&] {
    while (!done.load()) OperationTable::GiveUpUnused();
  });
  std::vector<std::thread> recorders;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    recorders.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        const int64_t size = 1 + i % 7;
        Value y = Record<&Times>(Record<&Times>(Leaf(size), 2.0), 3.0);
        wrong += y.shape().dimensions() != hlo::Dimensions{size};
      }
    });
  }
  for (std::thread& recorder : recorders) recorder.join();
  done = true;
  sweeper.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ShapeTest, HasOneAddressWhileItIsHeld) {
  const hlo::Shape shape(hlo::ElementType::kF64, {1004, 3});
  const size_t before = InternedShapeCount();
  SharedShape a = InternShape(shape), b = InternShape(shape);
  EXPECT_EQ(a.get(), b.get());
  a = SharedShape();
  EXPECT_EQ(InternShape(shape).get(), b.get());
  b = SharedShape();
  EXPECT_EQ(InternedShapeCount(), before);
}

TEST(ShapeTest, MayBeInternedWhileTheLastHolderLetsGo) {
  const hlo::Shape shape(hlo::ElementType::kF64, {1005});
  const size_t before = InternedShapeCount();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        SharedShape held = InternShape(shape);
        SharedShape copy = held;
        wrong += *copy != shape;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(InternedShapeCount(), before);
}

}  // namespace
}  // namespace lazy
