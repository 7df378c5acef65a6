#include "lazy/graph.h"

#include <gtest/gtest.h>

#include "hlo/evaluator.h"
#include "lazy/data.h"
#include "lazy/device.h"
#include "lazy/op.h"
#include "lazy/part.h"
#include "lazy/shown_constants.h"
#include "lazy/storage.h"

namespace lazy {
namespace {

using hlo::ElementType;
using hlo::Literal;
using hlo::Shape;

hlo::Value Add(hlo::Builder& b, hlo::Value x, hlo::Value y) { return b.Add(x, y); }
hlo::Value Scale(hlo::Builder& b, hlo::Value x, Scalar factor) {
  return b.Multiply(x, b.BroadcastInDim(factor, x->dimensions(), {}));
}
hlo::Value Sum(hlo::Builder& b, hlo::Value x, hlo::Dimensions dimensions) {
  return b.Reduce(hlo::Opcode::kAdd, x, dimensions);
}
std::array<hlo::Value, 2> Both(hlo::Builder& b, hlo::Value x, bool want_second) {
  return {b.Negate(x), want_second ? b.Abs(x) : nullptr};
}
hlo::Value Concat(hlo::Builder& b, std::vector<hlo::Value> xs, std::optional<hlo::Value> last) {
  if (last) xs.push_back(*last);
  return b.Concatenate(xs, 0);
}

Value Leaf(hlo::Dimensions dimensions) {
  SharedShape held = InternShape(Shape(ElementType::kF32, std::move(dimensions)));
  ShapeRef shape = held.get();
  return {Node::MakeData(Reference<Data>(new Data(nullptr, shape, nullptr)), shape), 0};
}

Value Number(float value) { return {Node::MakeScalar(ElementType::kF32, &value), 0}; }

template <auto f, typename... Attributes>
Value Record(std::initializer_list<Value> operands, Attributes... attributes) {
  OperandList list;
  for (const Value& operand : operands) list.Add(operand);
  return {Op<f>::Record(list, std::make_tuple(attributes...)), 0};
}

std::vector<uint64_t> Signature(const Value& root) {
  return Graph(std::span<const Value>(&root, 1)).signature();
}

TEST(GraphTest, EqualGraphsHaveEqualSignatures) {
  auto build = [](float factor) {
    Value x = Leaf({2, 3}), y = Leaf({2, 3});
    return Record<&Scale>({Record<&Add>({x, y}), Number(factor)});
  };
  // The number is data: another one is the same graph.
  EXPECT_EQ(Signature(build(2)), Signature(build(3)));
}

TEST(GraphTest, ShapesAttributesAndSharingDistinguishGraphs) {
  Value x = Leaf({2, 3}), y = Leaf({2, 3}), z = Leaf({3, 2});
  auto xy = Signature(Record<&Add>({x, y}));
  EXPECT_NE(xy, Signature(Record<&Add>({x, x})));
  EXPECT_NE(xy, Signature(Record<&Add>({z, z})));
  EXPECT_NE(Signature(Record<&Sum>({x}, hlo::Dimensions{0})),
            Signature(Record<&Sum>({x}, hlo::Dimensions{1})));
}

TEST(GraphTest, ProgramComputesTheGraph) {
  Value x = Leaf({2}), y = Leaf({2});
  Value root =
      Record<&Sum>({Record<&Scale>({Record<&Add>({x, y}), Number(10)})}, hlo::Dimensions{0});
  Graph graph(std::span<const Value>(&root, 1));
  ASSERT_EQ(graph.data_leaves().size(), 2u);
  ASSERT_EQ(graph.scalar_packs().size(), 1u);
  auto module = graph.Lower("test");
  auto results = hlo::Evaluate(
      *module, {Literal::FromVector<float>({1, 2}), Literal::FromVector<float>({3, 4}),
                Literal(Shape(ElementType::kF32, {1}), graph.scalar_packs()[0].bytes.data())});
  EXPECT_EQ(results[0], Literal::Scalar(100.0f));
}

TEST(GraphTest, EachValueIsOneResult) {
  Value x = Leaf({2});
  Value negated = Record<&Both>({x}, true), sum = Record<&Add>({x, x});
  Value absolute{negated.node, 1};
  const std::vector<Value> roots = {absolute, sum, negated, absolute, negated, sum};
  Graph graph(roots);
  EXPECT_EQ(graph.results(), (std::vector<Value>{absolute, sum, negated}));
  EXPECT_EQ(graph.result_of_root(), (std::vector<uint32_t>{0, 1, 2, 0, 2, 1}));
}

TEST(GraphTest, MissingResultsHaveNoShape) {
  Value x = Leaf({2});
  Value one = Record<&Both>({x}, false), two = Record<&Both>({x}, true);
  EXPECT_EQ(one.node->shape(1), nullptr);
  EXPECT_NE(two.node->shape(1), nullptr);
}

TEST(GraphTest, ListsAndOptionalsAreOperands) {
  auto record = [](std::vector<Value> xs, const Value* last) {
    OperandList list;
    for (const Value& x : xs) list.Add(x);
    list.AddCount(static_cast<uint32_t>(xs.size()));
    list.AddCount(last != nullptr);
    if (last != nullptr) list.Add(*last);
    return Op<&Concat>::Record(list, {});
  };
  Value x = Leaf({2});
  auto three = record({x, x}, &x);
  EXPECT_EQ(three->shape(0)->dimensions(), hlo::Dimensions{6});
  EXPECT_EQ(record({x, x}, nullptr)->shape(0)->dimensions(), hlo::Dimensions{4});
  EXPECT_NE(three->operation(), record({x, x, x}, nullptr)->operation());
}

TEST(GraphTest, OperationsAreInterned) {
  Value x = Leaf({4}), y = Leaf({4});
  EXPECT_EQ(Record<&Add>({x, y}).node->operation(), Record<&Add>({y, x}).node->operation());
}

TEST(GraphTest, LoweringErrorsSurfaceWhenRecording) {
  EXPECT_THROW(Record<&Add>({Leaf({2}), Leaf({3})}), hlo::Error);
}

TEST(GraphTest, LongChainsAreDestroyedWithoutRecursion) {
  Value x = Leaf({2});
  for (int i = 0; i < 300000; ++i) x = Record<&Add>({x, x});
  Graph graph(std::span<const Value>(&x, 1));
  EXPECT_EQ(graph.nodes().size(), 300001u);
}

hlo::Value TakeOne(hlo::Builder& b, hlo::Value x, Index at) { return TakePart(b, x, 0, at, 1); }

hlo::Value Cubed(hlo::Builder& b, hlo::Value x) { return b.Multiply(x, b.Multiply(x, x)); }

TEST(GraphTest, TextHasConstantsThatAreAttributesFirst) {
  ShowConstant(Op<&Cubed>::kind(),
               [](const Operation&) { return ShownConstant{ElementType::kS64, "3"}; });
  Value cube = Record<&Cubed>({Leaf({2})});
  const std::string text = Graph(std::span<const Value>(&cube, 1)).ToText();
  EXPECT_EQ(text.find("IR {\n  %0 = s64[] prim::Constant(), value=3, xla_shape=s64[]\n  %1 = f32"),
            0u)
      << text;
  EXPECT_NE(text.find("(%1, %0)"), std::string::npos) << text;
}

Value At(int64_t index) { return {Node::MakeIndex(index), 0}; }

TEST(GraphTest, IndicesAreNoPartOfTheStructure) {
  Value x = Leaf({4});
  Value second = Record<&TakeOne>({x, At(1)}), third = Record<&TakeOne>({x, At(2)});
  EXPECT_EQ(second.node->operation(), third.node->operation());
  Graph one(std::span<const Value>(&second, 1));
  const auto signature = one.signature();
  const uint64_t structure = one.structure_hash(), hash = one.hash();
  EXPECT_EQ(one.assignment(), Assignment{1});
  EXPECT_NE(one.ToText().find("xla::index(), attributes=(1)"), std::string::npos);
  Graph other(std::span<const Value>(&third, 1));
  EXPECT_EQ(other.signature(), signature);
  EXPECT_EQ(other.structure_hash(), structure);
  EXPECT_NE(other.hash(), hash);
}

TEST(GraphTest, IndicesOfOneGraphAreNotMerged) {
  Value x = Leaf({4});
  Value sum = Record<&Add>({Record<&TakeOne>({x, At(1)}), Record<&TakeOne>({x, At(3)})});
  Graph graph(std::span<const Value>(&sum, 1));
  EXPECT_EQ(graph.assignment(), (Assignment{1, 3}));
  const Literal data = Literal::FromVector<float>({10, 20, 30, 40});
  EXPECT_EQ(hlo::Evaluate(*graph.Lower("test"), {data})[0], Literal::FromVector<float>({60}));
}

TEST(GraphTest, WhatDoesNotVaryIsAConstant) {
  Value x = Leaf({4});
  Value sum = Record<&Add>({Record<&TakeOne>({x, At(1)}), Record<&TakeOne>({x, At(3)})});
  Graph graph(std::span<const Value>(&sum, 1));
  auto is_dynamic = [](hlo::Opcode opcode) { return opcode == hlo::Opcode::kDynamicSlice; };
  EXPECT_FALSE(graph.Lower("test")->Contains(is_dynamic));
  EXPECT_EQ(graph.IndexPack({}).count, 0);
  const std::vector<bool> second = {false, true};
  const ScalarPack pack = graph.IndexPack(second);
  ASSERT_EQ(pack.count, 1);
  auto module = graph.Lower("test", second);
  EXPECT_TRUE(module->Contains(is_dynamic));
  const Literal data = Literal::FromVector<float>({10, 20, 30, 40});
  for (int64_t at : {3, 0}) {
    auto results = hlo::Evaluate(*module, {data, Literal::FromVector<int64_t>({at})});
    EXPECT_EQ(results[0], Literal::FromVector<float>({20 + 10.0f * static_cast<float>(at + 1)}));
  }
}

class DonationTest : public testing::Test {
 protected:
  // Cuts what is pending and plans as a sync does.
  std::vector<Donation> Plan() {
    auto storages = PendingStorages(&device_);
    std::vector<Value> roots;
    std::vector<int64_t> replaced;
    for (const auto& storage : storages) {
      auto [value, replaced_data] = storage->TakePending();
      roots.push_back(std::move(value));
      replaced.push_back(replaced_data);
    }
    Graph graph(roots);
    graph.PlanDonation(replaced, 2);
    return graph.donations();
  }
  Device device_{nullptr, nullptr, 0};
};

TEST_F(DonationTest, ReplacedBufferIsDonated) {
  auto parameter = Storage::Make(&device_, Leaf({2}));
  auto gradient = Storage::Make(&device_, Leaf({2}));
  parameter->set_value(Record<&Add>({parameter->value(), gradient->value()}));
  EXPECT_EQ(Plan(), (std::vector<Donation>{{0, 0}}));
}

TEST_F(DonationTest, BufferThatAnotherTensorHoldsIsNot) {
  auto parameter = Storage::Make(&device_, Leaf({2}));
  auto copy = Storage::Make(&device_, parameter->value());
  parameter->set_value(Record<&Add>({parameter->value(), parameter->value()}));
  EXPECT_TRUE(Plan().empty());
}

TEST_F(DonationTest, BufferThatPendingWorkOfAnotherGraphNeedsIsNot) {
  auto parameter = Storage::Make(&device_, Leaf({2}));
  Value unsynced = Record<&Add>({parameter->value(), parameter->value()});
  parameter->set_value(Record<&Sum>({parameter->value()}, hlo::Dimensions{}));
  EXPECT_TRUE(Plan().empty());
}

TEST_F(DonationTest, ViewsDoNotPreventIt) {
  auto parameter = Storage::Make(&device_, Leaf({2, 3}));
  ViewStep step{ViewStep::Kind::kPermute};
  step.sizes = {1, 0};
  Reference<View> view(new View(parameter, {step}));
  Value transposed = view->Read();
  Value sum = Record<&Sum>({transposed}, hlo::Dimensions{0, 1});
  auto loss = Storage::Make(&device_, std::move(sum));
  transposed = Value();
  parameter->set_value(Record<&Add>({parameter->value(), parameter->value()}));
  EXPECT_EQ(Plan().size(), 1u);
}

TEST_F(DonationTest, EachOfManyBuffersIsDonatedToItsResult) {
  std::vector<Reference<Storage>> parameters;
  std::vector<Donation> expected;
  for (uint32_t i = 0; i < 300; ++i) {
    parameters.push_back(Storage::Make(&device_, Leaf({2})));
    const Value old = parameters.back()->value();
    parameters.back()->set_value(Record<&Add>({old, old}));
    expected.push_back({i, i});
  }
  EXPECT_EQ(Plan(), expected);
}

TEST_F(DonationTest, BufferOfTwoLeavesIsNot) {
  auto parameter = Storage::Make(&device_, Leaf({2}));
  const ShapeRef shape = parameter->value().shape_ref();
  Value other{Node::MakeData(parameter->value().node->data(), shape), 0};
  Value sum = Record<&Add>({parameter->value(), other});
  other = Value();
  parameter->set_value(std::move(sum));
  EXPECT_TRUE(Plan().empty());
}

TEST_F(DonationTest, WishedForBufferIsUnlessItIsLent) {
  auto kept = Storage::Make(&device_, Leaf({2}));
  const Reference<Data> data = kept->value().node->data();
  data->set_may_be_donated(true);
  auto result = Storage::Make(&device_, Record<&Add>({kept->value(), kept->value()}));
  const std::vector<Donation> donated = {{0, 0}};
  {
    const Loan first(*data);
    {
      const Loan second(*data);
      EXPECT_TRUE(Plan().empty());
    }
    EXPECT_TRUE(Plan().empty());
  }
  EXPECT_EQ(Plan(), donated);
}

TEST_F(DonationTest, AnotherShapeIsNot) {
  auto parameter = Storage::Make(&device_, Leaf({2}));
  parameter->set_value(Record<&Sum>({parameter->value()}, hlo::Dimensions{0}));
  EXPECT_TRUE(Plan().empty());
}

}  // namespace
}  // namespace lazy
