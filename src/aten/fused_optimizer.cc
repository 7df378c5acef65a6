// One step of an optimizer, for all parameters of a group: what `torch.optim` calls with
// `fused=True`. Each parameter's step is one node, which reads and writes all of its state.
//
// As torch's own kernels: computed in float32 for lower precisions; `grad_scale` divides the
// gradients, which keep the quotient; where `found_inf` is not zero nothing changes.
#include <initializer_list>
#include "aten/elementwise.h"

#include "aten/op.h"
#include "aten/promotion.h"

namespace torch_xla {
namespace {

// What holds for all parameters of a call; the numbers are data, so that a schedule of any of them
// compiles nothing.
struct Amp {
  std::optional<Value> grad_scale, found_inf;
};

Value RankZero(Builder& b, Value x) { return b.Reshape(x, {}); }

// A double, or a tensor of one element, over x's shape and in its type.
Value SpreadNumber(Builder& b, Value number, Value x) {
  return Splat(b, b.Convert(RankZero(b, number), x->element_type()), x->dimensions());
}

// A scalar of type f64: bias corrections lose half their digits in f32.
Value Double(Builder& b, Value x) { return b.Convert(RankZero(b, x), ElementType::kF64); }

// The gradient as the step sees it: unscaled (the second result keeps its sign), and turned round
// where the objective grows.
std::pair<Value, Value> PrepareGradient(Builder& b, Value gradient, const Amp& amp, bool maximize) {
  Value wide = ToAccumulation(b, gradient);
  if (amp.grad_scale) wide = b.Divide(wide, SpreadNumber(b, *amp.grad_scale, wide));
  return {maximize ? b.Negate(wide) : wide, b.Convert(wide, gradient->element_type())};
}

// `updated` in the type of `old`, and `old` itself after an overflow.
Value Keep(Builder& b, Value updated, Value old, const Amp& amp) {
  Value result = b.Convert(updated, old->element_type());
  if (!amp.found_inf) return result;
  Value overflowed = b.Ne(RankZero(b, *amp.found_inf), ScalarLike(b, *amp.found_inf, 0));
  return b.Select(overflowed, old, result);
}

// x + weight * (y - x)
Value Toward(Builder& b, Value x, Value y, Value weight) {
  return b.Add(x, b.Multiply(SpreadNumber(b, weight, x), b.Subtract(y, x)));
}

// Results: the parameter, the averages of the gradient and of its square, the largest of those
// averages (amsgrad), the gradient (with grad_scale). `decoupled` weight decay is AdamW's.
std::vector<Value> AdamStep(Builder& b, Value parameter, Value gradient, Value average,
                            Value square_average, std::optional<Value> largest, Value step,
                            Value rate, Value beta1, Value beta2, std::optional<Value> weight_decay,
                            Value eps, bool decoupled, bool maximize,
                            std::optional<Value> grad_scale, std::optional<Value> found_inf) {
  Amp amp{grad_scale, found_inf};
  auto [g, unscaled] = PrepareGradient(b, gradient, amp, maximize);
  Value p = ToAccumulation(b, parameter);
  Value lr = Double(b, rate);
  if (weight_decay) {
    Value decay = Double(b, *weight_decay);
    if (decoupled) {
      p = b.Multiply(p, SpreadNumber(b, OneMinus(b, b.Multiply(lr, decay)), p));
    } else {
      g = b.Add(g, b.Multiply(p, SpreadNumber(b, decay, p)));
    }
  }
  Value one_minus_beta2 = OneMinus(b, Double(b, beta2));
  Value m = Toward(b, ToAccumulation(b, average), g, OneMinus(b, Double(b, beta1)));
  Value v = ToAccumulation(b, square_average);
  v = b.Add(b.Multiply(v, SpreadNumber(b, beta2, v)),
            b.Multiply(b.Multiply(g, g), SpreadNumber(b, one_minus_beta2, g)));
  Value spread = largest ? b.Maximum(ToAccumulation(b, *largest), v) : v;

  Value count = Double(b, step);
  Value correction1 = OneMinus(b, b.Power(Double(b, beta1), count));
  Value correction2 = b.Sqrt(OneMinus(b, b.Power(Double(b, beta2), count)));
  Value denominator =
      b.Add(b.Divide(b.Sqrt(spread), SpreadNumber(b, correction2, v)), SpreadNumber(b, eps, v));
  Value size = SpreadNumber(b, b.Divide(lr, correction1), p);
  p = b.Subtract(p, b.Divide(b.Multiply(size, m), denominator));

  std::vector<Value> results = {Keep(b, p, parameter, amp), Keep(b, m, average, amp),
                                Keep(b, v, square_average, amp)};
  if (largest) results.push_back(Keep(b, spread, *largest, amp));
  if (grad_scale) results.push_back(Keep(b, unscaled, gradient, amp));
  return results;
}

// Results: the parameter, its momentum if it has one, the gradient (with grad_scale). Of the first
// step the momentum is the gradient.
std::vector<Value> SgdStep(Builder& b, Value parameter, Value gradient,
                           std::optional<Value> momentum, std::optional<Value> weight_decay,
                           Value factor, Value rate, Value dampening, bool nesterov, bool maximize,
                           bool is_first_step, std::optional<Value> grad_scale,
                           std::optional<Value> found_inf) {
  Amp amp{grad_scale, found_inf};
  auto [g, unscaled] = PrepareGradient(b, gradient, amp, maximize);
  Value p = ToAccumulation(b, parameter);
  if (weight_decay) g = b.Add(g, b.Multiply(p, SpreadNumber(b, *weight_decay, p)));
  std::vector<Value> results = {nullptr};
  if (momentum) {
    Value buffer = g;
    if (!is_first_step) {
      Value share = SpreadNumber(b, OneMinus(b, Double(b, dampening)), g);
      buffer = b.Add(b.Multiply(ToAccumulation(b, *momentum), SpreadNumber(b, factor, g)),
                     b.Multiply(share, g));
    }
    results.push_back(Keep(b, buffer, *momentum, amp));
    g = nesterov ? b.Add(g, b.Multiply(buffer, SpreadNumber(b, factor, g))) : buffer;
  }
  p = b.Subtract(p, b.Multiply(SpreadNumber(b, rate, p), g));
  results[0] = Keep(b, p, parameter, amp);
  if (grad_scale) results.push_back(Keep(b, unscaled, gradient, amp));
  return results;
}

// Results: the parameter, the sum of squares, the gradient (with grad_scale).
std::vector<Value> AdagradStep(Builder& b, Value parameter, Value gradient, Value sum, Value step,
                               Value rate, Value rate_decay, std::optional<Value> weight_decay,
                               Value eps, bool maximize, std::optional<Value> grad_scale,
                               std::optional<Value> found_inf) {
  Amp amp{grad_scale, found_inf};
  auto [g, unscaled] = PrepareGradient(b, gradient, amp, maximize);
  Value p = ToAccumulation(b, parameter);
  if (weight_decay) g = b.Add(g, b.Multiply(p, SpreadNumber(b, *weight_decay, p)));
  Value s = b.Add(ToAccumulation(b, sum), b.Multiply(g, g));
  Value count = Double(b, step), one = Like(b, count, 1);
  Value decayed = b.Add(one, b.Multiply(b.Subtract(count, one), Double(b, rate_decay)));
  Value size = SpreadNumber(b, b.Divide(Double(b, rate), decayed), p);
  p = b.Subtract(p, b.Divide(b.Multiply(size, g), b.Add(b.Sqrt(s), SpreadNumber(b, eps, s))));
  std::vector<Value> results = {Keep(b, p, parameter, amp), Keep(b, s, sum, amp)};
  if (grad_scale) results.push_back(Keep(b, unscaled, gradient, amp));
  return results;
}

// --- Recording

using OptionalTensor = std::optional<at::Tensor>;

lazy::Value Data(double number) { return ScalarValue(number, ElementType::kF64); }
lazy::Value Data(const at::Tensor& number) {
  if (IsXla(number)) return ReadValue(number);
  TORCH_CHECK(number.numel() == 1, "The learning rate is one number, not a tensor of shape ",
              number.sizes());
  return Data(number.item<double>());
}

// Nothing where nothing decays: 0 times an infinite parameter would be NaN.
std::optional<lazy::Value> Decay(double number) {
  return number == 0 ? std::nullopt : std::optional(Data(number));
}

void CheckLengths(at::TensorList parameters, std::initializer_list<at::TensorList> lists,
                  const char* name) {
  for (at::TensorList list : lists) {
    TORCH_CHECK(list.size() == parameters.size(), name, ": ", parameters.size(),
                " parameters, but a list of ", list.size(), " for them");
  }
}

// As Record, without tensors for the results, which are written at once into those that there are.
template <auto f, typename... Arguments>
lazy::Reference<lazy::Node> RecordStep(const Arguments&... arguments) {
  using Parameters = typename lazy::LoweringTraits<decltype(f)>::Parameters;
  recording::Context context;
  return recording::RecordNode(context, lazy::Op<f>::family(), Parameters(), arguments...);
}

// Writes a step's results into what they are of; lists that a step has no result for are empty.
void WriteStep(const lazy::Reference<lazy::Node>& step, std::initializer_list<at::TensorList> lists,
               size_t i) {
  uint32_t next = 0;
  for (at::TensorList list : lists) {
    if (!list.empty()) WriteInto(list[i], lazy::Value{step, next++});
  }
}

at::TensorList If(bool condition, at::TensorList list) {
  return condition ? list : at::TensorList();
}
std::optional<at::Tensor> At(at::TensorList list, size_t i) {
  return list.empty() ? std::nullopt : std::optional<at::Tensor>(list[i]);
}

template <bool decoupled, typename Rate>
void FusedAdam(at::TensorList parameters, at::TensorList gradients, at::TensorList averages,
               at::TensorList square_averages, at::TensorList largest, at::TensorList steps,
               Rate rate, double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
               bool maximize, const std::optional<at::Tensor>& grad_scale,
               const std::optional<at::Tensor>& found_inf) {
  largest = If(amsgrad, largest);
  CheckLengths(parameters, {gradients, averages, square_averages, steps}, "_fused_adam_");
  if (amsgrad) CheckLengths(parameters, {largest}, "_fused_adam_");
  lazy::Value lr = Data(rate), b1 = Data(beta1), b2 = Data(beta2), epsilon = Data(eps);
  const std::optional<lazy::Value> decay = Decay(weight_decay);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto step = RecordStep<&AdamStep>(
        parameters[i], gradients[i], averages[i], square_averages[i], At(largest, i), steps[i], lr,
        b1, b2, decay, epsilon, decoupled, maximize, grad_scale, found_inf);
    WriteStep(
        step,
        {parameters, averages, square_averages, largest, If(grad_scale.has_value(), gradients)}, i);
  }
}

template <typename Rate>
void FusedSgd(at::TensorList parameters, at::TensorList gradients, at::TensorList momenta,
              double weight_decay, double momentum, Rate rate, double dampening, bool nesterov,
              bool maximize, bool is_first_step, const std::optional<at::Tensor>& grad_scale,
              const std::optional<at::Tensor>& found_inf) {
  CheckLengths(parameters, {gradients}, "_fused_sgd_");
  if (!momenta.empty()) CheckLengths(parameters, {momenta}, "_fused_sgd_");
  lazy::Value factor = Data(momentum), lr = Data(rate), damping = Data(dampening);
  const std::optional<lazy::Value> decay = Decay(weight_decay);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto step =
        RecordStep<&SgdStep>(parameters[i], gradients[i], At(momenta, i), decay, factor, lr,
                             damping, nesterov, maximize, is_first_step, grad_scale, found_inf);
    WriteStep(step, {parameters, momenta, If(grad_scale.has_value(), gradients)}, i);
  }
}

template <typename Rate>
void FusedAdagrad(at::TensorList parameters, at::TensorList gradients, at::TensorList sums,
                  at::TensorList steps, Rate rate, double rate_decay, double weight_decay,
                  double eps, bool maximize, const std::optional<at::Tensor>& grad_scale,
                  const std::optional<at::Tensor>& found_inf) {
  CheckLengths(parameters, {gradients, sums, steps}, "_fused_adagrad_");
  lazy::Value lr = Data(rate), lr_decay = Data(rate_decay), epsilon = Data(eps);
  const std::optional<lazy::Value> decay = Decay(weight_decay);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto step =
        RecordStep<&AdagradStep>(parameters[i], gradients[i], sums[i], steps[i], lr, lr_decay,
                                 decay, epsilon, maximize, grad_scale, found_inf);
    WriteStep(step, {parameters, sums, If(grad_scale.has_value(), gradients)}, i);
  }
}

// --- The same by torch's kernels, which write in place

at::Tensor Copied(const OptionalTensor& x) {
  return x ? x->clone(at::MemoryFormat::Contiguous) : at::Tensor();
}
std::vector<at::Tensor> ListOf(const at::Tensor& x) {
  return x.defined() ? std::vector<at::Tensor>{x} : std::vector<at::Tensor>();
}

double NumberOrZero(const OptionalTensor& number) { return number ? number->item<double>() : 0; }

std::vector<at::Tensor> RunAdamStep(const at::Tensor& parameter, const at::Tensor& gradient,
                                    const at::Tensor& average, const at::Tensor& square_average,
                                    const OptionalTensor& largest, const at::Tensor& step,
                                    const at::Tensor& rate, const at::Tensor& beta1,
                                    const at::Tensor& beta2, const OptionalTensor& weight_decay,
                                    const at::Tensor& eps, bool decoupled, bool maximize,
                                    const OptionalTensor& grad_scale,
                                    const OptionalTensor& found_inf) {
  std::vector<at::Tensor> results = {Copied(parameter), Copied(average), Copied(square_average)};
  if (largest) results.push_back(Copied(largest));
  at::Tensor g = grad_scale ? Copied(gradient) : gradient.contiguous();
  const auto run = [&](auto function) {
    function({results[0]}, {g}, {results[1]}, {results[2]},
             largest ? ListOf(results[3]) : ListOf({}), {step}, rate.item<double>(),
             beta1.item<double>(), beta2.item<double>(), NumberOrZero(weight_decay),
             eps.item<double>(), largest.has_value(), maximize, grad_scale, found_inf);
  };
  using Update = void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                          at::TensorList, at::TensorList, double, double, double, double, double,
                          bool, bool, const OptionalTensor&, const OptionalTensor&);
  run(decoupled ? static_cast<Update>(&at::_fused_adamw_) : static_cast<Update>(&at::_fused_adam_));
  if (grad_scale) results.push_back(g);
  return results;
}

// In f32 at least: torch's kernel with momentum is wrong for narrower types.
std::vector<at::Tensor> RunSgdStep(const at::Tensor& parameter, const at::Tensor& gradient,
                                   const OptionalTensor& momentum,
                                   const OptionalTensor& weight_decay, const at::Tensor& factor,
                                   const at::Tensor& rate, const at::Tensor& dampening,
                                   bool nesterov, bool maximize, bool is_first_step,
                                   const OptionalTensor& grad_scale,
                                   const OptionalTensor& found_inf) {
  const at::ScalarType type = parameter.scalar_type();
  const at::ScalarType wide = at::isReducedFloatingType(type) ? at::kFloat : type;
  std::vector<at::Tensor> results = {Copied(parameter.to(wide))};
  if (momentum) results.push_back(Copied(momentum->to(wide)));
  at::Tensor g = grad_scale ? Copied(gradient.to(wide)) : gradient.to(wide).contiguous();
  at::_fused_sgd_({results[0]}, {g}, momentum ? ListOf(results[1]) : ListOf({}),
                  NumberOrZero(weight_decay), factor.item<double>(), rate.item<double>(),
                  dampening.item<double>(), nesterov, maximize, is_first_step, grad_scale,
                  found_inf);
  if (grad_scale) results.push_back(g);
  for (at::Tensor& result : results) result = result.to(type);
  return results;
}

std::vector<at::Tensor> RunAdagradStep(const at::Tensor& parameter, const at::Tensor& gradient,
                                       const at::Tensor& sum, const at::Tensor& step,
                                       const at::Tensor& rate, const at::Tensor& rate_decay,
                                       const OptionalTensor& weight_decay, const at::Tensor& eps,
                                       bool maximize, const OptionalTensor& grad_scale,
                                       const OptionalTensor& found_inf) {
  std::vector<at::Tensor> results = {Copied(parameter), Copied(sum)};
  at::Tensor g = grad_scale ? Copied(gradient) : gradient.contiguous();
  at::_fused_adagrad_({results[0]}, {g}, {results[1]}, {step}, rate.item<double>(),
                      rate_decay.item<double>(), NumberOrZero(weight_decay), eps.item<double>(),
                      maximize, grad_scale, found_inf);
  if (grad_scale) results.push_back(g);
  return results;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&AdamStep>(&RunAdamStep);
  RunBy<&AdagradStep>(&RunAdagradStep);
  RunBy<&SgdStep>(&RunSgdStep);
  recording::NameKind(lazy::Op<&AdamStep>::kind(), "_fused_adam_");
  recording::NameKind(lazy::Op<&SgdStep>::kind(), "_fused_sgd_");
  recording::NameKind(lazy::Op<&AdagradStep>::kind(), "_fused_adagrad_");
  m.impl("_fused_adam_", &FusedAdam<false, double>);
  m.impl("_fused_adam_.tensor_lr", &FusedAdam<false, const at::Tensor&>);
  m.impl("_fused_adamw_", &FusedAdam<true, double>);
  m.impl("_fused_adamw_.tensor_lr", &FusedAdam<true, const at::Tensor&>);
  m.impl("_fused_sgd_", &FusedSgd<double>);
  m.impl("_fused_sgd_.tensor_lr", &FusedSgd<const at::Tensor&>);
  m.impl("_fused_adagrad_", &FusedAdagrad<double>);
  m.impl("_fused_adagrad_.tensor_lr", &FusedAdagrad<const at::Tensor&>);
}

}  // namespace torch_xla
