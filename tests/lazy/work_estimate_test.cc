#include "lazy/work_estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lazy {
namespace {

using hlo::ElementType;

// Of a kind that is known by its name only.
class Named final : public Operation {
 public:
  Named(const OperationKind* kind, const std::vector<SharedShape>& operands,
        const std::vector<SharedShape>& results)
      : Operation(kind, 0, Shapes(operands)) {
    for (const SharedShape& shape : results) AddResultShape(shape);
  }
  std::vector<hlo::Value> Lower(hlo::Builder&, std::span<const hlo::Value>) const override {
    return {};
  }

 private:
  static std::vector<ShapeRef> Shapes(const std::vector<SharedShape>& held) {
    std::vector<ShapeRef> shapes;
    for (const SharedShape& shape : held) shapes.push_back(shape.get());
    return shapes;
  }
};

using Dimensions = std::vector<hlo::Dimensions>;

// In ns. A result without dimensions given does not exist.
double Work(const std::string& name, const Dimensions& operands,
            const std::vector<std::optional<hlo::Dimensions>>& results,
            ElementType type = ElementType::kF32) {
  // Of each name one, for ever: classes are remembered by its address.
  static auto* kinds = new std::map<std::string, OperationKind>;
  OperationKind& kind = (*kinds)[name];
  kind.name = name;
  std::vector<SharedShape> given, made;
  for (const hlo::Dimensions& sizes : operands) {
    given.push_back(InternShape(hlo::Shape(type, sizes)));
  }
  for (const auto& sizes : results) {
    made.push_back(sizes ? InternShape(hlo::Shape(type, *sizes)) : SharedShape());
  }
  return WorkOf(Named(&kind, given, made));
}

double Product(int64_t rows, int64_t inner, int64_t columns, ElementType type = ElementType::kF32) {
  return Work("aten::mm", {{rows, inner}, {inner, columns}}, {{{rows, columns}}}, type);
}

double Unary(const std::string& name, int64_t size, ElementType type = ElementType::kF32) {
  return Work(name, {{size}}, {{{size}}}, type);
}

void ExpectRatio(double a, double b, double ratio) { EXPECT_NEAR(a / b, ratio, 0.05 * ratio); }

TEST(WorkEstimate, NothingIsFree) {
  EXPECT_GT(Unary("aten::neg", 0), 100);
  EXPECT_LT(Unary("aten::neg", 1), 100'000);
}

TEST(WorkEstimate, ProductsGrowWithEachSize) {
  const double work = Product(500, 500, 500);
  ExpectRatio(Product(1000, 500, 500), work, 2);
  ExpectRatio(Product(500, 1000, 500), work, 2);
  ExpectRatio(Product(500, 500, 1000), work, 2);
  // At 2 to 200 giga-multiplications a second.
  EXPECT_GT(work, 125e6 / 200);
  EXPECT_LT(work, 125e6 / 2);
}

TEST(WorkEstimate, ProductsOfABatch) {
  const double one = Work("aten::bmm", {{1, 300, 300}, {1, 300, 300}}, {{{1, 300, 300}}});
  const double eight = Work("aten::bmm", {{8, 300, 300}, {8, 300, 300}}, {{{8, 300, 300}}});
  ExpectRatio(eight, one, 8);
}

TEST(WorkEstimate, SomeTypesAreSlow) {
  const double work = Product(300, 300, 300);
  EXPECT_GT(Product(300, 300, 300, ElementType::kF64), 2 * work);
  EXPECT_GT(Product(300, 300, 300, ElementType::kS32), 20 * work);
  EXPECT_GT(Unary("aten::exp", 100'000, ElementType::kF64), 2 * Unary("aten::exp", 100'000));
}

// A few numbers are drawn in less time than a program for them is made.
TEST(WorkEstimate, FewDrawsAreLittleWork) {
  for (const char* name : {"aten::normal_standard", "aten::uniform", "aten::bernoulli_of"}) {
    EXPECT_LT(Unary(name, 48), 200'000) << name;
    EXPECT_GT(Unary(name, 100'000), 5e6) << name;
  }
}

TEST(WorkEstimate, ConvolutionsGrowWithTheWindow) {
  const auto convolution = [](int64_t channels, int64_t window) {
    return Work("aten::convolution", {{1, channels, 60, 60}, {channels, channels, window, window}},
                {{{1, channels, 60, 60}}});
  };
  const double work = convolution(32, 3);
  ExpectRatio(convolution(32, 6), work, 4);
  ExpectRatio(convolution(64, 3), work, 4);
}

TEST(WorkEstimate, GradientsOfConvolutionsAreTwo) {
  const hlo::Dimensions image{1, 32, 60, 60}, window{32, 32, 3, 3};
  const double forward = Work("aten::convolution", {image, window}, {image});
  const double backward =
      Work("aten::convolution_backward", {image, image, window}, {image, window, std::nullopt});
  ExpectRatio(backward, forward, 2);
}

TEST(WorkEstimate, RecurrentLayersGrowWithStepsAndWeights) {
  const auto layers = [](const std::string& name, int64_t steps, int64_t batch, int64_t width) {
    return Work(name,
                {{steps, batch, width}, {1, batch, width}, {4 * width, width}, {4 * width, width}},
                {{{steps, batch, width}}});
  };
  const double work = layers("aten::recurrent_layers", 100, 32, 512);
  ExpectRatio(layers("aten::recurrent_layers", 200, 32, 512), work, 2);
  ExpectRatio(layers("aten::recurrent_layers", 100, 32, 1024), work, 4);
  ExpectRatio(layers("aten::recurrent_layers_backward", 100, 32, 512), work, 2);
  // However small a step is, its operations start one after the other.
  EXPECT_GT(layers("aten::recurrent_layers", 100, 1, 1), 1e6);
}

TEST(WorkEstimate, StepsOfEachRecurrentLayerAndDirectionCount) {
  const auto stack = [](int64_t layers) {
    Dimensions operands = {{100, 1, 2}, {layers, 1, 2}};
    for (int64_t i = 0; i < layers; ++i) {
      operands.insert(operands.end(), {{8, 2}, {8, 2}, {8}, {8}});
    }
    return Work("aten::recurrent_layers", operands, {{{100, 1, 2}}});
  };
  ExpectRatio(stack(6), stack(1), 6);
}

TEST(WorkEstimate, GradientsOfPackedSequencesAreNoWeights) {
  const hlo::Dimensions elements{3200, 64}, state{1, 32, 64}, weight{256, 64}, bias{256};
  const Dimensions forward = {elements, state, state, weight, weight, bias, bias};
  Dimensions backward = forward;
  backward.insert(backward.end(), {{100, 32, 256}, {100, 32, 64}, {100, 32, 64}, elements, state});
  ExpectRatio(Work("aten::recurrent_layers_backward", backward, {elements}),
              Work("aten::recurrent_layers", forward, {elements}), 2);
}

TEST(WorkEstimate, SlowFunctionsAreKnown) {
  const double work = Unary("aten::add", 100'000);
  EXPECT_GT(Unary("aten::sort", 100'000), 20 * work);
  EXPECT_GT(Unary("aten::digamma", 100'000), 20 * work);
  EXPECT_GT(Unary("aten::normal", 100'000), 100 * work);  // by the reference evaluator
  ExpectRatio(Unary("aten::add", 200'000), work, 2);
}

TEST(WorkEstimate, DrawsFromRowsAreOfPairs) {
  const auto draws = [](int64_t size) { return Unary("aten::draw_with_replacement", size); };
  ExpectRatio(draws(2000), draws(1000), 4);
}

TEST(WorkEstimate, WhatDataDecidesIsUnbounded) {
  EXPECT_TRUE(std::isinf(Unary("aten::special_hermite_polynomial_h", 3)));
}

}  // namespace
}  // namespace lazy
