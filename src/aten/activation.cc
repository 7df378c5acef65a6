// Activations and their gradients. Slopes and limits are part of the graph: they do not change from
// step to step.
#include <ATen/Dispatch.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>

#include "aten/broadcast.h"
#include "aten/constant.h"
#include "aten/elementwise.h"
#include "aten/op.h"
#include "aten/small_forms.h"
#include "aten/special.h"
#include "aten/twin.h"

namespace torch_xla {
namespace {

Value IsPositive(Builder& b, Value x) { return b.Gt(x, Like(b, x, 0)); }

Value Relu(Builder& b, Value x) { return b.Maximum(x, b.Zeros(x->shape())); }

Value Threshold(Builder& b, Value x, ComputedConstant threshold, FittingConstant value) {
  return b.Select(b.Le(x, Like(b, x, NumberOf(threshold))), Like(b, x, NumberOf(value)), x);
}
Value ThresholdBackward(Builder& b, Value gradient, Value x, ComputedConstant threshold) {
  return b.Select(b.Le(x, Like(b, x, NumberOf(threshold))), Like(b, gradient, 0), gradient);
}

Value LeakyRelu(Builder& b, Value x, ComputedConstant slope) {
  return b.Select(IsPositive(b, x), x, b.Multiply(x, Like(b, x, NumberOf(slope))));
}

// From a result alone a negative slope cannot be told from a positive one.
void CheckSlopeInPlace(double slope, bool is_result) {
  if (!is_result || slope >= 0) return;
  throw hlo::Error(
      "the gradient of an activation in place is not supported for a negative slope: call the "
      "function that is not in place");
}

Value LeakyReluBackward(Builder& b, Value gradient, Value x, ComputedConstant slope,
                        bool is_result) {
  CheckSlopeInPlace(NumberOf(slope), is_result);
  Value scaled = b.Multiply(gradient, Like(b, gradient, NumberOf(slope)));
  return b.Select(IsPositive(b, x), gradient, scaled);
}

Value Prelu(Builder& b, Value x, Value weight) {
  return b.Select(IsPositive(b, x), x, b.Multiply(x, weight));
}
// The input stands first, as in eager's kernel: by its first operand a result is laid out.
Value PreluGradientOfInput(Builder& b, Value x, Value weight, Value gradient) {
  return b.Select(IsPositive(b, x), gradient, b.Multiply(gradient, weight));
}
Value PreluGradientOfWeight(Builder& b, Value x, Value weight, Value gradient) {
  return b.Select(IsPositive(b, x), Like(b, x, 0), b.Multiply(gradient, x));
}

Value Elu(Builder& b, Value x, ComputedConstant alpha, ComputedConstant scale,
          ComputedConstant input_scale) {
  Value scaled_input = b.Multiply(x, Like(b, x, NumberOf(input_scale)));
  Value negative = b.Multiply(b.Unary(Opcode::kExponentialMinusOne, scaled_input),
                              Like(b, x, NumberOf(alpha) * NumberOf(scale)));
  return b.Select(IsPositive(b, x), b.Multiply(x, Like(b, x, NumberOf(scale))), negative);
}
Value EluBackward(Builder& b, Value gradient, ComputedConstant alpha, ComputedConstant scale,
                  ComputedConstant input_scale, bool is_result, Value x) {
  CheckSlopeInPlace(NumberOf(alpha), is_result);
  double negative_slope = NumberOf(alpha) * NumberOf(scale), inner = NumberOf(input_scale);
  Value growth = is_result ? b.Multiply(b.Add(x, Like(b, x, negative_slope)), Like(b, x, inner))
                           : b.Multiply(b.Exp(b.Multiply(x, Like(b, x, inner))),
                                        Like(b, x, negative_slope * inner));
  Value slope = b.Select(IsPositive(b, x), Like(b, x, NumberOf(scale)), growth);
  return b.Multiply(gradient, slope);
}

constexpr double kTanhCubic = 0.044715;
const double kTanhScale = std::sqrt(2 / std::numbers::pi);

// tanh(sqrt(2/pi) (x + 0.044715 x^3)).
Value GeluTanh(Builder& b, Value x) {
  Value cubic = b.Multiply(b.Multiply(x, x), Like(b, x, kTanhCubic));
  Value inner = b.Multiply(x, b.Add(cubic, Like(b, x, 1)));
  return b.Tanh(b.Multiply(inner, Like(b, x, kTanhScale)));
}
// The normal distribution's cumulative function, absolutely exact where gelu needs it.
Value GeluCdf(Builder& b, Value x) {
  Value erf = Erf(b, b.Multiply(x, Like(b, x, std::numbers::sqrt2 / 2)));
  return b.Multiply(b.Add(erf, Like(b, x, 1)), Like(b, x, 0.5));
}

void CheckApproximation(const std::string& approximate) {
  if (approximate == "none" || approximate == "tanh") return;
  throw hlo::Error("approximate argument must be either none or tanh.");
}

Value Gelu(Builder& b, Value x, std::string approximate) {
  CheckApproximation(approximate);
  if (approximate != "tanh") return b.Multiply(x, GeluCdf(b, x));
  Value half = b.Multiply(x, Like(b, x, 0.5));
  return b.Multiply(half, b.Add(GeluTanh(b, x), Like(b, x, 1)));
}

Value GeluBackward(Builder& b, Value gradient, Value x, std::string approximate) {
  CheckApproximation(approximate);
  Value one = Like(b, x, 1), half = Like(b, x, 0.5), square = b.Multiply(x, x);
  Value slope;
  if (approximate != "tanh") {
    Value density = b.Multiply(b.Exp(b.Multiply(square, Like(b, x, -0.5))),
                               Like(b, x, std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2));
    slope = b.Add(GeluCdf(b, x), b.Multiply(x, density));
  } else {
    Value t = GeluTanh(b, x);
    Value inner = b.Multiply(b.Add(b.Multiply(square, Like(b, x, 3 * kTanhCubic)), one),
                             Like(b, x, kTanhScale));
    Value tail = b.Multiply(b.Multiply(x, b.Subtract(one, b.Multiply(t, t))), inner);
    slope = b.Multiply(half, b.Add(b.Add(one, t), tail));
  }
  return b.Multiply(gradient, slope);
}

Value Silu(Builder& b, Value x) { return b.Multiply(x, b.Logistic(x)); }
Value SiluBackward(Builder& b, Value gradient, Value x) {
  Value sigmoid = b.Logistic(x), one = Like(b, x, 1);
  Value inner = b.Add(one, b.Multiply(x, b.Subtract(one, sigmoid)));
  return b.Multiply(gradient, b.Multiply(sigmoid, inner));
}

// log(1 + exp(x)) without overflow.
Value LogOnePlusExp(Builder& b, Value x) {
  Value tail = b.Unary(Opcode::kLogPlusOne, b.Exp(b.Negate(b.Abs(x))));
  return b.Add(b.Maximum(x, Like(b, x, 0)), tail);
}
Value Mish(Builder& b, Value x) { return b.Multiply(x, b.Tanh(LogOnePlusExp(b, x))); }
Value MishBackward(Builder& b, Value gradient, Value x) {
  Value t = b.Tanh(LogOnePlusExp(b, x));
  Value slope = b.Multiply(b.Logistic(x), b.Subtract(Like(b, x, 1), b.Multiply(t, t)));
  return b.Multiply(gradient, b.Add(t, b.Multiply(x, slope)));
}

Value Softplus(Builder& b, Value x, ComputedConstant beta, ComputedConstant threshold) {
  Value scaled = b.Multiply(x, Like(b, x, NumberOf(beta)));
  Value smooth = b.Multiply(LogOnePlusExp(b, scaled), Like(b, x, 1 / NumberOf(beta)));
  return b.Select(b.Gt(scaled, Like(b, x, NumberOf(threshold))), x, smooth);
}
Value SoftplusBackward(Builder& b, Value gradient, Value x, ComputedConstant beta,
                       ComputedConstant threshold) {
  Value scaled = b.Multiply(x, Like(b, x, NumberOf(beta)));
  Value smooth = b.Multiply(gradient, b.Logistic(scaled));
  return b.Select(b.Gt(scaled, Like(b, x, NumberOf(threshold))), gradient, smooth);
}

Value Inside(Builder& b, Value x, double low, double high, bool inclusive) {
  Value l = Like(b, x, low), h = Like(b, x, high);
  return inclusive ? b.And(b.Ge(x, l), b.Le(x, h)) : b.And(b.Gt(x, l), b.Lt(x, h));
}

Value Hardtanh(Builder& b, Value x, FittingConstant low, FittingConstant high) {
  if (hlo::IsUnsignedInteger(x->element_type()) && (NumberOf(low) < 0 || NumberOf(high) < 0)) {
    throw hlo::Error("cannot do hardtanh on an unsigned type with negative limits");
  }
  Value l = Like(b, x, NumberOf(low)), h = Like(b, x, NumberOf(high));
  return b.Clamp(l, x, h);
}
Value HardtanhBackward(Builder& b, Value gradient, Value x, ComputedConstant low,
                       ComputedConstant high) {
  // A limit that is no number is none.
  Value is_outside = b.Or(b.Le(x, Like(b, x, NumberOf(low))), b.Ge(x, Like(b, x, NumberOf(high))));
  return b.Select(is_outside, Like(b, gradient, 0), gradient);
}

// clamp(x + 3, 0, 6) / 6.
Value Hardsigmoid(Builder& b, Value x) {
  Value shifted = b.Add(x, Like(b, x, 3));
  return b.Multiply(b.Clamp(Like(b, x, 0), shifted, Like(b, x, 6)), Like(b, x, 1.0 / 6));
}
Value HardsigmoidBackward(Builder& b, Value gradient, Value x) {
  return ZeroUnless(b, Inside(b, x, -3, 3, false),
                    b.Multiply(gradient, Like(b, gradient, 1.0 / 6)));
}
Value Hardswish(Builder& b, Value x) { return b.Multiply(x, Hardsigmoid(b, x)); }
Value HardswishBackward(Builder& b, Value gradient, Value x) {
  Value slope = b.Add(b.Multiply(x, Like(b, x, 1.0 / 3)), Like(b, x, 0.5));
  slope = b.Select(b.Ge(x, Like(b, x, 3)), Like(b, x, 1), slope);
  slope = b.Select(b.Le(x, Like(b, x, -3)), Like(b, x, 0), slope);
  return b.Multiply(gradient, slope);
}

Value Hardshrink(Builder& b, Value x, FittingConstant lambda) {
  return b.Select(Inside(b, x, -NumberOf(lambda), NumberOf(lambda), true), Like(b, x, 0), x);
}
Value ShrinkBackward(Builder& b, Value gradient, Value x, FittingConstant lambda) {
  const double limit = NumberOf(lambda);
  if (std::isnan(limit)) return gradient;
  Value inside = Inside(b, x, -limit, limit, true);
  return b.Select(inside, Like(b, gradient, 0), gradient);
}
Value Softshrink(Builder& b, Value x, Constant lambda) {
  const double limit = NumberOf(lambda);
  Value low = b.Add(x, Like(b, x, limit)), high = b.Subtract(x, Like(b, x, limit));
  Value shifted =
      b.Select(b.Lt(x, Like(b, x, -limit)), low, b.Select(IsNan(b, x), x, Like(b, x, 0)));
  return b.Select(b.Gt(x, Like(b, x, limit)), high, shifted);
}
at::Tensor SoftshrinkChecked(const at::Tensor& x, const at::Scalar& lambda) {
  const double limit = lambda.toDouble();
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kBFloat16, at::kHalf, x.scalar_type(), "softshrink_check", [&] {
        const auto most = static_cast<double>(std::numeric_limits<scalar_t>::max());
        TORCH_CHECK(0 <= limit && limit <= most, "lambda must be in range [0, ", most,
                    "] for input dtype ", c10::toString(x.scalar_type()), ", but found ", limit);
      });
  return RecordElementwise<&Softshrink, Promotion::kDefault>(x, lambda);
}

// The buffer that eager's CPU kernel keeps is empty elsewhere, as on other accelerators. It has the
// operand's rank: vmap looks for its dimensions in it, and takes the rank for that of the slopes.
Dimensions BufferOf(int64_t rank) { return Dimensions(rank, 0); }

std::pair<Value, Value> LogSigmoid(Builder& b, Value x) {
  Value buffer = b.Zeros(Shape(x->element_type(), BufferOf(x->shape().rank())));
  // Taken from 0, so that what vanishes is 0 and not -0.
  return {b.Subtract(Like(b, x, 0), LogOnePlusExp(b, b.Negate(x))), buffer};
}
Value LogSigmoidBackward(Builder& b, Value gradient, Value x, Value buffer) {
  // A batch of gradients for one operand, and the other way around, come from transforms.
  std::tie(gradient, x) = Broadcast(b, gradient, x);
  return b.Multiply(gradient, b.Logistic(b.Negate(x)));
}

std::pair<Value, Value> Halves(Builder& b, Value x, int64_t dimension) {
  int64_t size = x->shape().dimension(dimension);
  if (size % 2 != 0) {
    throw hlo::Error("Halving dimension must be even, but dimension " + std::to_string(dimension) +
                     " is size " + std::to_string(size));
  }
  return {b.SliceInDim(x, dimension, 0, size / 2), b.SliceInDim(x, dimension, size / 2, size)};
}
Value Glu(Builder& b, Value x, Dimension dimension) {
  if (x->shape().rank() == 0) {
    throw hlo::Error("glu does not support 0-dimensional tensors");
  }
  auto [value, gate] = Halves(b, x, dimension);
  return b.Multiply(value, b.Logistic(gate));
}
Value GluBackward(Builder& b, Value gradient, Value x, int64_t dimension) {
  if (dimension < 0) dimension += x->shape().rank();
  auto [value, gate] = Halves(b, x, dimension);
  Value sigmoid = b.Logistic(gate);
  Value of_value = b.Multiply(gradient, sigmoid);
  Value slope = b.Multiply(value, b.Subtract(Like(b, sigmoid, 1), sigmoid));
  return b.Concatenate({of_value, b.Multiply(of_value, slope)}, dimension);
}

std::tuple<at::Tensor, at::Tensor> PreluBackward(const at::Tensor& gradient, const at::Tensor& x,
                                                 const at::Tensor& weight) {
  return {RecordElementwise<&PreluGradientOfInput, Promotion::kDefault>(x, weight, gradient),
          RecordElementwise<&PreluGradientOfWeight, Promotion::kDefault>(x, weight, gradient)};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RegisterElementwise<&Relu>(m, "relu");
  RunSmallElementwiseBy<&Relu>(&small_loops::Relu);
  RegisterElementwise<&Threshold>(m, "threshold");
  RunElementwiseBy<&ThresholdBackward, Promotion::kDefault>(
      +[](const at::Tensor& gradient, const at::Tensor& x, const at::Scalar& threshold) {
        at::Tensor kept = KeepAboveOnHost(gradient, x, threshold);
        return kept.defined() ? kept : at::threshold_backward(gradient, x, threshold);
      });
  RegisterElementwise<&ThresholdBackward>(m, "threshold_backward");
  RegisterElementwise<&LeakyRelu>(m, "leaky_relu");
  RegisterElementwise<&LeakyReluBackward>(m, "leaky_relu_backward");
  RegisterElementwise<&Prelu>(m, "_prelu_kernel");
  m.impl("_prelu_kernel_backward", &PreluBackward);
  RegisterElementwise<&Elu>(m, "elu");
  RegisterElementwise<&EluBackward>(m, "elu_backward");
  RegisterElementwise<&Gelu>(m, "gelu");
  RegisterElementwise<&GeluBackward>(m, "gelu_backward");
  RegisterElementwise<&Silu>(m, "silu");
  RegisterElementwise<&SiluBackward>(m, "silu_backward");
  RegisterElementwise<&Mish>(m, "mish");
  RegisterElementwise<&MishBackward>(m, "mish_backward");
  RegisterElementwise<&Softplus>(m, "softplus");
  RegisterElementwise<&SoftplusBackward>(m, "softplus_backward");
  RegisterElementwise<&Hardtanh>(m, "hardtanh");
  RegisterElementwise<&HardtanhBackward>(m, "hardtanh_backward");
  RegisterElementwise<&Hardsigmoid>(m, "hardsigmoid");
  RegisterElementwise<&HardsigmoidBackward>(m, "hardsigmoid_backward");
  RegisterElementwise<&Hardswish>(m, "hardswish");
  RegisterElementwise<&HardswishBackward>(m, "hardswish_backward");
  RegisterElementwise<&Hardshrink>(m, "hardshrink");
  RegisterElementwise<&Twin<0, &ShrinkBackward>::Lower>(m, "hardshrink_backward");
  recording::RunElementwiseByOperator<&Softshrink, Promotion::kDefault>("softshrink",
                                                                        &SoftshrinkChecked);
  recording::NameKind(recording::ElementwiseFamily<&Softshrink, Promotion::kDefault>().kind(),
                      "softshrink");
  m.impl("softshrink", &SoftshrinkChecked);
  RegisterElementwise<&Twin<1, &ShrinkBackward>::Lower>(m, "softshrink_backward");
  RunBy<&LogSigmoid>(+[](const at::Tensor& x) {
    return std::make_tuple(at::log_sigmoid(x), at::zeros(BufferOf(x.dim()), x.options()));
  });
  RunBy<&LogSigmoidBackward>(
      +[](const at::Tensor& gradient, const at::Tensor& x, const at::Tensor&) {
        return at::mul(gradient, at::sigmoid(at::neg(x)));
      });
  Register<&LogSigmoid>(m, "log_sigmoid_forward");
  Register<&LogSigmoidBackward>(m, "log_sigmoid_backward");
  Register<&Glu>(m, "glu");
  Register<&GluBackward>(m, "glu_backward");
}

}  // namespace torch_xla
