#include "passes/convolution_layout.h"

#include "pass_test.h"
#include "passes/common_subexpressions.h"
#include "passes/fold_reverse_into_convolution.h"

namespace passes {
namespace {

using hlo::ConvolutionAttributes;
using hlo::ConvolutionDimensions;
using hlo::Dimensions;
using hlo::Window;

ConvolutionAttributes Attributes(Dimensions strides, Dimensions low, Dimensions high,
                                 Dimensions base = {1, 1}, Dimensions dilation = {1, 1}) {
  ConvolutionAttributes a;
  a.dimensions = ConvolutionDimensions::ChannelsFirst(2);
  a.window = {{},
              std::move(strides),
              std::move(low),
              std::move(high),
              std::move(base),
              std::move(dilation),
              {false, false}};
  return a;
}

// Kernel [O, I, h, w] read as [I, O, h, w]: the gradient of the input.
ConvolutionAttributes InputGradient(Dimensions base, Dimensions low, Dimensions high) {
  ConvolutionAttributes a = Attributes({1, 1}, std::move(low), std::move(high), std::move(base));
  std::swap(a.dimensions.kernel_input_feature_dimension,
            a.dimensions.kernel_output_feature_dimension);
  return a;
}

// Batch and features change roles: the gradient of the kernel, [O, I, h, w].
ConvolutionAttributes KernelGradient(Dimensions dilation, Dimensions low, Dimensions high) {
  ConvolutionAttributes a =
      Attributes({1, 1}, std::move(low), std::move(high), {1, 1}, std::move(dilation));
  auto& d = a.dimensions;
  std::swap(d.input_batch_dimension, d.input_feature_dimension);
  d.kernel_input_feature_dimension = 0;
  d.kernel_output_feature_dimension = 1;
  std::swap(d.output_batch_dimension, d.output_feature_dimension);
  return a;
}

// Numbers on which sums are exact in any order.
Literal SmallIntegers(const Shape& shape, unsigned seed) {
  Literal literal(shape);
  std::mt19937 random(seed);
  for (float& x : literal.mutable_data<float>()) x = static_cast<float>(random() % 7) - 3;
  return literal;
}

int Transposes(const hlo::Module& module, int64_t rank) {
  int count = 0;
  for (const auto& i : module.entry()->instructions()) {
    count += i->opcode() == Opcode::kTranspose && i->shape().rank() == rank;
  }
  return count;
}

// Runs the pass and compares the results; returns the number of transposes of rank 4 left.
int Check(const std::vector<Shape>& parameters, const Body& body) {
  auto module = MakeModule(parameters, body);
  std::vector<Literal> arguments;
  for (const Shape& shape : parameters) {
    arguments.push_back(SmallIntegers(shape, static_cast<unsigned>(arguments.size())));
  }
  auto expected = hlo::Evaluate(*module, arguments);
  EXPECT_TRUE(UseChannelsLast(*module));
  EliminateCommonSubexpressions(*module);
  hlo::VerifyModule(*module);
  auto got = hlo::Evaluate(*module, arguments);
  EXPECT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].shape(), expected[i].shape());
    auto x = got[i].data<float>(), y = expected[i].data<float>();
    for (size_t j = 0; j < x.size(); ++j) {
      EXPECT_NEAR(x[j], y[j], 1e-4 * (1 + std::abs(y[j]))) << "result " << i << " element " << j;
    }
  }
  for (const auto& i : module->entry()->instructions()) {
    if (i->opcode() != Opcode::kConvolution) continue;
    const auto& d = i->as<ConvolutionAttributes>().dimensions;
    EXPECT_EQ(d.input_spatial_dimensions, (Dimensions{1, 2})) << i->ToString();
  }
  EXPECT_FALSE(UseChannelsLast(*module)) << "a second run finds nothing";
  return Transposes(*module, 4);
}

Value Relu(Builder& b, Value x) { return b.Maximum(x, b.Zeros(x->shape())); }

TEST(UseChannelsLast, ATrainingStepKeepsTransposesAtItsEdges) {
  // A residual block with bias, relu, normalisation over the batch, max-pooling, and its gradients.
  int transposes = Check(
      {F32({2, 3, 8, 8}), F32({4, 3, 3, 3}), F32({4}), F32({4, 4, 3, 3})},
      [](Builder& b, const std::vector<Value>& p) -> std::vector<Value> {
        Value x = p[0], w1 = p[1], bias = p[2], w2 = p[3];
        Value y1 = b.Convolution(x, w1, Attributes({1, 1}, {1, 1}, {1, 1}));
        Value h = Relu(b, b.Add(y1, b.BroadcastInDim(bias, {2, 4, 8, 8}, {1})));
        Value mean = b.Divide(b.Reduce(Opcode::kAdd, h, {0, 2, 3}), b.Full(F32({4}), 128.0));
        Value centered = b.Subtract(h, b.BroadcastInDim(mean, {2, 4, 8, 8}, {1}));
        Value y2 = b.Convolution(centered, w2, Attributes({1, 1}, {1, 1}, {1, 1}));
        Value sum = b.Add(y2, h);
        Window window = Window::Trivial(4);
        window.dimensions = window.strides = {1, 1, 2, 2};
        Value pooled = b.ReduceWindow(
            sum, b.Constant(hlo::IdentityLiteral(Opcode::kMaximum, ElementType::kF32)), window,
            b.ScalarCombiner(Opcode::kMaximum, ElementType::kF32));
        Value per_image = b.Reduce(Opcode::kAdd, pooled, {2, 3});
        // Backwards, from a gradient that is the same everywhere in a channel of an image.
        Value dpooled = b.BroadcastInDim(per_image, {2, 4, 4, 4}, {0, 1});
        hlo::Computation* ge =
            b.Region("ge", {Shape::Scalar(ElementType::kF32), Shape::Scalar(ElementType::kF32)},
                     [](Builder& r, const std::vector<Value>& q) {
                       return std::vector<Value>{r.Ge(q[0], q[1])};
                     });
        Value dsum =
            b.SelectAndScatter(sum, dpooled, b.ConstantScalar(ElementType::kF32, 0.0), window, ge,
                               b.ScalarCombiner(Opcode::kAdd, ElementType::kF32));
        Value dw2 = b.Convolution(centered, dsum, KernelGradient({1, 1}, {1, 1}, {1, 1}));
        Value dcentered =
            b.Convolution(dsum, b.Reverse(w2, {2, 3}), InputGradient({1, 1}, {1, 1}, {1, 1}));
        Value dh =
            b.Select(b.Gt(h, b.Zeros(h->shape())), b.Add(dcentered, dsum), b.Zeros(h->shape()));
        Value dw1 = b.Convolution(x, dh, KernelGradient({1, 1}, {1, 1}, {1, 1}));
        Value dbias = b.Reduce(Opcode::kAdd, dh, {0, 2, 3});
        return {per_image, dw2, dw1, dbias};
      });
  EXPECT_EQ(transposes, 1) << "the input alone";
}

TEST(UseChannelsLast, StridedGradients) {
  Check({F32({2, 3, 9, 9}), F32({4, 3, 3, 3}), F32({2, 4, 5, 5})},
        [](Builder& b, const std::vector<Value>& p) -> std::vector<Value> {
          Value dx =
              b.Convolution(p[2], b.Reverse(p[1], {2, 3}), InputGradient({2, 2}, {1, 1}, {1, 1}));
          Value dw = b.Convolution(p[0], p[2], KernelGradient({2, 2}, {1, 1}, {1, 1}));
          return {dx, dw};
        });
}

TEST(UseChannelsLast, RearrangementsFollow) {
  Check({F32({2, 3, 6, 6}), F32({4, 3, 1, 1}), F32({2, 2, 6, 6}), F32({2, 4, 1, 6})},
        [](Builder& b, const std::vector<Value>& p) -> std::vector<Value> {
          Value y = b.Convolution(p[0], p[1], Attributes({1, 1}, {0, 0}, {0, 0}));
          Value joined = b.Concatenate({y, p[2]}, 1);
          Value zero = b.ConstantScalar(ElementType::kF32, 0.0);
          Value padded = b.Pad(joined, zero, {0, 1, 2, -1}, {0, 0, 1, 3}, {0, 0, 1, 0});
          Value sliced = b.Slice(padded, {0, 1, 2, 3}, {2, 6, 9, 8}, {1, 2, 3, 1});
          Value turned = b.Transpose(b.Reverse(sliced, {1, 3}), {0, 2, 3, 1});
          Value stretched = b.Add(y, b.BroadcastInDim(p[3], {2, 4, 6, 6}, {0, 1, 2, 3}));
          return {turned, sliced, b.Reshape(y, {2, 4 * 36}), b.Reduce(Opcode::kAdd, y, {0}),
                  stretched};
        });
}

TEST(UseChannelsLast, GroupedForms) {
  Check({F32({2, 4, 6, 6}), F32({8, 2, 3, 3}), F32({2, 8, 6, 6})},
        [](Builder& b, const std::vector<Value>& p) -> std::vector<Value> {
          ConvolutionAttributes forward = Attributes({1, 1}, {1, 1}, {1, 1});
          forward.feature_group_count = 2;
          ConvolutionAttributes gradient = KernelGradient({1, 1}, {1, 1}, {1, 1});
          gradient.batch_group_count = 2;
          return {b.Convolution(p[0], p[1], forward), b.Convolution(p[0], p[2], gradient)};
        });
}

TEST(UseChannelsLast, LeavesChannelsLastAlone) {
  auto module = MakeModule({F32({2, 6, 6, 3}), F32({3, 3, 3, 4})},
                           [](Builder& b, const std::vector<Value>& p) -> std::vector<Value> {
                             ConvolutionAttributes a = Attributes({1, 1}, {1, 1}, {1, 1});
                             a.dimensions = {0, 3, {1, 2}, 2, 3, {0, 1}, 0, 3, {1, 2}};
                             return {b.Convolution(p[0], p[1], a)};
                           });
  EXPECT_FALSE(UseChannelsLast(*module));
}

TEST(FoldReverseIntoConvolution, SpatialReversesOnly) {
  for (bool spatial : {true, false}) {
    auto module = MakeModule(
        {F32({2, 3, 6, 6}), F32({4, 3, 3, 3})},
        [&](Builder& b, const std::vector<Value>& p) -> std::vector<Value> {
          Value flipped = b.Reverse(p[1], spatial ? Dimensions{2, 3} : Dimensions{1, 2, 3});
          return {b.Convolution(p[0], flipped, Attributes({1, 1}, {1, 1}, {1, 1}))};
        });
    std::vector<Literal> arguments = {SmallIntegers(F32({2, 3, 6, 6}), 1),
                                      SmallIntegers(F32({4, 3, 3, 3}), 2)};
    auto expected = hlo::Evaluate(*module, arguments);
    EXPECT_EQ(FoldReverseIntoConvolution(*module), spatial);
    hlo::VerifyModule(*module);
    EXPECT_EQ(hlo::Evaluate(*module, arguments), expected);
    if (!spatial) continue;
    const auto& window = module->entry()->result()->as<ConvolutionAttributes>().window;
    EXPECT_EQ(window.reversal, (std::vector<bool>{true, true}));
    for (const auto& i : module->entry()->instructions()) {
      EXPECT_NE(i->opcode(), Opcode::kReverse);
    }
  }
}

}  // namespace
}  // namespace passes
