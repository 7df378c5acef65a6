// What the comparison with XLA:CPU (test_evaluator.py) cannot show: errors, dynamic shapes, tuples,
// tokens, and scalar number formats bit by bit.
#include "hlo/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hlo/counter_random.h"
#include "hlo/error.h"
#include "hlo/number_conversion.h"
#include "hlo/text_reader.h"

namespace hlo {
namespace {

// Of a program's text.
std::vector<Literal> Evaluated(const std::string& text,
                               const std::vector<Literal>& arguments = {}) {
  return Evaluate(*ReadStablehloText(text), arguments);
}

ErrorCode CodeOf(const std::string& text, const std::vector<Literal>& arguments = {}) {
  const auto module = ReadStablehloText(text);
  try {
    Evaluate(*module, arguments);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kUnknown;
}

const Literal kThree = Literal::FromVector<float>({1, 2, 3});

TEST(Evaluator, ArgumentsOfWrongShapeOrNumber) {
  const char* text = R"(
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  func.return %x : tensor<3xf32>
})";
  EXPECT_EQ(CodeOf(text), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(text, {Literal(Shape(ElementType::kF32, {4}))}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(text, {Literal(Shape(ElementType::kS32, {3}))}), ErrorCode::kInvalidArgument);
}

TEST(Evaluator, WhatItCannotRun) {
  EXPECT_EQ(CodeOf(R"(
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.custom_call @unheard_of(%x) : (tensor<3xf32>) -> tensor<3xf32>
  func.return %0 : tensor<3xf32>
})",
                   {kThree}),
            ErrorCode::kUnimplemented);
  EXPECT_EQ(CodeOf(R"(
func.func @main() -> tensor<3xf32> {
  %token = stablehlo.after_all : !stablehlo.token
  %0:2 = "stablehlo.infeed"(%token) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<3xf32>, !stablehlo.token)
  func.return %0#0 : tensor<3xf32>
})"),
            ErrorCode::kUnimplemented);
}

TEST(Evaluator, DynamicResultIsRefused) {
  EXPECT_EQ(CodeOf(R"(
func.func @main(%x: tensor<3xf32>) -> tensor<?x1xf32> {
  %sizes = stablehlo.constant dense<[3, 1]> : tensor<2xi64>
  %0 = stablehlo.dynamic_reshape %x, %sizes : (tensor<3xf32>, tensor<2xi64>) -> tensor<?x1xf32>
  func.return %0 : tensor<?x1xf32>
})",
                   {kThree}),
            ErrorCode::kUnimplemented);
}

TEST(Evaluator, DynamicOperationsWithStaticResults) {
  const auto results = Evaluated(R"(
func.func @main(%x: tensor<3xf32>) -> (tensor<3x1xf32>, tensor<2x3xf32>, tensor<4xf32>, tensor<5xf32>, tensor<2xf32>, tensor<i32>) {
  %nine = stablehlo.constant dense<9.0> : tensor<f32>
  %column = stablehlo.constant dense<[3, 1]> : tensor<2xi64>
  %rows = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %minus_one = stablehlo.constant dense<[-1]> : tensor<1xi64>
  %zero = stablehlo.constant dense<[0]> : tensor<1xi64>
  %one = stablehlo.constant dense<[1]> : tensor<1xi64>
  %two = stablehlo.constant dense<[2]> : tensor<1xi64>
  %three = stablehlo.constant dense<[3]> : tensor<1xi64>
  %four = stablehlo.constant dense<[4]> : tensor<1xi64>
  %0 = stablehlo.dynamic_reshape %x, %column : (tensor<3xf32>, tensor<2xi64>) -> tensor<3x1xf32>
  %1 = stablehlo.dynamic_broadcast_in_dim %x, %rows, dims = [1] : (tensor<3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %2 = stablehlo.dynamic_iota %four, dim = 0 : (tensor<1xi64>) -> tensor<4xf32>
  %3 = stablehlo.dynamic_pad %x, %nine, %one, %minus_one, %one : (tensor<3xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<5xf32>
  %4 = stablehlo.real_dynamic_slice %x, %zero, %three, %two : (tensor<3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32>
  %5 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<3xf32>) -> tensor<i32>
  func.return %0, %1, %2, %3, %4, %5 : tensor<3x1xf32>, tensor<2x3xf32>, tensor<4xf32>, tensor<5xf32>, tensor<2xf32>, tensor<i32>
})",
                                 {kThree});
  EXPECT_EQ(results[0], Literal::FromVector<float>({1, 2, 3}, {3, 1}));
  EXPECT_EQ(results[1], Literal::FromVector<float>({1, 2, 3, 1, 2, 3}, {2, 3}));
  EXPECT_EQ(results[2], Literal::FromVector<float>({0, 1, 2, 3}));
  EXPECT_EQ(results[3], Literal::FromVector<float>({9, 1, 9, 2, 9}));
  EXPECT_EQ(results[4], Literal::FromVector<float>({1, 3}));
  EXPECT_EQ(results[5], Literal::Scalar<int32_t>(3));
}

TEST(Evaluator, ComputedDimensionsMustBeTheDeclared) {
  EXPECT_EQ(CodeOf(R"(
func.func @main(%x: tensor<3xf32>) -> tensor<3x1xf32> {
  %sizes = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
  %0 = stablehlo.dynamic_reshape %x, %sizes : (tensor<3xf32>, tensor<2xi64>) -> tensor<3x1xf32>
  func.return %0 : tensor<3x1xf32>
})",
                   {kThree}),
            ErrorCode::kInvalidArgument);
}

TEST(Evaluator, DynamicGatherAndConvolution) {
  const auto results = Evaluated(R"(
func.func @main() -> (tensor<1x1x6xf32>, tensor<3xf32>) {
  %x = stablehlo.constant dense<[[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]]> : tensor<1x1x6xf32>
  %kernel = stablehlo.constant dense<[[[1.0, 10.0]]]> : tensor<1x1x2xf32>
  %padding = stablehlo.constant dense<[[1, 0]]> : tensor<1x2xi64>
  %0 = "stablehlo.dynamic_conv"(%x, %kernel, %padding) <{dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, batch_group_count = 1 : i64, feature_group_count = 1 : i64}> : (tensor<1x1x6xf32>, tensor<1x1x2xf32>, tensor<1x2xi64>) -> tensor<1x1x6xf32>
  %flat = stablehlo.reshape %x : (tensor<1x1x6xf32>) -> tensor<6xf32>
  %start = stablehlo.constant dense<[2]> : tensor<1xi64>
  %size = stablehlo.constant dense<[3]> : tensor<1xi64>
  %1 = "stablehlo.dynamic_gather"(%flat, %start, %size) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], start_index_map = [0]>}> : (tensor<6xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xf32>
  func.return %0, %1 : tensor<1x1x6xf32>, tensor<3xf32>
})");
  EXPECT_EQ(results[0], Literal::FromVector<float>({10, 21, 32, 43, 54, 65}, {1, 1, 6}));
  EXPECT_EQ(results[1], Literal::FromVector<float>({3, 4, 5}));
}

TEST(Evaluator, TuplesAreLeavesInOrder) {
  const auto results = Evaluated(R"(
func.func @main(%pair: tuple<tensor<3xf32>, tensor<i32>>) -> (tensor<3xf32>, tensor<i32>) {
  %first = stablehlo.get_tuple_element %pair[0] : (tuple<tensor<3xf32>, tensor<i32>>) -> tensor<3xf32>
  %negative = stablehlo.negate %first : tensor<3xf32>
  %nested = stablehlo.tuple %pair, %negative : tuple<tuple<tensor<3xf32>, tensor<i32>>, tensor<3xf32>>
  %inner = stablehlo.get_tuple_element %nested[0] : (tuple<tuple<tensor<3xf32>, tensor<i32>>, tensor<3xf32>>) -> tuple<tensor<3xf32>, tensor<i32>>
  %0 = stablehlo.get_tuple_element %nested[1] : (tuple<tuple<tensor<3xf32>, tensor<i32>>, tensor<3xf32>>) -> tensor<3xf32>
  %1 = stablehlo.get_tuple_element %inner[1] : (tuple<tensor<3xf32>, tensor<i32>>) -> tensor<i32>
  func.return %0, %1 : tensor<3xf32>, tensor<i32>
})",
                                 {kThree, Literal::Scalar<int32_t>(7)});
  EXPECT_EQ(results[0], Literal::FromVector<float>({-1, -2, -3}));
  EXPECT_EQ(results[1], Literal::Scalar<int32_t>(7));
}

TEST(Evaluator, TokensPassThroughControlFlow) {
  EXPECT_EQ(Evaluated(R"(
func.func private @body(%token: !stablehlo.token, %x: tensor<3xf32>) -> (!stablehlo.token, tensor<3xf32>) {
  %0 = stablehlo.after_all %token : !stablehlo.token
  %1 = stablehlo.negate %x : tensor<3xf32>
  func.return %0, %1 : !stablehlo.token, tensor<3xf32>
}
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %token = stablehlo.after_all : !stablehlo.token
  %0:2 = func.call @body(%token, %x) : (!stablehlo.token, tensor<3xf32>) -> (!stablehlo.token, tensor<3xf32>)
  func.return %0#1 : tensor<3xf32>
})",
                      {kThree})[0],
            Literal::FromVector<float>({-1, -2, -3}));
}

TEST(Evaluator, CompositeRunsItsDecomposition) {
  EXPECT_EQ(Evaluated(R"(
func.func private @twice(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %x, %x : tensor<3xf32>
  func.return %0 : tensor<3xf32>
}
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.composite "cpu.loop" %x {decomposition = @twice} : (tensor<3xf32>) -> tensor<3xf32>
  func.return %0 : tensor<3xf32>
})",
                      {kThree})[0],
            Literal::FromVector<float>({2, 4, 6}));
}

// A reduction whose body calls a computation.
TEST(Evaluator, BodiesThatAreNotElementwise) {
  EXPECT_EQ(Evaluated(R"(
func.func private @sum(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %x, %y : tensor<f32>
  func.return %0 : tensor<f32>
}
func.func public @main(%x: tensor<3xf32>) -> tensor<f32> {
  %ten = stablehlo.constant dense<10.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %ten) across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    reducer(%a: tensor<f32>, %b: tensor<f32>) {
    %1 = func.call @sum(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }
  func.return %0 : tensor<f32>
})",
                      {kThree})[0],
            Literal::Scalar(16.0f));
}

// In the type of the body, not of the operand.
TEST(Evaluator, PromotingReduction) {
  const auto results = Evaluated(R"(
func.func @main() -> (tensor<f32>, tensor<f32>) {
  %x = stablehlo.constant dense<[256.0, 1.0, 1.0]> : tensor<3xbf16>
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %one = stablehlo.constant dense<1.0> : tensor<bf16>
  %sum = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<3xbf16>, tensor<bf16>) -> tensor<f32>
  %product = "stablehlo.reduce"(%x, %one) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = stablehlo.multiply %a, %b : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<3xbf16>, tensor<bf16>) -> tensor<f32>
  func.return %sum, %product : tensor<f32>, tensor<f32>
})");
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
