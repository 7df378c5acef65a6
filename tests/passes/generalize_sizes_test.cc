// A program for any sizes, made of a few samples, with the sizes of another is that other: its
// results are the same bits.
#include "passes/generalize_sizes.h"

#include <string>

#include "hlo/error.h"
#include "hlo/text_reader.h"
#include "hlo/text_writer.h"
#include "pass_test.h"
#include "passes/instantiate_sizes.h"

namespace passes {
namespace {

struct Sizes {
  int64_t n, m;
};

// Of programs with the sizes {n} and {m}, and {expression} of them where a row says so.
struct Row {
  std::string name, text;
  std::vector<std::string> expected = {};  // in the general program
  std::vector<std::pair<std::string, int64_t (*)(Sizes)>> numbers = {};
};

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

std::string Replaced(const std::string& text, const std::string& from, int64_t number) {
  std::string out = text;
  for (size_t at = 0; (at = out.find(from, at)) != std::string::npos;) {
    out.replace(at, from.size(), std::to_string(number));
  }
  return out;
}

std::unique_ptr<hlo::Module> Sample(const Row& row, Sizes sizes) {
  std::string text = Replaced(Replaced(row.text, "{n}", sizes.n), "{m}", sizes.m);
  for (const auto& [name, number] : row.numbers) text = Replaced(text, name, number(sizes));
  return hlo::ReadStablehloText(text);
}

std::unique_ptr<hlo::Module> General(const Row& row) {
  std::vector<std::unique_ptr<hlo::Module>> samples;
  std::vector<const hlo::Module*> pointers;
  for (const Sizes sizes : {Sizes{11, 13}, Sizes{17, 23}, Sizes{29, 31}}) {
    samples.push_back(Sample(row, sizes));
    pointers.push_back(samples.back().get());
  }
  auto general = GeneralizeSizes(pointers);
  hlo::VerifyModule(*general);
  return general;
}

class GeneralizeSizesTest : public testing::TestWithParam<Row> {};

TEST_P(GeneralizeSizesTest, OtherSizesAreTheirOwnProgram) {
  const auto general = General(GetParam());
  const std::string text = hlo::WriteStablehloText(*general);
  for (const std::string& expected : GetParam().expected) {
    EXPECT_NE(text.find(expected), std::string::npos) << "no " << expected << " in\n" << text;
  }
  for (const Sizes sizes : {Sizes{5, 3}, Sizes{3, 5}, Sizes{2, 2}, Sizes{1, 4}, Sizes{7, 1}}) {
    const auto exact = Sample(GetParam(), sizes);
    std::vector<Shape> shapes;
    std::vector<Literal> arguments;
    for (const hlo::Instruction* parameter : exact->entry()->parameters()) {
      shapes.push_back(parameter->shape());
      arguments.push_back(TestLiteral(shapes.back(), static_cast<unsigned>(shapes.size())));
    }
    const auto instance = InstantiateSizes(*general, shapes);
    const std::vector<Literal> expected = hlo::Evaluate(*exact, arguments);
    const std::vector<Literal> actual = hlo::Evaluate(*instance, arguments);
    ASSERT_EQ(expected.size(), actual.size());
    for (size_t i = 0; i < expected.size(); ++i) ExpectSame(expected[i], actual[i], 0);
  }
}

const Row kRows[] = {
    {"elementwise",
     R"(
func.func public @main(%arg0: tensor<{n}x3xf32>, %arg1: tensor<{n}x3xf32>) -> (tensor<{n}x3xf32>) {
  %0 = stablehlo.add %arg0, %arg1 : tensor<{n}x3xf32>
  func.return %0 : tensor<{n}x3xf32>
})",
     {"stablehlo.add %arg0, %arg1 : tensor<?x3xf32>"}},
    {"filled",
     R"(
func.func public @main(%arg0: tensor<{n}x{m}xf32>) -> (tensor<{n}x{m}xf32>) {
  %0 = stablehlo.constant dense<2.5> : tensor<{n}x{m}xf32>
  %1 = stablehlo.multiply %arg0, %0 : tensor<{n}x{m}xf32>
  func.return %1 : tensor<{n}x{m}xf32>
})",
     {"dynamic_broadcast_in_dim", "tensor<?x?xf32>"}},
    {"row_of_each", R"(
func.func public @main(%arg0: tensor<{n}x4xf32>, %arg1: tensor<4xf32>) -> (tensor<{n}x4xf32>) {
  %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf32>) -> tensor<{n}x4xf32>
  %1 = stablehlo.subtract %arg0, %0 : tensor<{n}x4xf32>
  func.return %1 : tensor<{n}x4xf32>
})"},
    {"joined_and_split",
     R"(
func.func public @main(%arg0: tensor<{n}x{m}x3xf32>) -> (tensor<{nm}x3xf32>, tensor<{m}x{n}x3xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<{n}x{m}x3xf32>) -> tensor<{nm}x3xf32>
  %1 = stablehlo.negate %0 : tensor<{nm}x3xf32>
  %2 = stablehlo.reshape %1 : (tensor<{nm}x3xf32>) -> tensor<{m}x{n}x3xf32>
  func.return %0, %2 : tensor<{nm}x3xf32>, tensor<{m}x{n}x3xf32>
})",
     {"dynamic_reshape"},
     {{"{nm}", [](Sizes s) { return s.n * s.m; }}}},
    {"mean",
     R"(
func.func public @main(%arg0: tensor<{n}x3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<{n}x3xf32>, tensor<f32>) -> tensor<3xf32>
  %2 = stablehlo.constant dense<{n}.0> : tensor<3xf32>
  %3 = stablehlo.divide %1, %2 : tensor<3xf32>
  %4 = stablehlo.constant dense<{before}.0> : tensor<3xf32>
  %5 = stablehlo.divide %1, %4 : tensor<3xf32>
  func.return %3, %5 : tensor<3xf32>, tensor<3xf32>
})",
     {"get_dimension_size"},
     {{"{before}", [](Sizes s) { return s.n - 1; }}}},
    {"last_and_every_second",
     R"(
func.func public @main(%arg0: tensor<{n}x{m}xf32>) -> (tensor<1x{m}xf32>, tensor<{n}x{half}xf32>) {
  %0 = stablehlo.slice %arg0 [{last}:{n}, 0:{m}] : (tensor<{n}x{m}xf32>) -> tensor<1x{m}xf32>
  %1 = stablehlo.slice %arg0 [0:{n}, 0:{m}:2] : (tensor<{n}x{m}xf32>) -> tensor<{n}x{half}xf32>
  func.return %0, %1 : tensor<1x{m}xf32>, tensor<{n}x{half}xf32>
})",
     {"real_dynamic_slice"},
     {{"{last}", [](Sizes s) { return s.n - 1; }},
      {"{half}", [](Sizes s) { return (s.m + 1) / 2; }}}},
    {"counted",
     R"(
func.func public @main(%arg0: tensor<{n}xi32>) -> (tensor<{n}xi32>) {
  %0 = stablehlo.iota dim = 0 : tensor<{n}xi32>
  %1 = stablehlo.add %arg0, %0 : tensor<{n}xi32>
  func.return %1 : tensor<{n}xi32>
})",
     {"dynamic_iota"}},
    {"padded_to_twice",
     R"(
func.func public @main(%arg0: tensor<{n}xf32>) -> (tensor<{twice}xf32>) {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = stablehlo.pad %arg0, %0, low = [0], high = [{n}], interior = [0] : (tensor<{n}xf32>, tensor<f32>) -> tensor<{twice}xf32>
  func.return %1 : tensor<{twice}xf32>
})",
     {"dynamic_pad"},
     {{"{twice}", [](Sizes s) { return 2 * s.n; }}}},
    {"rows_of_indices",
     R"(
func.func public @main(%arg0: tensor<5x{m}xf32>, %arg1: tensor<{n}x1xi32>) -> (tensor<{n}x{m}xf32>) {
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, {m}>}> : (tensor<5x{m}xf32>, tensor<{n}x1xi32>) -> tensor<{n}x{m}xf32>
  func.return %0 : tensor<{n}x{m}xf32>
})",
     {"dynamic_gather"}},
    {"product",
     R"(
func.func public @main(%arg0: tensor<{n}x4xf32>, %arg1: tensor<4x{m}xf32>) -> (tensor<{n}x{m}xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<{n}x4xf32>, tensor<4x{m}xf32>) -> tensor<{n}x{m}xf32>
  func.return %0 : tensor<{n}x{m}xf32>
})",
     {"-> tensor<?x?xf32>"}},
    {"loop", R"(
func.func public @main(%arg0: tensor<{n}xf32>) -> (tensor<{n}xf32>) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.while(%i = %0, %x = %arg0) : tensor<i32>, tensor<{n}xf32>
    cond {
      %2 = stablehlo.constant dense<3> : tensor<i32>
      %3 = stablehlo.compare LT, %i, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %4 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.add %i, %4 : tensor<i32>
      %6 = stablehlo.constant dense<0.5> : tensor<{n}xf32>
      %7 = stablehlo.multiply %x, %6 : tensor<{n}xf32>
      stablehlo.return %5, %7 : tensor<i32>, tensor<{n}xf32>
    }
  func.return %1#1 : tensor<{n}xf32>
})"},
};

INSTANTIATE_TEST_SUITE_P(Rows, GeneralizeSizesTest, testing::ValuesIn(kRows),
                         [](const auto& info) { return info.param.name; });

void ExpectRefused(const Row& row, const std::string& why) {
  try {
    General(row);
    ADD_FAILURE() << row.name << " is not refused";
  } catch (const hlo::Error& error) {
    EXPECT_EQ(error.code(), hlo::ErrorCode::kUnimplemented);
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

TEST(GeneralizeSizesTest, RefusesWhatIsNoFormulaOfSizes) {
  ExpectRefused({"roots",
                 R"(
func.func public @main(%arg0: tensor<{n}xf32>) -> (tensor<{root}xf32>) {
  %0 = stablehlo.constant dense<1.0> : tensor<{root}xf32>
  func.return %0 : tensor<{root}xf32>
})",
                 {},
                 {{"{root}", [](Sizes s) { return s.n * s.n + s.n % 5; }}}},
                "no multiple, part, sum with a constant or product");
}

TEST(GeneralizeSizesTest, RefusesNumbersThatAreNearlySizes) {
  ExpectRefused({"nearly", R"(
func.func public @main(%arg0: tensor<{n}xf32>) -> (tensor<f32>) {
  %0 = stablehlo.constant dense<0.0000{n}> : tensor<f32>
  func.return %0 : tensor<f32>
})"},
                "neither a size nor its reciprocal");
}

TEST(GeneralizeSizesTest, RefusesOtherOperationsForOtherSizes) {
  const auto small = hlo::ReadStablehloText(R"(
func.func public @main(%arg0: tensor<3xf32>) -> (tensor<3xf32>) {
  %0 = stablehlo.negate %arg0 : tensor<3xf32>
  func.return %0 : tensor<3xf32>
})");
  const auto large = hlo::ReadStablehloText(R"(
func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>) {
  %0 = stablehlo.abs %arg0 : tensor<4xf32>
  func.return %0 : tensor<4xf32>
})");
  const hlo::Module* samples[] = {small.get(), large.get()};
  EXPECT_THROW(GeneralizeSizes(samples), hlo::Error);
}

TEST(InstantiateSizesTest, RefusesOtherArguments) {
  const auto general = hlo::ReadStablehloText(R"(
func.func public @main(%arg0: tensor<?x3xf32>) -> (tensor<?x3xf32>) {
  func.return %arg0 : tensor<?x3xf32>
})");
  EXPECT_THROW(InstantiateSizes(*general, {F32({2, 4})}), hlo::Error);
  EXPECT_THROW(InstantiateSizes(*general, {F32({2})}), hlo::Error);
  EXPECT_THROW(InstantiateSizes(*general, {}), hlo::Error);
  EXPECT_EQ(InstantiateSizes(*general, {F32({2, 3})})->entry()->result()->shape(), F32({2, 3}));
}

}  // namespace
}  // namespace passes
