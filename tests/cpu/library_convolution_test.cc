#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "library_testing.h"

namespace cpu {
namespace {

using namespace cpu::testing;  // NOLINT
using hlo::Builder;
using hlo::ConvolutionAttributes;
using hlo::Dimensions;
using hlo::Opcode;
using hlo::Value;

// A convolution in terms of a layout-free description; the layouts are tried in turn.
struct Case {
  const char* name;
  int64_t batch, inputs, outputs;  // of the instruction: lhs features, result features
  Dimensions x, w;                 // spatial sizes of lhs and rhs
  Dimensions stride = {}, low = {}, high = {}, base = {}, dilation = {};
  bool reversed = false;
  int64_t feature_groups = 1, batch_groups = 1;
};

const Case kCases[] = {
    {"one_dimension", 2, 3, 5, {20}, {4}, {2}, {1}, {2}},
    {"same", 2, 16, 32, {14, 14}, {3, 3}, {}, {1, 1}, {1, 1}},
    {"one_input_channel", 6, 1, 32, {28, 28}, {3, 3}, {}, {}, {}},
    {"stem", 2, 3, 64, {30, 30}, {7, 7}, {2, 2}, {3, 3}, {3, 3}},
    {"strided", 4, 16, 24, {15, 13}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {"pointwise", 3, 40, 20, {9, 9}, {1, 1}},
    // oneDNN keeps these weights in blocks of 48 channels, which no part of 64 channels fits.
    {"weights_in_blocks_of_48", 2, 256, 512, {14, 14}, {1, 1}, {2, 2}},
    {"pointwise_strided", 3, 40, 20, {9, 9}, {1, 1}, {2, 2}},
    {"one_image_many_rows", 1, 16, 32, {64, 64}, {3, 3}, {}, {1, 1}, {1, 1}},
    {"one_image_strided_rows", 1, 8, 128, {65, 64}, {5, 5}, {2, 2}, {2, 2}, {2, 2}},
    {"one_image_many_channels", 1, 256, 256, {7, 7}, {3, 3}, {}, {1, 1}, {1, 1}},
    {"one_image_uneven_channels", 1, 200, 200, {7, 7}, {3, 3}, {}, {1, 1}, {1, 1}},
    // Larger than what is copied at a time: by rows, by images.
    {"large_image", 2, 16, 4, {90, 64}, {3, 3}, {}, {1, 1}, {1, 1}},
    {"large_strided_image", 1, 16, 4, {101, 90}, {5, 3}, {2, 1}, {2, 1}, {2, 1}},
    {"large_dilated_image", 1, 16, 4, {100, 64}, {3, 3}, {}, {6, 6}, {6, 6}, {}, {6, 6}},
    {"large_batch", 40, 16, 8, {14, 14}, {2, 2}, {}, {1, 1}, {1, 1}},
    {"large_depthwise", 2, 32, 32, {40, 40}, {3, 3}, {}, {1, 1}, {1, 1}, {}, {}, false, 32},
    {"pointwise_large", 2, 24, 7, {64, 31}, {1, 1}},
    {"pointwise_grouped", 3, 24, 12, {9, 8}, {1, 1}, {}, {}, {}, {}, {}, false, 3},
    {"pointwise_to_one", 2, 16, 1, {33, 16}, {1, 1}},
    {"pointwise_of_one", 2, 1, 5, {33, 16}, {1, 1}},
    {"dilated", 2, 8, 8, {17, 17}, {3, 3}, {}, {2, 2}, {2, 2}, {}, {2, 2}},
    {"asymmetric", 2, 8, 8, {10, 11}, {3, 2}, {1, 2}, {2, 0}, {0, 3}},
    {"negative_padding", 2, 4, 6, {12, 12}, {3, 3}, {}, {-1, -2}, {-2, 1}},
    {"grouped", 2, 16, 32, {10, 10}, {3, 3}, {}, {1, 1}, {1, 1}, {}, {}, false, 4},
    {"depthwise", 2, 32, 32, {12, 12}, {3, 3}, {}, {1, 1}, {1, 1}, {}, {}, false, 32},
    {"depthwise_strided", 2, 32, 32, {12, 12}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {}, {}, false, 32},
    {"depthwise_multiplier", 2, 8, 24, {12, 12}, {3, 3}, {}, {1, 1}, {1, 1}, {}, {}, false, 8},
    {"depthwise_dilated", 2, 8, 8, {13, 40}, {3, 5}, {}, {4, 6}, {3, 7}, {}, {2, 3}, false, 8},
    {"depthwise_steps", 2, 8, 8, {23, 37}, {5, 3}, {3, 2}, {2, 0}, {1, 3}, {}, {2, 1}, false, 8},
    {"depthwise_cropped", 2, 8, 8, {23, 24}, {3, 3}, {2, 1}, {-2, 1}, {1, -3}, {}, {}, false, 8},
    {"depthwise_flipped", 2, 8, 16, {21, 21}, {3, 2}, {2, 2}, {1, 1}, {1, 1}, {}, {}, true, 8},
    {"depthwise_wide_padding", 2, 4, 4, {5, 7}, {2, 3}, {2, 2}, {9, 8}, {7, 9}, {}, {}, false, 4},
    {"depthwise_bands", 1, 4, 4, {200, 150}, {3, 3}, {}, {1, 1}, {1, 1}, {}, {}, false, 4},
    {"depthwise_strided_bands",
     1,
     2,
     2,
     {301, 90},
     {7, 7},
     {2, 2},
     {3, 3},
     {3, 3},
     {},
     {},
     false,
     2},
    // Columns of more taps than are summed at a time, in lines of one, two and three vectors.
    {"depthwise_high", 1, 3, 3, {25, 11}, {11, 5}, {}, {5, 2}, {5, 2}, {}, {}, false, 3},
    {"depthwise_high_steps", 2, 3, 6, {45, 37}, {9, 3}, {2, 1}, {4, 1}, {4, 1}, {}, {}, false, 3},
    {"depthwise_wide", 1, 3, 3, {15, 45}, {7, 7}, {}, {3, 3}, {3, 3}, {}, {}, false, 3},
    {"depthwise_lines", 3, 6, 12, {300}, {40}, {2}, {20}, {19}, {}, {}, false, 6},
    {"depthwise_of_one_channel", 3, 1, 6, {28, 27}, {3, 3}, {}, {1, 1}, {1, 1}},
    {"depthwise_of_one_line", 2, 1, 5, {800}, {10}, {5}, {0}, {3}},
    {"dx_depthwise_dilated", 2, 6, 6, {11, 12}, {3, 4}, {}, {3, 2}, {5, 7}, {}, {2, 1}, true, 6},
    {"dx_depthwise_lines", 3, 6, 6, {300}, {40}, {}, {20}, {19}, {}, {}, true, 6},
    {"dx", 2, 32, 16, {14, 14}, {3, 3}, {}, {1, 1}, {1, 1}, {}, {}, true},
    {"dx_large_batch", 40, 16, 8, {14, 14}, {2, 2}, {}, {1, 1}, {1, 1}, {}, {}, true},
    {"dx_pointwise", 2, 24, 16, {9, 9}, {1, 1}, {}, {}, {}, {}, {}, true},
    {"dx_strided", 4, 24, 16, {7, 7}, {3, 3}, {}, {1, 1}, {2, 2}, {2, 2}, {}, true},
    {"dx_pointwise_strided", 4, 24, 16, {7, 7}, {1, 1}, {}, {0, 0}, {1, 1}, {2, 2}, {}, true},
    {"dx_one_image", 1, 256, 256, {7, 7}, {3, 3}, {}, {1, 1}, {1, 1}, {}, {}, true},
    {"dx_grouped", 2, 32, 16, {7, 7}, {3, 3}, {}, {1, 1}, {2, 2}, {2, 2}, {}, true, 4},
    {"dx_depthwise", 2, 32, 32, {12, 12}, {3, 3}, {}, {1, 1}, {1, 1}, {}, {}, true, 32},
    {"dx_leftover", 2, 8, 8, {4, 4}, {3, 3}, {}, {2, 2}, {5, 5}, {3, 3}, {}, true},
    {"dx_dilated", 2, 8, 8, {7, 7}, {3, 3}, {}, {2, 2}, {2, 2}, {}, {2, 2}, true},
    {"transposed_unflipped", 2, 12, 8, {6, 6}, {4, 4}, {}, {2, 2}, {2, 2}, {2, 2}},
    {"wide_padding", 2, 4, 4, {6, 6}, {3, 3}, {}, {5, 5}, {5, 5}, {2, 2}},
    {"reversed_strided", 2, 8, 8, {11, 11}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {}, {}, true},
    {"stride_and_base", 2, 4, 4, {6, 6}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {3, 3}},
    {"dw", 16, 2, 32, {16, 16}, {14, 14}},  // lhs: batch is channels, features are images
    {"dw_padded", 16, 4, 32, {14, 14}, {14, 14}, {}, {1, 1}, {1, 1}},
    {"dw_strided", 16, 4, 24, {15, 15}, {8, 8}, {}, {1, 1}, {1, 1}, {}, {2, 2}},
    {"dw_strided_leftover", 16, 4, 24, {14, 14}, {7, 7}, {}, {1, 1}, {0, 0}, {}, {2, 2}},
    {"dw_dilated", 8, 4, 8, {17, 17}, {15, 15}, {2, 2}, {1, 1}, {1, 1}},
    {"dw_by_channels", 64, 4, 128, {7, 7}, {7, 7}, {}, {1, 1}, {1, 1}},
    {"dw_one_image", 32, 1, 48, {16, 16}, {14, 14}},
    {"dw_pointwise_to_one", 16, 3, 1, {12, 12}, {12, 12}},
    {"dw_pointwise_of_one", 1, 3, 16, {12, 12}, {12, 12}},
    {"dw_pointwise_of_few", 12, 3, 64, {8, 8}, {8, 8}},
    {"dw_pointwise_of_few_to_many", 12, 8, 192, {8, 8}, {8, 8}},
    {"dw_pointwise_to_few", 256, 3, 15, {8, 8}, {8, 8}},
    {"dw_grouped", 16, 4, 32, {12, 12}, {10, 10}, {}, {}, {}, {}, {}, false, 1, 4},
    {"dw_depthwise", 32, 4, 32, {12, 12}, {12, 12}, {}, {1, 1}, {1, 1}, {}, {}, false, 1, 32},
    {"three_dimensions", 2, 4, 8, {6, 7, 8}, {3, 3, 3}, {}, {1, 1, 1}, {1, 1, 1}},
    {"dx_three_dimensions",
     2,
     8,
     4,
     {3, 3, 3},
     {3, 3, 3},
     {},
     {1, 1, 1},
     {2, 2, 2},
     {2, 2, 2},
     {},
     true},
    {"dw_three_dimensions", 8, 2, 4, {6, 6, 6}, {6, 6, 6}, {}, {1, 1, 1}, {1, 1, 1}},
    {"dx_one_dimension", 2, 8, 4, {10}, {4}, {}, {2}, {2}, {2}, {}, true},
    {"dw_one_dimension", 8, 2, 4, {20}, {18}},
};

enum class Layout { kChannelsFirst, kChannelsLast, kMixed };

// Where the pair of non-spatial dimensions and the spatial ones stand in a tensor.
struct Placement {
  int64_t first, second;
  Dimensions spatial;
};

Placement Place(Layout layout, int64_t rank, int tensor) {
  Placement p;
  bool last = layout == Layout::kChannelsLast;
  if (layout == Layout::kMixed) {  // features, spatial, batch
    p.first = rank + 1;
    p.second = 0;
    for (int64_t i = 0; i < rank; ++i) p.spatial.push_back(i + 1);
    return p;
  }
  // The kernel: OIHW or HWIO.
  bool kernel_last = last && tensor == 1;
  p.first = kernel_last ? rank + 1 : 0;
  p.second = kernel_last ? rank : last ? rank + 1 : 1;
  for (int64_t i = 0; i < rank; ++i) p.spatial.push_back(kernel_last ? i : last ? i + 1 : i + 2);
  return p;
}

Dimensions Sizes(const Placement& p, int64_t first, int64_t second, const Dimensions& spatial) {
  Dimensions sizes(spatial.size() + 2);
  sizes[p.first] = first;
  sizes[p.second] = second;
  for (size_t i = 0; i < spatial.size(); ++i) sizes[p.spatial[i]] = spatial[i];
  return sizes;
}

Value Build(Builder& builder, const Case& c, Layout layout, ElementType type,
            ElementType result_type) {
  int64_t rank = static_cast<int64_t>(c.x.size());
  auto either = [&](const Dimensions& d, int64_t fill) {
    return d.empty() ? Dimensions(rank, fill) : d;
  };
  ConvolutionAttributes a;
  a.window.strides = either(c.stride, 1);
  a.window.padding_low = either(c.low, 0);
  a.window.padding_high = either(c.high, 0);
  a.window.base_dilations = either(c.base, 1);
  a.window.window_dilations = either(c.dilation, 1);
  a.window.reversal.assign(rank, c.reversed);
  a.feature_group_count = c.feature_groups;
  a.batch_group_count = c.batch_groups;
  Placement x = Place(layout, rank, 0), w = Place(layout, rank, 1), y = Place(layout, rank, 2);
  a.dimensions = {x.first,   x.second, x.spatial, w.second, w.first,
                  w.spatial, y.first,  y.second,  y.spatial};
  Shape lhs(type, Sizes(x, c.batch, c.inputs, c.x));
  Shape rhs(type, Sizes(w, c.outputs, c.inputs / c.feature_groups, c.w));
  Value x_value = builder.Parameter(lhs), w_value = builder.Parameter(rhs);
  return builder.Convolution(x_value, w_value, a, result_type);
}

void Check(const Case& c, Layout layout, ElementType type, ElementType result_type,
           const char* expected_description = nullptr) {
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  Builder builder(module.entry());
  Value convolution = Build(builder, c, layout, type, result_type);
  Literal a = RandomLiteral(convolution->operand(0)->shape(), 1);
  Literal b = RandomLiteral(convolution->operand(1)->shape(), 2);
  std::string description;
  auto got = RunLibraryCall(*convolution, {a, b}, &description);
  ASSERT_EQ(got.size(), 1u) << c.name;
  EXPECT_TRUE(Near(got[0], NaiveConvolution(*convolution, a, b), Tolerance(result_type)))
      << c.name << " layout " << static_cast<int>(layout) << " " << hlo::ShortName(type) << ": "
      << description;
  if (expected_description != nullptr) {
    EXPECT_NE(description.find(expected_description), std::string::npos)
        << c.name << ": " << description;
  }
}

class ConvolutionTest : public ::testing::TestWithParam<Case> {};

TEST_P(ConvolutionTest, EveryLayout) {
  for (Layout layout : {Layout::kChannelsFirst, Layout::kChannelsLast, Layout::kMixed}) {
    Check(GetParam(), layout, ElementType::kF32, ElementType::kF32);
  }
}

TEST_P(ConvolutionTest, NarrowTypes) {
  for (Layout layout : {Layout::kChannelsFirst, Layout::kChannelsLast}) {
    Check(GetParam(), layout, ElementType::kBF16, ElementType::kBF16);
    Check(GetParam(), layout, ElementType::kBF16, ElementType::kF32);
    Check(GetParam(), layout, ElementType::kF16, ElementType::kF16);
  }
}

class SmallConvolutionTest : public ConvolutionTest {};

// Those that plain loops compute quickly; the larger ones have the same forms.
std::vector<Case> SmallCases() {
  std::vector<Case> small;
  for (const Case& c : kCases) {
    double operations = static_cast<double>(c.inputs * c.outputs);
    for (int64_t size : c.x) operations *= static_cast<double>(size);
    if (operations <= 2e6) small.push_back(c);
  }
  return small;
}

TEST_P(SmallConvolutionTest, OtherTypes) {
  for (ElementType type :
       {ElementType::kPred, ElementType::kS8, ElementType::kU16, ElementType::kS32,
        ElementType::kS64, ElementType::kF64, ElementType::kC64, ElementType::kC128}) {
    Check(GetParam(), Layout::kChannelsFirst, type, type);
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, ConvolutionTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Forms, SmallConvolutionTest, ::testing::ValuesIn(SmallCases()),
                         [](const auto& info) { return info.param.name; });

// The forms of training must reach the library's own routines.
TEST(Convolution, TrainingFormsAreRecognized) {
  for (const Case& c : kCases) {
    std::string name = c.name;
    const char* expected = nullptr;
    if (name == "dx" || name == "dx_strided" || name == "dx_grouped") {
      expected = "input gradient";
    } else if (name == "dw" || name == "dw_strided" || name == "dw_grouped" ||
               name == "dw_depthwise" || name == "dw_by_channels") {
      expected = "weight gradient";
    } else if (name == "stem" || name == "same" || name == "depthwise") {
      expected = "oneDNN convolution ";
    } else {
      continue;
    }
    Check(c, Layout::kChannelsLast, ElementType::kF32, ElementType::kF32, expected);
  }
}

TEST(Convolution, SinglePixelsAreAProductWhereTheyLie) {
  for (const Case& c : kCases) {
    if (std::string(c.name) != "pointwise") continue;
    Check(c, Layout::kChannelsFirst, ElementType::kF32, ElementType::kF32, "convolution of pixels");
    Check(c, Layout::kChannelsLast, ElementType::kF32, ElementType::kF32, "oneDNN convolution ");
  }
}

// The library passes over padding; zeros times infinity would be NaN.
TEST(Convolution, PaddingIsNothingToInfiniteWeights) {
  for (const Case& c : kCases) {
    const std::string name = c.name;
    if (name != "depthwise" && name != "depthwise_steps" && name != "dx_depthwise") continue;
    hlo::Module module;
    module.set_entry(module.AddComputation("main"));
    Builder builder(module.entry());
    Value convolution =
        Build(builder, c, Layout::kChannelsFirst, ElementType::kF32, ElementType::kF32);
    Literal x = RandomLiteral(convolution->operand(0)->shape(), 1);
    Literal w = RandomLiteral(convolution->operand(1)->shape(), 2);
    w.mutable_data<float>()[0] = std::numeric_limits<float>::infinity();
    w.mutable_data<float>()[9 + 4] = std::numeric_limits<float>::quiet_NaN();
    w.mutable_data<float>()[18 + 8] = -std::numeric_limits<float>::infinity();
    std::string description;
    const auto got = Numbers(RunLibraryCall(*convolution, {x, w}, &description)[0]);
    EXPECT_NE(description.find("convolution of each channel"), std::string::npos) << description;
    const auto expected = NaiveConvolution(*convolution, x, w);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const double a = got[i].real(), b = expected[i].real();
      if (std::isfinite(b)) {
        EXPECT_NEAR(a, b, 1e-4) << name << " " << i;
      } else {
        EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << name << " " << i << " " << a;
      }
    }
  }
}

TEST(Convolution, ChannelsByThemselvesAreSummedWhereTheyLie) {
  for (const Case& c : kCases) {
    const std::string name = c.name;  // (The strided one has results of few pixels.)
    if (!name.starts_with("depthwise") || name == "depthwise_strided") continue;
    for (ElementType type : {ElementType::kF32, ElementType::kBF16}) {
      Check(c, Layout::kChannelsFirst, type, type, "convolution of each channel");
    }
  }
}

// oneDNN has none of these types, and brings channels of single pixels into another order first.
TEST(Convolution, PatchesAreProducts) {
  for (const Case& c : SmallCases()) {
    const std::string name = c.name;
    // Channels by themselves, few pixels, and what is of no form that is recognized.
    if (name.find("depthwise") != std::string::npos || name == "reversed_strided" ||
        name == "dx_leftover" || name == "stride_and_base" || name == "wide_padding" ||
        name == "transposed_unflipped") {
      continue;
    }
    for (Layout layout : {Layout::kChannelsFirst, Layout::kChannelsLast}) {
      for (ElementType type : {ElementType::kF64, ElementType::kC64, ElementType::kC128}) {
        Check(c, layout, type, type, "convolution of patches");
      }
    }
    if (name.starts_with("dw_pointwise")) {
      Check(c, Layout::kChannelsFirst, ElementType::kF32, ElementType::kF32,
            "convolution of patches");
    }
  }
}

TEST(Convolution, Epilogue) {
  for (const Case& c : kCases) {
    if (c.batch_groups > 1 || c.x.size() != 2) continue;
    for (Layout layout : {Layout::kChannelsFirst, Layout::kChannelsLast, Layout::kMixed}) {
      for (ElementType type : {ElementType::kF32, ElementType::kBF16}) {
        hlo::Module module;
        hlo::Computation* body = module.AddComputation("body");
        Builder inside(body);
        Value convolution = Build(inside, c, layout, type, type);
        const Shape& shape = convolution->shape();
        int64_t feature =
            convolution->as<ConvolutionAttributes>().dimensions.output_feature_dimension;
        Shape bias_shape(type, {shape.dimension(feature)});
        Value bias = inside.Parameter(bias_shape), residual = inside.Parameter(shape);
        Value sum = inside.Add(
            inside.Add(convolution, inside.BroadcastInDim(bias, shape.dimensions(), {feature})),
            residual);
        body->set_results({inside.Maximum(sum, inside.Zeros(shape))});
        module.set_entry(module.AddComputation("main"));
        Builder builder(module.entry());
        std::vector<Value> operands;
        std::vector<Literal> literals;
        for (hlo::Instruction* parameter : body->parameters()) {
          operands.push_back(builder.Parameter(parameter->shape()));
          literals.push_back(RandomLiteral(parameter->shape(), operands.size()));
        }
        Value composite =
            builder.Create(Opcode::kComposite, operands,
                           hlo::CompositeAttributes{"cpu.convolution", {}, 0}, {body});
        std::string description;
        auto got = RunLibraryCall(*composite, literals, &description);
        bool weight_gradient = std::string(c.name).starts_with("dw");
        if (got.empty() && weight_gradient) continue;
        ASSERT_EQ(got.size(), 1u) << c.name;
        auto expected = NaiveConvolution(*convolution, literals[0], literals[1]);
        auto b = Numbers(literals[2]), r = Numbers(literals[3]);
        int64_t inner = 1;
        for (int64_t d = feature + 1; d < shape.rank(); ++d) inner *= shape.dimension(d);
        for (size_t i = 0; i < expected.size(); ++i) {
          double value = expected[i].real() + r[i].real() +
                         b[static_cast<int64_t>(i) / inner % shape.dimension(feature)].real();
          expected[i] = std::max(value, 0.0);
        }
        EXPECT_TRUE(Near(got[0], expected, Tolerance(type)))
            << c.name << " layout " << static_cast<int>(layout) << ": " << description;
      }
    }
  }
}

TEST(Convolution, WorksInAForkedChild) {
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  Builder builder(module.entry());
  Value convolution =
      Build(builder, kCases[1], Layout::kChannelsLast, ElementType::kF32, ElementType::kF32);
  Literal a = RandomLiteral(convolution->operand(0)->shape(), 1);
  Literal b = RandomLiteral(convolution->operand(1)->shape(), 2);
  auto expected = RunLibraryCall(*convolution, {a, b});
  pid_t pid = fork();
  if (pid == 0) {
    alarm(30);
    _exit(RunLibraryCall(*convolution, {a, b})[0] == expected[0] ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace cpu
