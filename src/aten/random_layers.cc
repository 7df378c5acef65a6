// Layers that draw: dropout, and the leaky rectifier of random slopes.
#include <ATen/MemoryOverlap.h>

#include <cmath>

#include "aten/broadcast.h"
#include "aten/draws.h"
#include "aten/elementwise.h"
#include "aten/evaluated_form.h"
#include "aten/generator.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/refused_types.h"
#include "hlo/counter_random.h"

namespace torch_xla {
namespace {

// --- Dropout

// x times the scale where the mask is true, in the type that x's products are rounded from: f16
// does not hold every scale.
Value ScaleUnderMask(Builder& b, Value mask, Value x, double scale) {
  Value wide = ToAccumulation(b, x);
  return ZeroUnless(b, mask, b.Convert(b.Multiply(wide, Like(b, wide, scale)), x->element_type()));
}

std::pair<Value, Value> Dropout(Builder& b, Value state, Value x, double p) {
  Value mask = Coin(b, RandomBits(b, state, x->dimensions(), ElementType::kU32), 1 - p);
  // Programs of PyTorch/XLA show a mask of bytes. Compilers drop the two conversions.
  Value kept = b.Convert(b.Convert(mask, ElementType::kU8), ElementType::kPred);
  return {ScaleUnderMask(b, kept, x, p == 1 ? 0 : 1 / (1 - p)), mask};
}

// Coin of RandomBits, without a program.
at::Tensor ThrowCoins(const at::Tensor& state, at::IntArrayRef sizes, double p) {
  const uint64_t key = state.const_data_ptr<uint64_t>()[0];
  const uint64_t start = state.const_data_ptr<uint64_t>()[1];
  const auto limit = static_cast<uint64_t>(std::llround(std::ldexp(p, 32)));
  at::Tensor coins = at::empty(sizes, at::kBool);
  bool* out = coins.mutable_data_ptr<bool>();
  const auto count = static_cast<uint64_t>(coins.numel());
  hlo::ForEachPhiloxBlock(key, start, key, (count + 3) / 4, [&](uint64_t number, auto words) {
    for (uint64_t i = 4 * number, k = 0; k < 4 && i < count; ++i, ++k) out[i] = words[k] < limit;
  });
  return coins;
}

std::tuple<at::Tensor, at::Tensor> RunDropout(const at::Tensor& state, const at::Tensor& x,
                                              double p) {
  at::Tensor mask = ThrowCoins(state, x.sizes(), 1 - p);
  at::Tensor scaled = x.mul(p == 1 ? 0 : 1 / (1 - p));
  return {at::where(mask, scaled, at::zeros({}, scaled.options())), mask};
}

Value DropoutBackward(Builder& b, Value gradient, Value mask, double scale) {
  auto [x, kept] = Broadcast(b, ToFloat(b, gradient), mask);
  return ScaleUnderMask(b, kept, x, scale);
}

std::tuple<at::Tensor, at::Tensor> NativeDropout(const at::Tensor& x, double p,
                                                 std::optional<bool> train) {
  if (x.numel() == 0) return {x, at::empty_like(x)};  // of this type, as eager's
  if (!train.value_or(true)) {
    return {x.clone(), at::ones(x.sizes(), x.options().dtype(at::kBool))};
  }
  TORCH_CHECK(x.is_floating_point() || x.is_complex(),
              "result type Float can't be cast to the desired output type ", x.scalar_type());
  return Record<&Dropout>(RandomState(std::nullopt, x.device()), x, p);
}

// The composite operator would keep a mask of the input's type; this keeps one of bools.
at::Tensor DropoutAutograd(const at::Tensor& x, double p, bool train) {
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (p == 0 || !train || x.numel() == 0) return x;
  if (p == 1) return x.mul(at::zeros({}, x.options()));  // of any type, and NaN where x is infinite
  return std::get<0>(at::native_dropout(x, p, train));
}

// --- Leaky rectifier of random slopes

// x times a slope drawn from [lower, upper) where it is not positive, and by what it was
// multiplied.
std::pair<Value, Value> RandomLeakyRelu(Builder& b, Value state, Value x, double lower,
                                        double upper) {
  ElementType type = x->element_type();
  Value u = UnitUniform(b, BitsFor(b, state, x->dimensions(), type), type);
  Interval slopes = IntervalOf(type, lower, upper);
  Value drawn =
      InInterval(b, u, Like(b, u, slopes.from), Like(b, u, slopes.width), Like(b, u, slopes.last));
  Value leaks = b.Le(x, Like(b, x, 0));
  Value slope = b.Select(leaks, b.Convert(drawn, type), Like(b, x, 1));
  return {b.Select(leaks, b.Multiply(x, slope), x), slope};
}

std::tuple<at::Tensor, at::Tensor> RreluWithNoiseFunctional(
    const at::Tensor& x, const at::Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
    bool training, std::optional<at::Generator> generator) {
  TORCH_CHECK(x.sizes() == noise.sizes(),
              "noise tensor shape must match self tensor shape. Got self.shape = ", x.sizes(),
              " noise.shape = ", noise.sizes());
  CheckKernel(x.is_floating_point(), "rrelu_with_noise_out_cpu", x.scalar_type());
  if (!training) return {at::leaky_relu(x, (lower.toDouble() + upper.toDouble()) / 2), noise};
  return Record<&RandomLeakyRelu>(RandomState(generator, x.device()), x, lower.toDouble(),
                                  upper.toDouble());
}
at::Tensor RreluWithNoise(const at::Tensor& x, at::Tensor& noise, const at::Scalar& lower,
                          const at::Scalar& upper, bool training,
                          std::optional<at::Generator> generator) {
  auto [result, slopes] =
      RreluWithNoiseFunctional(x, noise, lower, upper, training, std::move(generator));
  if (training) WriteInto(noise, slopes);
  return result;
}
at::Tensor& RreluWithNoiseInPlace(at::Tensor& self, at::Tensor& noise, const at::Scalar& lower,
                                  const at::Scalar& upper, bool training,
                                  std::optional<at::Generator> generator) {
  at::assert_no_internal_overlap(self);
  WriteInto(self, RreluWithNoise(self, noise, lower, upper, training, std::move(generator)));
  return self;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("native_dropout", &NativeDropout);
  Register<&DropoutBackward>(m, "native_dropout_backward");
  m.impl("rrelu_with_noise", &RreluWithNoise);
  m.impl("rrelu_with_noise_", &RreluWithNoiseInPlace);
  m.impl("rrelu_with_noise_functional", &RreluWithNoiseFunctional);
  RunBy<&Dropout>(&RunDropout);
  RunByEvaluator<&RandomLeakyRelu>();
}

TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) { m.impl("dropout", &DropoutAutograd); }

}  // namespace torch_xla
