// What an observer of graphs is told, and that it cannot spoil what it observes.
#include "lazy/graph_observer.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "lazy/data.h"
#include "lazy/device.h"
#include "lazy/op.h"
#include "lazy/program_cache.h"
#include "lazy/settings.h"
#include "lazy/storage.h"
#include "lazy/sync.h"

namespace lazy {
namespace {

hlo::Value Add(hlo::Builder& b, hlo::Value x, hlo::Value y) { return b.Add(x, y); }

Value Upload(float element) {
  static const SharedShape shape = InternShape(hlo::Shape(hlo::ElementType::kF32, {}));
  Device* device = Runtime::Get().device(0);
  return {Node::MakeData(Data::FromHost(device, *shape, &element), shape.get()), 0};
}

Value Sum(const Value& x, const Value& y) {
  OperandList operands;
  operands.Add(x);
  operands.Add(y);
  return {Op<&Add>::Record(operands, std::tuple()), 0};
}

class GraphObserverTest : public testing::Test {
 protected:
  ~GraphObserverTest() override { SetGraphObserver(nullptr); }
  Device* device_ = Runtime::Get().device(0);
};

TEST_F(GraphObserverTest, IsToldOfEachStage) {
  ClearComputationCache();
  std::vector<GraphEvent::Stage> stages;
  SetGraphObserver([&](const GraphEvent& event) { stages.push_back(event.stage); });
  for (int i = 0; i < 2; ++i) {
    auto storage = Storage::Make(device_, Sum(Upload(1), Upload(2)));
    Sync(device_, true);
  }
  using Stage = GraphEvent::Stage;
  EXPECT_EQ(stages, (std::vector{Stage::kCut, Stage::kCompile, Stage::kCompiled, Stage::kExecute,
                                 Stage::kCut, Stage::kExecute}));
}

// Another cut would number the nodes again that both graphs have.
TEST_F(GraphObserverTest, CannotReadWhatIsNotComputed) {
  ClearComputationCache();
  const Value shared = Sum(Upload(1), Upload(2));
  auto storage = Storage::Make(device_, Sum(Sum(Upload(8), Upload(16)), shared));
  int refused = 0;
  SetGraphObserver([&](const GraphEvent&) {
    try {
      Evaluate(device_, shared);
    } catch (const hlo::Error& error) {
      EXPECT_EQ(error.code(), hlo::ErrorCode::kFailedPrecondition);
      ++refused;
    }
    EXPECT_THROW(Sync(device_), hlo::Error);
    EXPECT_THROW(Graph(std::span<const Value>(&shared, 1)), hlo::Error);
  });
  Sync(device_);
  EXPECT_GE(refused, 2);
  SetGraphObserver(nullptr);
  EXPECT_EQ(Materialized(storage)->buffer().ToLiteral().data<float>()[0], 27.0f);
  EXPECT_EQ(Evaluate(device_, shared)->buffer().ToLiteral().data<float>()[0], 3.0f);
}

// A refusal is reported, too: not to the observer that has caused it.
TEST_F(GraphObserverTest, IsNotToldOfItsOwnReads) {
  auto storage = Storage::Make(device_, Sum(Upload(5), Upload(6)));
  int calls = 0, refused = 0;
  SetGraphObserver([&](const GraphEvent&) {
    ++calls;
    for (int i = 0; i < 2; ++i) {
      try {
        Materialized(storage);
      } catch (const hlo::Error&) {
        ++refused;
      }
    }
  });
  SetAllowExecution(false);
  Sync(device_);
  SetAllowExecution(true);
  EXPECT_EQ(refused, 2 * calls);
  SetGraphObserver(nullptr);
  EXPECT_EQ(Materialized(storage)->buffer().ToLiteral().data<float>()[0], 11.0f);
}

TEST_F(GraphObserverTest, AnExceptionEndsTheSyncAndNothingElse) {
  auto storage = Storage::Make(device_, Sum(Upload(3), Upload(4)));
  SetGraphObserver([](const GraphEvent&) { throw hlo::Error("enough"); });
  EXPECT_THROW(Sync(device_), hlo::Error);
  SetGraphObserver(nullptr);
  EXPECT_EQ(Materialized(storage)->buffer().ToLiteral().data<float>()[0], 7.0f);
}

}  // namespace
}  // namespace lazy
