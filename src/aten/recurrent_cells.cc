#include "aten/recurrent_cells.h"

#include "aten/elementwise.h"
#include "aten/promotion.h"
#include "aten/reduction.h"

namespace torch_xla {
namespace {

Values SplitGates(Builder& b, Value gates, int64_t count) {
  const int64_t width = gates->shape().dimension(1) / count;
  Values parts;
  for (int64_t i = 0; i < count; ++i) {
    parts.push_back(b.SliceInDim(gates, 1, i * width, (i + 1) * width));
  }
  return parts;
}

at::Tensor Wide(const at::Tensor& x) {
  return at::isReducedFloatingType(x.scalar_type()) ? x.to(at::kFloat) : x;
}

at::Tensor RunWithBias(const at::Tensor& gates, const OptionalTensor& bias) {
  return bias ? Wide(gates) + Wide(*bias) : Wide(gates);
}

}  // namespace

Value WithBias(Builder& b, Value gates, const OptionalValue& bias) {
  gates = ToAccumulation(b, gates);
  if (!bias) return gates;
  Value wide = b.Convert(*bias, gates->element_type());
  return b.Add(gates, b.BroadcastInDim(wide, gates->dimensions(), {1}));
}

std::array<Value, 3> LstmStep(Builder& b, Value input_gates, Value hidden_gates, Value state,
                              OptionalValue input_bias, OptionalValue hidden_bias) {
  ElementType type = ResultType({input_gates, state});
  Value gates = b.Add(WithBias(b, input_gates, input_bias), WithBias(b, hidden_gates, hidden_bias));
  Values parts = SplitGates(b, gates, 4);
  Value in = b.Logistic(parts[0]), forget = b.Logistic(parts[1]);
  Value candidate = b.Tanh(parts[2]), out = b.Logistic(parts[3]);
  Value wide = b.Convert(state, gates->element_type());
  Value next = b.Add(b.Multiply(forget, wide), b.Multiply(in, candidate));
  Value output = b.Multiply(out, b.Tanh(next));
  Value kept = b.Concatenate({in, forget, candidate, out}, 1);
  return {b.Convert(output, type), b.Convert(next, type),
          b.Convert(kept, input_gates->element_type())};
}

Value LstmNextState(Builder& b, Value kept, Value state) {
  Values gates = SplitGates(b, ToAccumulation(b, kept), 4);
  Value wide = b.Convert(state, gates[0]->element_type());
  return b.Add(b.Multiply(gates[1], wide), b.Multiply(gates[0], gates[2]));
}

std::array<Value, 3> LstmStepBackward(Builder& b, OptionalValue output_gradient,
                                      OptionalValue next_gradient, Value state, Value next,
                                      Value kept, bool has_bias) {
  ElementType type = kept->element_type();
  Values gates = SplitGates(b, ToAccumulation(b, kept), 4);
  ElementType wide = gates[0]->element_type();
  Value in = gates[0], forget = gates[1], candidate = gates[2], out = gates[3];
  auto given = [&](const OptionalValue& gradient) {
    return gradient ? b.Convert(*gradient, wide) : b.Zeros(in->shape());
  };
  Value squashed = b.Tanh(b.Convert(next, wide));
  Value g_output = given(output_gradient);
  Value through = TanhBackward(b, b.Multiply(g_output, out), squashed);
  Value g_next = b.Add(given(next_gradient), through);
  Value before = b.Convert(state, wide);
  Value gradient = b.Concatenate({SigmoidBackward(b, b.Multiply(g_next, candidate), in),
                                  SigmoidBackward(b, b.Multiply(g_next, before), forget),
                                  TanhBackward(b, b.Multiply(g_next, in), candidate),
                                  SigmoidBackward(b, b.Multiply(g_output, squashed), out)},
                                 1);
  Value bias = has_bias ? b.Convert(Sum(b, gradient, {0}), type) : nullptr;
  return {b.Convert(gradient, type), b.Convert(b.Multiply(g_next, forget), state->element_type()),
          bias};
}

std::array<Value, 2> GruStep(Builder& b, Value input_gates, Value hidden_gates, Value state,
                             OptionalValue input_bias, OptionalValue hidden_bias) {
  ElementType type = ResultType({input_gates, state});
  Values input = SplitGates(b, WithBias(b, input_gates, input_bias), 3);
  Values hidden = SplitGates(b, WithBias(b, hidden_gates, hidden_bias), 3);
  Value reset = b.Logistic(b.Add(input[0], hidden[0]));
  Value update = b.Logistic(b.Add(input[1], hidden[1]));
  Value candidate = b.Tanh(b.Add(input[2], b.Multiply(reset, hidden[2])));
  Value wide = b.Convert(state, candidate->element_type());
  Value output = b.Add(candidate, b.Multiply(update, b.Subtract(wide, candidate)));
  Value kept = b.Concatenate({reset, update, candidate, wide, hidden[2]}, 1);
  return {b.Convert(output, type), b.Convert(kept, input_gates->element_type())};
}

std::array<Value, 5> GruStepBackward(Builder& b, Value output_gradient, Value kept, bool has_bias) {
  ElementType type = kept->element_type();
  Values values = SplitGates(b, ToAccumulation(b, kept), 5);
  Value reset = values[0], update = values[1], candidate = values[2];
  Value state = values[3], hidden = values[4];
  Value g = b.Convert(output_gradient, reset->element_type());
  Value g_update = SigmoidBackward(b, b.Multiply(g, b.Subtract(state, candidate)), update);
  Value g_candidate = TanhBackward(b, b.Multiply(g, OneMinus(b, update)), candidate);
  Value g_reset = SigmoidBackward(b, b.Multiply(g_candidate, hidden), reset);
  Value g_input = b.Concatenate({g_reset, g_update, g_candidate}, 1);
  Value g_hidden = b.Concatenate({g_reset, g_update, b.Multiply(g_candidate, reset)}, 1);
  auto bias = [&](Value gates) -> Value {
    return has_bias ? b.Convert(Sum(b, gates, {0}), type) : nullptr;
  };
  return {b.Convert(g_input, type), b.Convert(g_hidden, type),
          b.Convert(b.Multiply(g, update), output_gradient->element_type()), bias(g_input),
          bias(g_hidden)};
}

std::vector<at::Tensor> RunLstmStep(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                    const at::Tensor& state, const OptionalTensor& input_bias,
                                    const OptionalTensor& hidden_bias) {
  const at::ScalarType type = at::result_type(input_gates, state);
  const at::Tensor gates =
      RunWithBias(input_gates, input_bias) + RunWithBias(hidden_gates, hidden_bias);
  const std::vector<at::Tensor> parts = gates.chunk(4, 1);
  const at::Tensor in = parts[0].sigmoid(), forget = parts[1].sigmoid();
  const at::Tensor candidate = parts[2].tanh(), out = parts[3].sigmoid();
  const at::Tensor next = forget * Wide(state) + in * candidate;
  return {(out * next.tanh()).to(type), next.to(type),
          at::cat({in, forget, candidate, out}, 1).to(input_gates.scalar_type())};
}

at::Tensor RunLstmNextState(const at::Tensor& kept, const at::Tensor& state) {
  const std::vector<at::Tensor> gates = Wide(kept).chunk(4, 1);
  return gates[1] * Wide(state) + gates[0] * gates[2];
}

std::vector<at::Tensor> RunLstmStepBackward(const OptionalTensor& output_gradient,
                                            const OptionalTensor& next_gradient,
                                            const at::Tensor& state, const at::Tensor& next,
                                            const at::Tensor& kept, bool has_bias) {
  const at::ScalarType type = kept.scalar_type();
  const std::vector<at::Tensor> gates = Wide(kept).chunk(4, 1);
  const at::Tensor in = gates[0], forget = gates[1], candidate = gates[2], out = gates[3];
  const auto given = [&](const OptionalTensor& gradient) {
    return gradient ? Wide(*gradient) : at::zeros_like(in);
  };
  const at::Tensor squashed = Wide(next).tanh(), g_output = given(output_gradient);
  const at::Tensor g_next = given(next_gradient) + at::tanh_backward(g_output * out, squashed);
  const at::Tensor gradient = at::cat(
      {at::sigmoid_backward(g_next * candidate, in),
       at::sigmoid_backward(g_next * Wide(state), forget),
       at::tanh_backward(g_next * in, candidate), at::sigmoid_backward(g_output * squashed, out)},
      1);
  return {gradient.to(type), (g_next * forget).to(state.scalar_type()),
          has_bias ? gradient.sum(0).to(type) : at::Tensor()};
}

std::vector<at::Tensor> RunGruStep(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                   const at::Tensor& state, const OptionalTensor& input_bias,
                                   const OptionalTensor& hidden_bias) {
  const at::ScalarType type = at::result_type(input_gates, state);
  const std::vector<at::Tensor> input = RunWithBias(input_gates, input_bias).chunk(3, 1);
  const std::vector<at::Tensor> hidden = RunWithBias(hidden_gates, hidden_bias).chunk(3, 1);
  const at::Tensor reset = (input[0] + hidden[0]).sigmoid();
  const at::Tensor update = (input[1] + hidden[1]).sigmoid();
  const at::Tensor candidate = (input[2] + reset * hidden[2]).tanh();
  const at::Tensor wide = Wide(state);
  return {(candidate + update * (wide - candidate)).to(type),
          at::cat({reset, update, candidate, wide, hidden[2]}, 1).to(input_gates.scalar_type())};
}

std::vector<at::Tensor> RunGruStepBackward(const at::Tensor& output_gradient,
                                           const at::Tensor& kept, bool has_bias) {
  const at::ScalarType type = kept.scalar_type();
  const std::vector<at::Tensor> values = Wide(kept).chunk(5, 1);
  const at::Tensor reset = values[0], update = values[1], candidate = values[2];
  const at::Tensor g = Wide(output_gradient);
  const at::Tensor g_update = at::sigmoid_backward(g * (values[3] - candidate), update);
  const at::Tensor g_candidate = at::tanh_backward(g * (1 - update), candidate);
  const at::Tensor g_reset = at::sigmoid_backward(g_candidate * values[4], reset);
  const at::Tensor g_input = at::cat({g_reset, g_update, g_candidate}, 1);
  const at::Tensor g_hidden = at::cat({g_reset, g_update, g_candidate * reset}, 1);
  const auto bias = [&](const at::Tensor& gates) {
    return has_bias ? gates.sum(0).to(type) : at::Tensor();
  };
  return {g_input.to(type), g_hidden.to(type), (g * update).to(output_gradient.scalar_type()),
          bias(g_input), bias(g_hidden)};
}

}  // namespace torch_xla
