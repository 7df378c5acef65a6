// A program whose sizes are forgotten is, with the sizes of a call, what the program would be that
// was written for them.
#include "passes/forget_sizes.h"

#include <string>

#include "hlo/text_reader.h"
#include "hlo/text_writer.h"
#include "pass_test.h"
#include "passes/instantiate_sizes.h"

namespace passes {
namespace {

using Forgotten = std::vector<ParameterDimension>;

std::unique_ptr<hlo::Module> Open(const std::string& text, const Forgotten& forgotten) {
  auto module = ForgetSizes(*hlo::ReadStablehloText(text), forgotten);
  hlo::VerifyModule(*module);
  return module;
}

// The results of a program with unknown sizes.
std::vector<Literal> Results(const hlo::Module& open, const std::vector<Literal>& arguments) {
  std::vector<Shape> shapes;
  for (const Literal& argument : arguments) shapes.push_back(argument.shape());
  return hlo::Evaluate(*InstantiateSizes(open, shapes), arguments);
}

Literal Numbers(hlo::Dimensions dimensions, const std::vector<float>& numbers) {
  Literal literal(F32(std::move(dimensions)));
  std::ranges::copy(numbers, literal.mutable_data<float>().begin());
  return literal;
}

constexpr const char* kProduct = R"(
func.func public @main(%arg0: tensor<3x2xf32>, %arg1: tensor<3x2xf32>) -> (tensor<3x2xf32>) {
  %0 = stablehlo.multiply %arg0, %arg1 : tensor<3x2xf32>
  func.return %0 : tensor<3x2xf32>
})";

TEST(ForgetSizes, TwoUnknownSizesStretchToEachOther) {
  const auto open = Open(kProduct, {{0, 0}, {1, 0}});
  EXPECT_EQ(CountOpcode(*open, Opcode::kDynamicBroadcastInDim), 2);
  const Literal row = Numbers({1, 2}, {2, 3}), rows = Numbers({2, 2}, {1, 2, 3, 4});
  const Literal product = Numbers({2, 2}, {2, 6, 6, 12});
  ExpectSame(product, Results(*open, {row, rows})[0], 0);
  ExpectSame(product, Results(*open, {rows, row})[0], 0);
  ExpectSame(Numbers({0, 2}, {}), Results(*open, {row, Numbers({0, 2}, {})})[0], 0);
}

TEST(ForgetSizes, AKnownSizeIsWhatAnUnknownOneStretchesTo) {
  const auto open = Open(kProduct, {{1, 0}});
  EXPECT_EQ(open->entry()->result()->shape(), F32({3, 2}));
  const Literal rows = Numbers({3, 2}, {1, 2, 3, 4, 5, 6});
  ExpectSame(Numbers({3, 2}, {2, 6, 6, 12, 10, 18}),
             Results(*open, {rows, Numbers({1, 2}, {2, 3})})[0], 0);
  EXPECT_THROW(Results(*open, {rows, Numbers({2, 2}, {1, 2, 3, 4})}), hlo::Error);
}

TEST(ForgetSizes, OneSizeNeedsNoStretching) {
  const auto open = Open(R"(
func.func public @main(%arg0: tensor<3x2xf32>) -> (tensor<2x3xf32>) {
  %0 = stablehlo.constant dense<2.0> : tensor<3x2xf32>
  %1 = stablehlo.add %arg0, %arg0 : tensor<3x2xf32>
  %2 = stablehlo.multiply %1, %0 : tensor<3x2xf32>
  %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
  func.return %3 : tensor<2x3xf32>
})",
                         {{0, 0}});
  // The constant and what it is multiplied by, not the sum.
  EXPECT_EQ(CountOpcode(*open, Opcode::kDynamicBroadcastInDim), 2);
  ExpectSame(Numbers({2, 2}, {4, 12, 8, 16}), Results(*open, {Numbers({2, 2}, {1, 2, 3, 4})})[0],
             0);
}

TEST(ForgetSizes, ABroadcastOperandStretchesToWhatItMeets) {
  const auto open = Open(R"(
func.func public @main(%arg0: tensor<f32>, %arg1: tensor<3x2xf32>, %arg2: tensor<3x1xf32>) -> (tensor<3x2xf32>) {
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<3x2xf32>
  %1 = stablehlo.multiply %0, %arg1 : tensor<3x2xf32>
  %2 = stablehlo.broadcast_in_dim %arg2, dims = [0, 1] : (tensor<3x1xf32>) -> tensor<3x2xf32>
  %3 = stablehlo.add %1, %2 : tensor<3x2xf32>
  func.return %3 : tensor<3x2xf32>
})",
                         {{1, 1}});
  EXPECT_EQ(open->entry()->result()->shape(), F32({3, hlo::kDynamic}));
  ExpectSame(
      Numbers({3, 1}, {3, 6, 9}),
      Results(*open, {Numbers({}, {2}), Numbers({3, 1}, {1, 2, 3}), Numbers({3, 1}, {1, 2, 3})})[0],
      0);
}

TEST(ForgetSizes, ProductsAndReductionsOfOtherDimensionsGoOn) {
  const auto open = Open(R"(
func.func public @main(%arg0: tensor<3x2xf32>, %arg1: tensor<2x2xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %1 = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.reduce(%0 init: %1) applies stablehlo.add across dimensions = [1] : (tensor<3x2xf32>, tensor<f32>) -> tensor<3xf32>
  func.return %2 : tensor<3xf32>
})",
                         {{0, 0}});
  ExpectSame(Numbers({1}, {6}),
             Results(*open, {Numbers({1, 2}, {1, 2}), Numbers({2, 2}, {1, 1, 1, 1})})[0], 0);
}

// Each with what its error says.
TEST(ForgetSizes, WhatMayHoldTheSizeIsRefused) {
  const std::pair<std::string, std::string> kPrograms[] = {{R"(
func.func public @main(%arg0: tensor<3x2xf32>) -> (tensor<2xf32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<3x2xf32>, tensor<f32>) -> tensor<2xf32>
  func.return %1 : tensor<2xf32>
})",
                                                            "reduces a dimension"},
                                                           {R"(
func.func public @main(%arg0: tensor<3x2xf32>) -> (tensor<6xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<3x2xf32>) -> tensor<6xf32>
  func.return %0 : tensor<6xf32>
})",
                                                            "reshape may hold a size"},
                                                           {R"(
func.func public @main(%arg0: tensor<3x2xf32>) -> (tensor<2x2xf32>) {
  %0 = stablehlo.constant dense<1.0> : tensor<2x3xf32>
  %1 = stablehlo.dot_general %0, %arg0, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  func.return %1 : tensor<2x2xf32>
})",
                                                            "one alone"},
                                                           {R"(
func.func public @main(%arg0: tensor<3x2xf32>, %arg1: tensor<1x2xf32>) -> (tensor<3x2xf32>) {
  %0 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] : (tensor<1x2xf32>) -> tensor<3x2xf32>
  %1 = stablehlo.negate %0 : tensor<3x2xf32>
  %2 = stablehlo.multiply %arg0, %1 : tensor<3x2xf32>
  func.return %2 : tensor<3x2xf32>
})",
                                                            "a size of the program's own"},
                                                           {R"(
func.func public @main(%arg0: tensor<3x2xf32>) -> (tensor<3x2xf32>) {
  %0 = stablehlo.iota dim = 0 : tensor<3x2xf32>
  %1 = stablehlo.add %arg0, %0 : tensor<3x2xf32>
  func.return %1 : tensor<3x2xf32>
})",
                                                            "a size of the program's own"}};
  for (const auto& [text, words] : kPrograms) {
    try {
      Open(text, {{0, 0}});
      ADD_FAILURE() << text;
    } catch (const hlo::Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace passes
