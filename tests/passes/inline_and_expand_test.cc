#include "hlo/error.h"
#include "hlo/text_reader.h"
#include "pass_test.h"
#include "passes/passes.h"

namespace passes {
namespace {

using Values = std::vector<Value>;

TEST(InlineCallsTest, RefusesToGrowWithoutBounds) {
  auto module = MakeModule({F32({3})}, [](Builder& b, const Values& x) {
    hlo::Computation* callee = b.Region("double", {F32({3})}, [](Builder& c, const Values& y) {
      return Values{c.Add(y[0], y[0])};
    });
    for (int i = 0; i < 40; ++i) {
      callee = b.Region("twice", {F32({3})}, [&](Builder& c, const Values& y) {
        return Values{c.Call(callee, {c.Call(callee, {y[0]})})};
      });
    }
    return Values{b.Call(callee, {x[0]})};
  });
  EXPECT_THROW(InlineCalls(*module), hlo::Error);
}

TEST(ExpandCompositesTest, ExpandsThoseThatAreNotKept) {
  const auto module = hlo::ReadStablehloText(R"(
func.func private @double(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %x, %x : tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
func.func private @outer(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.composite "test.known" %x {decomposition = @double} : (tensor<3xf32>) -> tensor<3xf32>
  %1 = stablehlo.negate %0 : tensor<3xf32>
  func.return %1 : tensor<3xf32>
}
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.composite "test.unknown" %x {decomposition = @outer} : (tensor<3xf32>) -> tensor<3xf32>
  func.return %0 : tensor<3xf32>
})");
  auto keep = [](const hlo::Instruction& composite) {
    return composite.as<hlo::CompositeAttributes>().name == "test.known";
  };
  EXPECT_TRUE(ApplyAndCompare(*module, [&](hlo::Module& m) { return ExpandComposites(m, keep); }));
  EXPECT_EQ(CountOpcode(*module, Opcode::kComposite), 1);
  EXPECT_TRUE(ApplyAndCompare(*module, [](hlo::Module& m) { return ExpandComposites(m); }));
  EXPECT_EQ(CountOpcode(*module, Opcode::kComposite), 0);
}

}  // namespace
}  // namespace passes
