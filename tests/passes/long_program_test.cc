// The processor's time that passes take for a long program.
#include <ctime>

#include "pass_test.h"
#include "passes/passes.h"

namespace passes {
namespace {

using Values = std::vector<Value>;

bool Fold(hlo::Module& module) { return FoldConstants(module); }

TEST(PassesTest, AreFastOnLongPrograms) {
  constexpr int kSteps = 2500;
  auto module = MakeModule({F32({8, 8})}, [](Builder& b, const Values& x) {
    Value value = x[0];
    for (int i = 0; i < kSteps; ++i) {
      Value factor = b.Full(F32({8, 8}), 1.0 + i);
      value = b.Transpose(b.Add(b.Multiply(value, factor), x[0]), {1, 0});
    }
    return Values{value};
  });
  ASSERT_GE(CountInstructions(*module), 10000);
  struct {
    const char* name;
    std::function<bool(hlo::Module&)> pass;
  } passes[] = {
      {"InlineCalls", InlineCalls},
      {"ExpandComposites", [](hlo::Module& m) { return ExpandComposites(m); }},
      {"ExpandBatchNorm", ExpandBatchNorm},
      {"Simplify", Simplify},
      {"FoldConstants", Fold},
      {"EliminateCommonSubexpressions", EliminateCommonSubexpressions},
      {"EliminateDeadCode", EliminateDeadCode},
  };
  for (const auto& [name, pass] : passes) {
    const std::clock_t start = std::clock();
    pass(*module);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    RecordProperty(name, std::to_string(seconds));
    std::printf("%-32s %6.1f ms\n", name, seconds * 1e3);
    // The aim is 0.2 s; sanitizers get room, quadratic algorithms do not.
    EXPECT_LT(seconds, 4) << name;
  }
  hlo::VerifyModule(*module);
}

}  // namespace
}  // namespace passes
