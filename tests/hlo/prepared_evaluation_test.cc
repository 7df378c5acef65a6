// A prepared computation gives the evaluator's values, to the last bit, in every run.
#include "hlo/prepared_evaluation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hlo/error.h"
#include "hlo/evaluator.h"
#include "hlo/text_reader.h"

namespace hlo {
namespace {

void ExpectSame(const std::string& text, const std::vector<std::vector<Literal>>& runs) {
  SCOPED_TRACE(text);
  const auto module = ReadStablehloText(text);
  const PreparedEvaluation prepared(*module->entry());
  for (const std::vector<Literal>& arguments : runs) {
    EXPECT_EQ(prepared.Run(arguments), Evaluate(*module, arguments));
  }
}

constexpr float kTiny = std::numeric_limits<float>::denorm_min();
constexpr float kLargest = std::numeric_limits<float>::max();
const std::vector<float> kNumbers = {0.1f, -2.5f, 3e-39f, kTiny, kLargest, -0.0f, 7, 1e-20f};
const std::vector<float> kOthers = {3, 0.7f, 0.3f, -kTiny, kLargest, 0.0f, -7, 1e-19f};

TEST(PreparedEvaluation, Arithmetic) {
  for (const std::string type : {"f32", "f64", "s32"}) {
    for (const std::string op : {"add", "subtract", "multiply", "divide", "minimum", "power"}) {
      const std::string array = "tensor<8x" + (type == "s32" ? "i32" : type) + ">";
      const std::string text = "func.func @main(%x: " + array + ", %y: " + array + ") -> " + array +
                               " {\n  %0 = stablehlo." + op + " %x, %y : " + array +
                               "\n  func.return %0 : " + array + "\n}";
      std::vector<Literal> arguments;
      for (const std::vector<float>& numbers : {kNumbers, kOthers}) {
        if (type == "f32") arguments.push_back(Literal::FromVector(numbers));
        if (type == "f64") {
          arguments.push_back(
              Literal::FromVector(std::vector<double>(numbers.begin(), numbers.end())));
        }
        if (type == "s32")
          arguments.push_back(Literal::FromVector<int32_t>({5, -3, 9, 1, 2, 7, 4, 6}));
      }
      ExpectSame(text, {arguments, {arguments[1], arguments[0]}});
    }
  }
}

TEST(PreparedEvaluation, ConstantsAndStretchedNumbers) {
  const char* text = R"(
func.func @main(%x: tensor<2x4xf32>, %n: tensor<f32>) -> (tensor<2x4xf32>, tensor<8xf32>, tensor<2xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<f32>) {
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<2x4xf32>
  %row = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %rows = stablehlo.broadcast_in_dim %row, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %known = stablehlo.multiply %rows, %two : tensor<2x4xf32>
  %halves = stablehlo.broadcast_in_dim %half, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
  %ns = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
  %0 = stablehlo.divide %x, %ns : tensor<2x4xf32>
  %1 = stablehlo.subtract %0, %known : tensor<2x4xf32>
  %2 = stablehlo.multiply %halves, %1 : tensor<2x4xf32>
  %3 = stablehlo.compare LT, %2, %ns : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xi1>
  %4 = stablehlo.select %3, %2, %ns : tensor<2x4xi1>, tensor<2x4xf32>
  %5 = stablehlo.clamp %half, %4, %n : (tensor<f32>, tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %6 = stablehlo.log_plus_one %5 : tensor<2x4xf32>
  %7 = stablehlo.reshape %6 : (tensor<2x4xf32>) -> tensor<8xf32>
  %8 = stablehlo.add %7, %7 : tensor<8xf32>
  %9 = stablehlo.reduce(%ns init: %half) applies stablehlo.add across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>
  func.return %6, %8, %9, %ns, %known, %half : tensor<2x4xf32>, tensor<8xf32>, tensor<2xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<f32>
})";
  const Literal x = Literal::FromVector(kNumbers, {2, 4}), y = Literal::FromVector(kOthers, {2, 4});
  ExpectSame(text, {{x, Literal::Scalar(3.0f)}, {y, Literal::Scalar(0.7f)}});
}

TEST(PreparedEvaluation, RandomBits) {
  const char* text = R"(
func.func @main(%state: tensor<2xui64>) -> (tensor<2xui64>, tensor<5xf32>) {
  %0, %1 = stablehlo.rng_bit_generator %state, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>)
  %eight = stablehlo.constant dense<8> : tensor<5xui32>
  %2 = stablehlo.shift_right_logical %1, %eight : tensor<5xui32>
  %3 = stablehlo.convert %2 : (tensor<5xui32>) -> tensor<5xf32>
  func.return %0, %3 : tensor<2xui64>, tensor<5xf32>
})";
  ExpectSame(text,
             {{Literal::FromVector<uint64_t>({1, 2})}, {Literal::FromVector<uint64_t>({3, 4})}});
}

TEST(PreparedEvaluation, NoElements) {
  ExpectSame(R"(
func.func @main(%x: tensor<0xf32>) -> (tensor<0xf32>, tensor<0xf32>) {
  %0 = stablehlo.constant dense<> : tensor<0xf32>
  %1 = stablehlo.add %x, %0 : tensor<0xf32>
  func.return %1, %0 : tensor<0xf32>, tensor<0xf32>
})",
             {{Literal(Shape(ElementType::kF32, {0}))}});
}

TEST(PreparedEvaluation, RefusesShapesOfRunTime) {
  const auto module = ReadStablehloText(R"(
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<?xf32> {
  %0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
})");
  EXPECT_THROW(PreparedEvaluation(*module->entry()), Error);
}

}  // namespace
}  // namespace hlo
