// What the comparison with XLA:CPU (test_evaluator.py) cannot show: errors, dynamic shapes, tuples,
// tokens, and scalar number formats bit by bit.
#include "hlo/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hlo/builder.h"
#include "hlo/counter_random.h"
#include "hlo/error.h"
#include "hlo/number_conversion.h"
#include "hlo/verifier.h"

namespace hlo {
namespace {

class EvaluatorTest : public testing::Test {
 protected:
  EvaluatorTest() : main_(module_.AddComputation("main")), b_(main_) { module_.set_entry(main_); }

  std::vector<Literal> Run(std::vector<Value> results, const std::vector<Literal>& arguments = {}) {
    main_->set_results(std::move(results));
    VerifyModule(module_);
    return Evaluate(module_, arguments);
  }
  ErrorCode CodeOf(std::vector<Value> results, const std::vector<Literal>& arguments = {}) {
    try {
      Run(std::move(results), arguments);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kUnknown;
  }
  Value Ints(std::vector<int64_t> values) { return b_.Constant(Literal::FromVector(values)); }

  Module module_;
  Computation* main_;
  Builder b_;
};

const Shape kThree(ElementType::kF32, {3});

TEST_F(EvaluatorTest, ArgumentsOfWrongShapeOrNumber) {
  Value x = b_.Parameter(kThree);
  EXPECT_EQ(CodeOf({x}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf({x}, {Literal(Shape(ElementType::kF32, {4}))}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf({x}, {Literal(Shape(ElementType::kS32, {3}))}), ErrorCode::kInvalidArgument);
}

TEST_F(EvaluatorTest, WhatItCannotRun) {
  Value x = b_.Parameter(kThree);
  Value token = b_.Create(Opcode::kAfterAll, {});
  CustomCallAttributes call;
  call.target = "unheard_of";
  std::vector<Literal> arguments = {Literal(kThree)};
  EXPECT_EQ(CodeOf({b_.CustomCall({x}, kThree, call)}, arguments), ErrorCode::kUnimplemented);
  Value infeed = b_.Create(Opcode::kInfeed, {token}, FeedAttributes{}, {},
                           Shape::Tuple({kThree, Shape::Token()}));
  EXPECT_EQ(CodeOf({b_.Result(infeed, 0)}, arguments), ErrorCode::kUnimplemented);
}

TEST_F(EvaluatorTest, DynamicResultIsRefused) {
  Value x = b_.Parameter(kThree);
  Value any = b_.Create(Opcode::kDynamicReshape, {x, Ints({3, 1})}, {}, {},
                        Shape(ElementType::kF32, {kDynamic, 1}));
  EXPECT_EQ(CodeOf({any}, {Literal(kThree)}), ErrorCode::kUnimplemented);
}

TEST_F(EvaluatorTest, DynamicOperationsWithStaticResults) {
  Value x = b_.Constant(Literal::FromVector<float>({1, 2, 3}));
  Value zero = b_.ConstantScalar(ElementType::kF32, 9.0);
  auto shape = [](Dimensions dimensions) {
    return Shape(ElementType::kF32, std::move(dimensions));
  };
  auto results = Run({
      b_.Create(Opcode::kDynamicReshape, {x, Ints({3, 1})}, {}, {}, shape({3, 1})),
      b_.Create(Opcode::kDynamicBroadcastInDim, {x, Ints({2, 3})},
                DynamicBroadcastAttributes{{1}, {}, {}}, {}, shape({2, 3})),
      b_.Create(Opcode::kDynamicIota, {Ints({4})}, DimensionAttributes{0}, {}, shape({4})),
      b_.Create(Opcode::kDynamicPad, {x, zero, Ints({1}), Ints({-1}), Ints({1})}, {}, {},
                shape({5})),
      b_.Create(Opcode::kRealDynamicSlice, {x, Ints({0}), Ints({3}), Ints({2})}, {}, {},
                shape({2})),
      b_.Create(Opcode::kGetDimensionSize, {x}, DimensionAttributes{0}),
  });
  EXPECT_EQ(results[0], Literal::FromVector<float>({1, 2, 3}, {3, 1}));
  EXPECT_EQ(results[1], Literal::FromVector<float>({1, 2, 3, 1, 2, 3}, {2, 3}));
  EXPECT_EQ(results[2], Literal::FromVector<float>({0, 1, 2, 3}));
  EXPECT_EQ(results[3], Literal::FromVector<float>({9, 1, 9, 2, 9}));
  EXPECT_EQ(results[4], Literal::FromVector<float>({1, 3}));
  EXPECT_EQ(results[5], Literal::Scalar<int32_t>(3));
}

TEST_F(EvaluatorTest, ComputedDimensionsMustBeTheDeclared) {
  Value x = b_.Constant(Literal::FromVector<float>({1, 2, 3}));
  Value wrong = b_.Create(Opcode::kDynamicReshape, {x, Ints({1, 3})}, {}, {},
                          Shape(ElementType::kF32, {3, 1}));
  EXPECT_EQ(CodeOf({wrong}), ErrorCode::kInvalidArgument);
}

TEST_F(EvaluatorTest, DynamicGatherAndConvolution) {
  Value x = b_.Constant(Literal::FromVector<float>({1, 2, 3, 4, 5, 6}, {1, 1, 6}));
  Value kernel = b_.Constant(Literal::FromVector<float>({1, 10}, {1, 1, 2}));
  Value padding = b_.Constant(Literal::FromVector<int64_t>({1, 0}, {1, 2}));
  ConvolutionAttributes convolution;
  convolution.window = Window::Trivial(1);
  convolution.window.dimensions.clear();
  convolution.dimensions = ConvolutionDimensions::ChannelsFirst(1);
  Value y = b_.Create(Opcode::kDynamicConv, {x, kernel, padding}, convolution, {},
                      Shape(ElementType::kF32, {1, 1, 6}));
  GatherAttributes gather;
  gather.offset_dims = {0};
  gather.start_index_map = {0};
  Value flat = b_.Reshape(x, {6});
  Value z = b_.Create(Opcode::kDynamicGather, {flat, Ints({2}), Ints({3})}, gather, {},
                      Shape(ElementType::kF32, {3}));
  auto results = Run({b_.Reshape(y, {6}), z});
  EXPECT_EQ(results[0], Literal::FromVector<float>({10, 21, 32, 43, 54, 65}));
  EXPECT_EQ(results[1], Literal::FromVector<float>({3, 4, 5}));
}

TEST_F(EvaluatorTest, TuplesAreLeavesInOrder) {
  Value pair = b_.Parameter(Shape::Tuple({kThree, Shape::Scalar(ElementType::kS32)}));
  Value nested = b_.Tuple({pair, b_.Negate(b_.GetTupleElement(pair, 0))});
  Value inner = b_.GetTupleElement(nested, 0);
  Literal vector = Literal::FromVector<float>({1, 2, 3});
  auto results = Run({b_.GetTupleElement(nested, 1), b_.GetTupleElement(inner, 1)},
                     {vector, Literal::Scalar<int32_t>(7)});
  EXPECT_EQ(results[0], Literal::FromVector<float>({-1, -2, -3}));
  EXPECT_EQ(results[1], Literal::Scalar<int32_t>(7));
}

TEST_F(EvaluatorTest, TokensPassThroughControlFlow) {
  Value token = b_.Create(Opcode::kAfterAll, {});
  Computation* body =
      b_.Region("body", {Shape::Token(), kThree}, [](Builder& r, const std::vector<Value>& p) {
        return std::vector<Value>{r.Create(Opcode::kAfterAll, {p[0]}), r.Negate(p[1])};
      });
  Value x = b_.Parameter(kThree);
  Value call = b_.Call(body, {token, x});
  EXPECT_EQ(Run({b_.GetTupleElement(call, 1)}, {Literal::FromVector<float>({1, 2, 3})})[0],
            Literal::FromVector<float>({-1, -2, -3}));
}

TEST_F(EvaluatorTest, CompositeRunsItsDecomposition) {
  Computation* twice = b_.Region("twice", {kThree}, [](Builder& r, const std::vector<Value>& p) {
    return std::vector<Value>{r.Add(p[0], p[0])};
  });
  Value x = b_.Parameter(kThree);
  Value composite =
      b_.Create(Opcode::kComposite, {x}, CompositeAttributes{"cpu.loop", {}, 0}, {twice});
  EXPECT_EQ(Run({composite}, {Literal::FromVector<float>({1, 2, 3})})[0],
            Literal::FromVector<float>({2, 4, 6}));
}

TEST_F(EvaluatorTest, BodiesThatAreNotElementwise) {
  // A reduction whose body calls a computation.
  Shape scalar = Shape::Scalar(ElementType::kF32);
  Computation* add = b_.ScalarCombiner(Opcode::kAdd, ElementType::kF32);
  Computation* body =
      b_.Region("body", {scalar, scalar}, [&](Builder& r, const std::vector<Value>& p) {
        return std::vector<Value>{r.Call(add, {p[0], p[1]})};
      });
  Value x = b_.Parameter(kThree);
  Value sum = b_.Reduce(x, b_.ConstantScalar(ElementType::kF32, 10.0), {0}, body);
  EXPECT_EQ(Run({sum}, {Literal::FromVector<float>({1, 2, 3})})[0], Literal::Scalar(16.0f));
}

TEST_F(EvaluatorTest, PromotingReduction) {
  Value x = b_.Constant(Literal::FromVector<BFloat16>({256.0f, 1.0f, 1.0f}));
  Value sum = b_.Reduce(x, b_.ConstantScalar(ElementType::kBF16, 0.0), {0},
                        b_.ScalarCombiner(Opcode::kAdd, ElementType::kF32));
  Value product = b_.Reduce(x, b_.ConstantScalar(ElementType::kBF16, 1.0), {0},
                            b_.ScalarCombiner(Opcode::kMultiply, ElementType::kF32));
  auto results = Run({sum, product});
  EXPECT_EQ(results[0], Literal::Scalar(258.0f));
  EXPECT_EQ(results[1], Literal::Scalar(256.0f));
}

TEST(Float16, EveryValueSurvives) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    Float16 half;
    half.bits = static_cast<uint16_t>(bits);
    BFloat16 brain;
    brain.bits = static_cast<uint16_t>(bits);
    if (!std::isnan(static_cast<float>(half))) {
      EXPECT_EQ(Float16(static_cast<float>(half)).bits, bits);
    } else {
      EXPECT_TRUE(std::isnan(static_cast<float>(Float16(static_cast<float>(half)))));
    }
    if (!std::isnan(static_cast<float>(brain))) {
      EXPECT_EQ(BFloat16(static_cast<float>(brain)).bits, bits);
    } else {
      EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(static_cast<float>(brain)))));
    }
  }
}

TEST(Float16, RoundsToNearestEven) {
  // Between any two neighbours, the middle goes to the even one and its neighbours to the nearer.
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    Float16 low, high;
    low.bits = static_cast<uint16_t>(bits);
    high.bits = static_cast<uint16_t>(bits + 1);
    float middle = (static_cast<float>(low) + static_cast<float>(high)) / 2;
    EXPECT_EQ(Float16(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(Float16(std::nextafter(middle, 0.0f)).bits, bits);
    EXPECT_EQ(Float16(std::nextafter(middle, 1e9f)).bits, bits + 1);
    EXPECT_EQ(Float16(-middle).bits, Float16(middle).bits | 0x8000);
  }
  EXPECT_EQ(Float16(65519.99f).bits, 0x7bff);
  EXPECT_EQ(Float16(65520.0f).bits, 0x7c00);
}

TEST(ConvertNumber, Saturates) {
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ((ConvertNumber<int8_t>(300.0)), 127);
  EXPECT_EQ((ConvertNumber<int8_t>(-300.0f)), -128);
  EXPECT_EQ((ConvertNumber<uint8_t>(-1.0)), 0);
  EXPECT_EQ((ConvertNumber<int64_t>(infinity)), std::numeric_limits<int64_t>::max());
  EXPECT_EQ((ConvertNumber<uint64_t>(1.8446744073709552e19)), ~uint64_t{0});
  EXPECT_EQ((ConvertNumber<int32_t>(std::nan(""))), 0);
  EXPECT_EQ((ConvertNumber<int8_t>(int32_t{300})), 44);
  EXPECT_TRUE((ConvertNumber<bool>(std::nan(""))));
  EXPECT_TRUE((ConvertNumber<bool>(std::complex<float>(0, 1))));
}

// The known answers of the generators' authors (Random123, kat_vectors).
TEST(CounterRandom, KnownAnswers) {
  using Two = std::array<uint32_t, 2>;
  using Four = std::array<uint32_t, 4>;
  constexpr uint32_t kOnes = 0xffffffffu;
  EXPECT_EQ(ThreeFry2x32({0, 0}, {0, 0}), (Two{0x6b200159u, 0x99ba4efeu}));
  EXPECT_EQ(ThreeFry2x32({kOnes, kOnes}, {kOnes, kOnes}), (Two{0x1cb996fcu, 0xbb002be7u}));
  EXPECT_EQ(Philox4x32({0, 0}, {0, 0, 0, 0}),
            (Four{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(Philox4x32({kOnes, kOnes}, {kOnes, kOnes, kOnes, kOnes}),
            (Four{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
}

}  // namespace
}  // namespace hlo
