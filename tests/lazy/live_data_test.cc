#include "lazy/live_data.h"

#include <gtest/gtest.h>

#include <vector>

#include "lazy/data.h"

namespace lazy {
namespace {

constexpr int64_t kSize = 12347;  // of no other test

int64_t CountOfThisSize() {
  for (const LiveTensors& tensors : ListLiveTensors()) {
    if (tensors.shape->dimensions() == hlo::Dimensions{kSize}) return tensors.count;
  }
  return 0;
}

TEST(LiveData, IsListedWhileItHoldsABuffer) {
  const SharedShape shape = InternShape(hlo::Shape(hlo::ElementType::kF32, {kSize}));
  std::vector<Reference<Data>> data;
  for (int i = 0; i < 5; ++i) data.emplace_back(new Data(nullptr, shape.get(), nullptr));
  EXPECT_EQ(CountOfThisSize(), 5);
  data[2]->Drop();  // of the middle
  EXPECT_EQ(CountOfThisSize(), 4);
  data[2]->Drop();
  data.erase(data.begin() + 2);
  EXPECT_EQ(CountOfThisSize(), 4);
  data.erase(data.begin());
  data.pop_back();
  EXPECT_EQ(CountOfThisSize(), 2);
  data.emplace_back(new Data(nullptr, shape.get(), nullptr));
  EXPECT_EQ(CountOfThisSize(), 3);
  data.clear();
  EXPECT_EQ(CountOfThisSize(), 0);
}

TEST(LiveData, SaysWhoMadeIt) {
  const SharedShape shape = InternShape(hlo::Shape(hlo::ElementType::kF32, {kSize}));
  const OperationKind kind{"aten::mm"};
  const Reference<Data> made(new Data(nullptr, shape.get(), nullptr));
  const Reference<Data> from_host(new Data(nullptr, shape.get(), nullptr));
  NoteMaker(made.get(), &kind, nullptr);
  int found = 0;
  for (const LiveTensors& tensors : ListLiveTensors()) {
    if (tensors.shape->dimensions() == hlo::Dimensions{kSize} && tensors.made_by == "aten::mm") {
      EXPECT_EQ(tensors.count, 1);
      ++found;
    }
  }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(CountOfThisSize(), 1);
}

}  // namespace
}  // namespace lazy
