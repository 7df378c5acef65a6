// Constant folding, common subexpressions, dead code; and all passes' time on a long program.
#include <chrono>

#include "pass_test.h"
#include "passes/common_subexpressions.h"
#include "passes/dead_code.h"
#include "passes/expand_batch_norm.h"
#include "passes/expand_composites.h"
#include "passes/fold_constants.h"
#include "passes/inline_calls.h"
#include "passes/simplify.h"

namespace passes {
namespace {

using Values = std::vector<Value>;

bool Fold(hlo::Module& module) { return FoldConstants(module); }

TEST(FoldConstantsTest, FoldsSmallArithmetic) {
  auto module = MakeModule({F32({2, 2})}, [](Builder& b, const Values& x) {
    Value c = b.Constant(Literal::FromVector<float>({1, 2, 3, 4}, {2, 2}));
    Value folded = b.Transpose(b.Exp(b.Reshape(b.Reshape(c, {4}), {2, 2})), {1, 0});
    return Values{b.Add(x[0], folded), b.Reduce(Opcode::kAdd, c, {0})};
  });
  EXPECT_TRUE(ApplyAndCompare(*module, Fold));
  EXPECT_EQ(CountOpcode(*module, Opcode::kExponential), 0);
  EXPECT_EQ(CountOpcode(*module, Opcode::kReduce), 0);
  EXPECT_FALSE(Fold(*module));
}

TEST(FoldConstantsTest, KeepsFillsSymbolic) {
  auto module = MakeModule({F32({1000, 1000})}, [](Builder& b, const Values& x) {
    Value two = b.Full(F32({1000, 1000}), 2.0);
    Value three = b.Full(F32({1000, 1000}), 3.0);
    return Values{b.Add(x[0], b.Multiply(two, three))};
  });
  EXPECT_TRUE(Fold(*module));
  hlo::VerifyModule(*module);
  EXPECT_EQ(CountOpcode(*module, Opcode::kMultiply), 0);
  EXPECT_EQ(CountOpcode(*module, Opcode::kBroadcastInDim), 1);
  for (const auto& instruction : module->entry()->instructions()) {
    if (instruction->IsConstant()) {
      EXPECT_TRUE(instruction->shape().is_scalar());
      EXPECT_EQ(instruction->literal().AsDouble(), 6.0);
    }
  }
}

TEST(FoldConstantsTest, LeavesLargeResultsAndIota) {
  auto module = MakeModule({}, [](Builder& b, const Values&) {
    Value c = b.Constant(Literal::FromVector<float>({1, 2}, {2}));
    return Values{b.BroadcastInDim(c, {2, 4096}, {0}), b.Iota(S32({4}), 0)};
  });
  EXPECT_FALSE(ApplyAndCompare(*module, Fold));
}

TEST(CommonSubexpressionsTest, SharesEqualWork) {
  auto module = MakeModule({F32({4}), F32({4})}, [](Builder& b, const Values& x) {
    Value a = b.Exp(b.Add(x[0], x[1]));
    Value c = b.Exp(b.Add(x[1], x[0]));
    Value d = b.Exp(b.Subtract(x[0], x[1]));
    Value e = b.Exp(b.Subtract(x[1], x[0]));
    return Values{a, c, d, e};
  });
  EXPECT_TRUE(ApplyAndCompare(*module, EliminateCommonSubexpressions));
  EXPECT_EQ(CountOpcode(*module, Opcode::kAdd), 1);
  EXPECT_EQ(CountOpcode(*module, Opcode::kSubtract), 2);
  EXPECT_EQ(CountOpcode(*module, Opcode::kExponential), 3);
}

TEST(CommonSubexpressionsTest, SharesEqualBodies) {
  auto module = MakeModule({F32({4, 3})}, [](Builder& b, const Values& x) {
    auto sum = [&](Value value) {
      auto* body = b.Region("sum", {F32({}), F32({})},
                            [](Builder& c, const Values& y) { return Values{c.Add(y[0], y[1])}; });
      return b.Reduce(value, b.ConstantScalar(ElementType::kF32, 0.0), {0}, body);
    };
    return Values{sum(x[0]), sum(x[0]), sum(b.Negate(x[0]))};
  });
  EXPECT_TRUE(ApplyAndCompare(*module, EliminateCommonSubexpressions));
  EXPECT_EQ(CountOpcode(*module, Opcode::kReduce), 2);
  EXPECT_EQ(module->computations().size(), 2);
}

TEST(CommonSubexpressionsTest, KeepsSignsOfZeroApart) {
  auto module = MakeModule({F32({4})}, [](Builder& b, const Values& x) {
    Value plus = b.ConstantScalar(ElementType::kF32, 0.0);
    Value minus = b.ConstantScalar(ElementType::kF32, -0.0);
    return Values{plus, minus};
  });
  EXPECT_FALSE(ApplyAndCompare(*module, EliminateCommonSubexpressions));
}

TEST(DeadCodeTest, DropsLoopCarriedValuesThatNobodyReads) {
  std::vector<Shape> carried = {S32({}), F32({3}), F32({3}), F32({2})};
  auto module = MakeModule(carried, [&](Builder& b, const Values& x) {
    auto* condition = b.Region("condition", carried, [](Builder& c, const Values& y) {
      return Values{c.Lt(y[0], c.ConstantScalar(ElementType::kS32, int64_t{3}))};
    });
    auto* body = b.Region("body", carried, [](Builder& c, const Values& y) {
      Value one = c.ConstantScalar(ElementType::kS32, int64_t{1});
      // 1 depends on 2; 3 only on itself.
      return Values{c.Add(y[0], one), c.Add(y[1], y[2]), c.Negate(y[2]), c.Abs(y[3])};
    });
    return Values{b.GetTupleElement(b.While(x, condition, body), 1)};
  });
  EXPECT_TRUE(ApplyAndCompare(*module, EliminateDeadCode));
  EXPECT_EQ(CountOpcode(*module, Opcode::kAbs), 0);
  for (const auto& instruction : module->entry()->instructions()) {
    if (instruction->opcode() == Opcode::kWhile) {
      EXPECT_EQ(instruction->operand_count(), 3);
    }
  }
  EXPECT_FALSE(EliminateDeadCode(*module));
}

TEST(DeadCodeTest, DropsOperandsThatNoBranchUses) {
  auto module = MakeModule(
      {Shape(ElementType::kPred, {}), F32({3}), F32({3})}, [](Builder& b, const Values& x) {
        auto branch = [&](Opcode opcode) {
          return b.Region("branch", {F32({3}), F32({3})}, [=](Builder& c, const Values& y) {
            return Values{c.Unary(opcode, y[1])};
          });
        };
        return Values{
            b.If(x[0], {b.Exp(x[1]), x[2]}, branch(Opcode::kAbs), branch(Opcode::kNegate))};
      });
  EXPECT_TRUE(ApplyAndCompare(*module, EliminateDeadCode));
  EXPECT_EQ(CountOpcode(*module, Opcode::kExponential), 0);
}

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
    auto start = std::chrono::steady_clock::now();
    pass(*module);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    RecordProperty(name, std::to_string(seconds.count()));
    std::printf("%-32s %6.1f ms\n", name, seconds.count() * 1e3);
    // The aim is 0.2 s; sanitizers and busy machines get room, quadratic algorithms do not.
    EXPECT_LT(seconds.count(), 4) << name;
  }
  hlo::VerifyModule(*module);
}

}  // namespace
}  // namespace passes
