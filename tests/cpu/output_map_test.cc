// What is kept of arrays, by instruction and number of the result.
#include "cpu/output_map.h"

#include "engine_testing.h"

namespace cpu {
namespace {

using hlo::Builder;
using hlo::ElementType;
using hlo::Shape;
using hlo::Value;

struct Parameters {
  explicit Parameters(int64_t count) {
    auto* entry = module.AddComputation("main");
    module.set_entry(entry);
    Builder b(entry);
    for (int64_t i = 0; i < count; ++i) values.push_back(b.Parameter(Shape(ElementType::kF32, {})));
  }

  hlo::Module module;
  std::vector<Value> values;
};

TEST(OutputMap, KeepsWhatItHasWhileItGrows) {
  constexpr int64_t kCount = 1000, kResults = 3;
  const Parameters parameters(kCount);
  OutputMap<int64_t> map;
  for (int64_t i = 0; i < kCount; ++i) {
    for (int64_t k = 0; k < kResults; ++k) map[{parameters.values[i], k}] = kResults * i + k;
  }
  for (int64_t i = 0; i < kCount; ++i) {
    for (int64_t k = 0; k < kResults; ++k) {
      ASSERT_EQ(map.at({parameters.values[i], k}), kResults * i + k);
    }
    ASSERT_FALSE(map.contains({parameters.values[i], kResults}));
  }
}

TEST(OutputMap, SaysWhatItLacks) {
  const Parameters parameters(2);
  OutputMap<bool> map;
  EXPECT_EQ(map.Find({parameters.values[0], 0}), nullptr);
  EXPECT_FALSE((map[{parameters.values[0], 0}]));  // as new
  *map.Find({parameters.values[0], 0}) = true;
  EXPECT_TRUE(map.at({parameters.values[0], 0}));
  EXPECT_FALSE(map.contains({parameters.values[1], 0}));
  EXPECT_THROW(map.at({parameters.values[1], 0}), hlo::Error);
}

}  // namespace
}  // namespace cpu
