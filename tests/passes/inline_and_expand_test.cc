#include "hlo/error.h"
#include "pass_test.h"
#include "passes/expand_composites.h"
#include "passes/inline_calls.h"

namespace passes {
namespace {

using Values = std::vector<Value>;

hlo::Computation* Doubler(Builder& b) {
  return b.Region("double", {F32({3})},
                  [](Builder& c, const Values& y) { return Values{c.Add(y[0], y[0])}; });
}

TEST(InlineCallsTest, RefusesToGrowWithoutBounds) {
  auto module = MakeModule({F32({3})}, [](Builder& b, const Values& x) {
    hlo::Computation* callee = Doubler(b);
    for (int i = 0; i < 40; ++i) {
      callee = b.Region("twice", {F32({3})}, [&](Builder& c, const Values& y) {
        return Values{c.Call(callee, {c.Call(callee, {y[0]})})};
      });
    }
    return Values{b.Call(callee, {x[0]})};
  });
  EXPECT_THROW(InlineCalls(*module), hlo::Error);
}

Value Composite(Builder& b, const char* name, hlo::Computation* decomposition, Value x) {
  hlo::CompositeAttributes attributes;
  attributes.name = name;
  return b.Create(Opcode::kComposite, {x}, attributes, {decomposition});
}

TEST(ExpandCompositesTest, ExpandsThoseThatAreNotKept) {
  auto module = MakeModule({F32({3})}, [](Builder& b, const Values& x) {
    auto* inner = Doubler(b);
    auto* outer = b.Region("outer", {F32({3})}, [&](Builder& c, const Values& y) {
      return Values{c.Negate(Composite(c, "known", inner, y[0]))};
    });
    return Values{Composite(b, "unknown", outer, x[0])};
  });
  auto keep = [](const hlo::Instruction& composite) {
    return composite.as<hlo::CompositeAttributes>().name == "known";
  };
  EXPECT_TRUE(ApplyAndCompare(*module, [&](hlo::Module& m) { return ExpandComposites(m, keep); }));
  EXPECT_EQ(CountOpcode(*module, Opcode::kComposite), 1);
  EXPECT_TRUE(ApplyAndCompare(*module, [](hlo::Module& m) { return ExpandComposites(m); }));
  EXPECT_EQ(CountOpcode(*module, Opcode::kComposite), 0);
}

}  // namespace
}  // namespace passes
