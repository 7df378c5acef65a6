#include "lazy/location.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "lazy/data.h"
#include "lazy/graph.h"
#include "lazy/live_data.h"
#include "lazy/op.h"

namespace lazy {
namespace {

const SourceLocation kHere{"/home/me/net.py", 12, "Net.forward"};
const SourceLocation kCaller{"/home/me/train.py", 41, "train"};
const CallPath kCallersPath{&kCaller};
const CallPath kPath{&kHere, &kCallersPath};

hlo::Value Negated(hlo::Builder& b, hlo::Value x) { return b.Negate(x); }

Reference<Data> MakeData(int64_t elements) {
  SharedShape shape = InternShape(hlo::Shape(hlo::ElementType::kF32, {elements}));
  return Reference<Data>(new Data(nullptr, shape.get(), nullptr));
}
Value Leaf() {
  Reference<Data> data = MakeData(3);
  ShapeRef shape = data->shape();
  return {Node::MakeData(std::move(data), shape), 0};
}
Value RecordNegated(const Value& x) {
  OperandList operands;
  operands.Add(x);
  return {Op<&Negated>::Record(operands, {}), 0};
}

TEST(LocationTest, IsNotedWhileThereIsAProvider) {
  Value x = Leaf();
  EXPECT_EQ(LocationOf(RecordNegated(x).node.get()), nullptr);
  SetLocationProvider([](std::span<const Value> operands) {
    SetLeafName(operands[0].node.get(), "argument `x`");
    return &kPath;
  });
  Value noted = RecordNegated(x);
  SetLocationProvider(nullptr);
  EXPECT_EQ(LocationOf(noted.node.get()), &kHere);
  EXPECT_EQ(CallPathOf(noted.node.get())->caller->location, &kCaller);
  EXPECT_EQ(LeafName(x.node.get()), "argument `x`");
  EXPECT_EQ(LocationOf(RecordNegated(x).node.get()), nullptr);
  EXPECT_NE(Graph(std::span<const Value>(&noted, 1))
                .ToText()
                .find("f32[3]{0} aten::negated(%0), scope=aten::negated.1, "
                      "location=Net.forward@net.py:12, xla_shape=f32[3]{0}, ROOT=0\n"),
            std::string::npos);
  // What dies is forgotten, so that nodes at the same address are none of its.
  const Node* address = noted.node.get();
  noted = Value();
  EXPECT_EQ(LocationOf(address), nullptr);
}

TEST(LocationTest, OfWhatComesFromTheHost) {
  EXPECT_EQ(Here(), nullptr);
  SetLocationProvider([](std::span<const Value>) { return &kPath; }, [] { return &kHere; });
  EXPECT_EQ(Here(), &kHere);
  SetLocationProvider(nullptr);
  EXPECT_EQ(Here(), nullptr);
}

TEST(LocationTest, ProgramsHaveThemWhenAskedTo) {
  const bool before = ProgramsHaveLocations();
  SetProgramsHaveLocations(true);
  EXPECT_TRUE(ProgramsHaveLocations());
  SetProgramsHaveLocations(before);
  EXPECT_EQ(ProgramsHaveLocations(), before);
}

TEST(LiveDataTest, ListsTheLargestFirst) {
  static const OperationKind kind{"aten::mul"};
  const size_t before = ListLiveTensors().size();
  Reference<Data> small = MakeData(1001), large = MakeData(100001), twin = MakeData(100001);
  NoteMaker(large.get(), &kind, &kHere);
  NoteMaker(twin.get(), &kind, &kHere);
  std::vector<LiveTensors> tensors = ListLiveTensors();
  ASSERT_EQ(tensors.size(), before + 2);
  EXPECT_EQ(tensors[0].count, 2);
  EXPECT_EQ(tensors[0].bytes, 800008);
  EXPECT_EQ(tensors[0].made_by, "aten::mul");
  const std::string text = DescribeLiveTensors(1);
  EXPECT_NE(text.find("800008 bytes: 2 x f32[100001], made by aten::mul at /home/me/net.py:12 "
                      "(Net.forward)"),
            text.npos)
      << text;
  EXPECT_EQ(text.find("f32[1001]"), text.npos);
  twin->Drop();
  EXPECT_EQ(ListLiveTensors()[0].count, 1);
}

TEST(LocationTest, SectionsStandBeforeTheOperation) {
  SetLocationProvider([](std::span<const Value>) -> const CallPath* { return nullptr; });
  Value inside;
  {
    const Section step("step");
    {
      const Section first("block");
    }
    const Section second("block");
    inside = RecordNegated(Leaf());
    EXPECT_EQ(*CurrentSections(), "step.1/block.2/");
  }
  Value outside = RecordNegated(Leaf());
  SetLocationProvider(nullptr);
  EXPECT_EQ(CurrentSections(), nullptr);
  EXPECT_EQ(SectionsOf(inside.node.get()), "step.1/block.2/");
  EXPECT_EQ(SectionsOf(outside.node.get()), "");
  const Graph graph(std::span<const Value>(&inside, 1));
  EXPECT_NE(graph.ToText().find("scope=step.1/block.2/aten::negated.1"), std::string::npos);
  const auto module = graph.Lower("test");
  const hlo::Metadata& metadata = module->entry()->results()[0]->metadata();
  EXPECT_EQ(metadata.op_name, "step.1/block.2/aten::negated");
  EXPECT_EQ(metadata.operation(), "aten::negated");
}

TEST(LocationTest, SectionsEndOnAnyThreadAndInAnyOrder) {
  auto outer = std::make_unique<Section>("outer");
  auto inner = std::make_unique<Section>("inner");
  std::thread([&] {
    EXPECT_EQ(CurrentSections(), nullptr);
    outer.reset();
  }).join();
  EXPECT_EQ(*CurrentSections(), "outer.1/inner.1/");
  inner.reset();
  EXPECT_EQ(CurrentSections(), nullptr);
}

TEST(LocationTest, AnOriginThatIsToldReplacesWhatWasNoted) {
  static const hlo::SourceFrame outer{"/home/me/train.py", "main", 3};
  static const hlo::SourceFrame line{"/site/torch/nn/modules/linear.py", "forward", 7, &outer};
  static const hlo::SourceFrame inner{"/site/torch/_dynamo/eval_frame.py", "_fn", 9, &line};
  Value value = RecordNegated(Leaf());
  SetOrigin(value.node.get(), "Net/Linear[0]/", &inner);
  const auto module = Graph(std::span<const Value>(&value, 1)).Lower("test");
  const hlo::Metadata& metadata = module->entry()->results()[0]->metadata();
  EXPECT_EQ(metadata.op_name, "Net/Linear[0]/aten::negated");
  EXPECT_EQ(metadata.source_file, line.file);
  EXPECT_EQ(metadata.source_line, 7);
  EXPECT_EQ(metadata.frame, &inner);
}

}  // namespace
}  // namespace lazy
