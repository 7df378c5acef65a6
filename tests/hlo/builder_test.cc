#include "hlo/builder.h"

#include <gtest/gtest.h>

#include "hlo/error.h"
#include "hlo/verifier.h"

namespace hlo {
namespace {

const Shape kMatrix(ElementType::kF32, {2, 3});

TEST(Builder, BuildsAWholeProgram) {
  Module module;
  Computation* main = module.AddComputation("main");
  module.set_entry(main);
  Builder b(main);
  Value x = b.Parameter(kMatrix);
  Value y = b.Parameter(Shape(ElementType::kF32, {3, 4}));
  Value product = b.MatMul(x, y);
  EXPECT_EQ(product->shape().ToString(), "f32[2,4]");
  Value sum = b.Reduce(Opcode::kAdd, product, {1});
  EXPECT_EQ(sum->shape().ToString(), "f32[2]");
  Value loop = b.While({sum, b.ConstantScalar(ElementType::kS32, int64_t{0})},
                       b.Region("condition", {sum->shape(), Shape::Scalar(ElementType::kS32)},
                                [](Builder& r, const std::vector<Value>& p) {
                                  Value five = r.ConstantScalar(ElementType::kS32, int64_t{5});
                                  return std::vector<Value>{r.Lt(p[1], five)};
                                }),
                       b.Region("body", {sum->shape(), Shape::Scalar(ElementType::kS32)},
                                [](Builder& r, const std::vector<Value>& p) {
                                  Value one = r.ConstantScalar(ElementType::kS32, int64_t{1});
                                  return std::vector<Value>{r.Add(p[0], p[0]), r.Add(p[1], one)};
                                }));
  main->set_results({b.Result(loop, 0), b.Result(loop, 1)});
  EXPECT_NO_THROW(VerifyModule(module));
  EXPECT_EQ(module.computations().back().get(), main);
  EXPECT_EQ(b.ScalarCombiner(Opcode::kAdd, ElementType::kF32),
            b.ScalarCombiner(Opcode::kAdd, ElementType::kF32));
}

TEST(Builder, ConveniencesReturnTheOperandWhenNothingChanges) {
  Module module;
  Builder b(module.AddComputation("main"));
  Value x = b.Parameter(kMatrix);
  EXPECT_EQ(b.Convert(x, ElementType::kF32), x);
  EXPECT_EQ(b.Reshape(x, {2, 3}), x);
  EXPECT_EQ(b.BroadcastTo(x, {2, 3}), x);
  EXPECT_EQ(b.Result(x, 0), x);
  EXPECT_EQ(b.BroadcastTo(x, {5, 2, 3})->shape().ToString(), "f32[5,2,3]");
}

TEST(Builder, ForeignOperandThrows) {
  Module module;
  Builder a(module.AddComputation("a")), b(module.AddComputation("b"));
  EXPECT_THROW(b.Negate(a.Parameter(kMatrix)), Error);
}

TEST(Builder, Identities) {
  EXPECT_EQ(IdentityLiteral(Opcode::kMaximum, ElementType::kF32).AsDouble(),
            -std::numeric_limits<double>::infinity());
  EXPECT_EQ(IdentityLiteral(Opcode::kMinimum, ElementType::kS8).AsInt(), 127);
  EXPECT_EQ(IdentityLiteral(Opcode::kAnd, ElementType::kU16).AsInt(), 65535);
  EXPECT_EQ(IdentityLiteral(Opcode::kMultiply, ElementType::kC64).AsDouble(), 1);
  EXPECT_THROW(IdentityLiteral(Opcode::kSubtract, ElementType::kF32), Error);
}

}  // namespace
}  // namespace hlo
