// LSTM and GRU. A cell's step is two products and one node, and its backward one node more; the
// products of the input with its weights are one for all steps of a sequence.
#include <ATen/ops/gru_cell_native.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_cell_native.h>
#include <ATen/ops/lstm_native.h>

#include <algorithm>
#include <array>

#include "aten/elementwise.h"
#include "aten/op.h"
#include "aten/promotion.h"
#include "aten/reduction.h"

namespace torch_xla {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

// --- One step of a cell: gates of shape [batch, 3 or 4 times the width], computed in f32 where
// they have less, rounded once.

Values Split(Builder& b, Value gates, int64_t count) {
  const int64_t width = gates->shape().dimension(1) / count;
  Values parts;
  for (int64_t i = 0; i < count; ++i) {
    parts.push_back(b.SliceInDim(gates, 1, i * width, (i + 1) * width));
  }
  return parts;
}

Value WithBias(Builder& b, Value gates, const OptionalValue& bias) {
  gates = ToAccumulation(b, gates);
  if (!bias) return gates;
  Value wide = b.Convert(*bias, gates->element_type());
  return b.Add(gates, b.BroadcastInDim(wide, gates->dimensions(), {1}));
}

// Results: the output, the cell's state, the four gates' values for the backward.
std::array<Value, 3> LstmStep(Builder& b, Value input_gates, Value hidden_gates, Value state,
                              OptionalValue input_bias, OptionalValue hidden_bias) {
  ElementType type = ResultType({input_gates, state});
  Value gates = b.Add(WithBias(b, input_gates, input_bias), WithBias(b, hidden_gates, hidden_bias));
  Values parts = Split(b, gates, 4);
  Value in = b.Logistic(parts[0]), forget = b.Logistic(parts[1]);
  Value candidate = b.Tanh(parts[2]), out = b.Logistic(parts[3]);
  Value wide = b.Convert(state, gates->element_type());
  Value next = b.Add(b.Multiply(forget, wide), b.Multiply(in, candidate));
  Value output = b.Multiply(out, b.Tanh(next));
  Value kept = b.Concatenate({in, forget, candidate, out}, 1);
  return {b.Convert(output, type), b.Convert(next, type),
          b.Convert(kept, input_gates->element_type())};
}

// Results: the gradients of the gates, of the state before, and of a bias.
std::array<Value, 3> LstmStepBackward(Builder& b, OptionalValue output_gradient,
                                      OptionalValue next_gradient, Value state, Value next,
                                      Value kept, bool has_bias) {
  ElementType type = kept->element_type();
  Values gates = Split(b, ToAccumulation(b, kept), 4);
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

// Results: the output; for the backward the three gates, the state before, and what the reset gate
// multiplies.
std::array<Value, 2> GruStep(Builder& b, Value input_gates, Value hidden_gates, Value state,
                             OptionalValue input_bias, OptionalValue hidden_bias) {
  ElementType type = ResultType({input_gates, state});
  Values input = Split(b, WithBias(b, input_gates, input_bias), 3);
  Values hidden = Split(b, WithBias(b, hidden_gates, hidden_bias), 3);
  Value reset = b.Logistic(b.Add(input[0], hidden[0]));
  Value update = b.Logistic(b.Add(input[1], hidden[1]));
  Value candidate = b.Tanh(b.Add(input[2], b.Multiply(reset, hidden[2])));
  Value wide = b.Convert(state, candidate->element_type());
  Value output = b.Add(candidate, b.Multiply(update, b.Subtract(wide, candidate)));
  Value kept = b.Concatenate({reset, update, candidate, wide, hidden[2]}, 1);
  return {b.Convert(output, type), b.Convert(kept, input_gates->element_type())};
}

// Results: the gradients of the input's gates, of the state's, of the state, and of their biases.
std::array<Value, 5> GruStepBackward(Builder& b, Value output_gradient, Value kept, bool has_bias) {
  ElementType type = kept->element_type();
  Values values = Split(b, ToAccumulation(b, kept), 5);
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

// --- The same by torch's kernels, which has these steps for accelerators only.

at::Tensor Wide(const at::Tensor& x) {
  return at::isReducedFloatingType(x.scalar_type()) ? x.to(at::kFloat) : x;
}

at::Tensor WithBias(const at::Tensor& gates, const OptionalTensor& bias) {
  return bias ? Wide(gates) + Wide(*bias) : Wide(gates);
}

std::vector<at::Tensor> RunLstmStep(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                    const at::Tensor& state, const OptionalTensor& input_bias,
                                    const OptionalTensor& hidden_bias) {
  const at::ScalarType type = at::result_type(input_gates, state);
  const at::Tensor gates = WithBias(input_gates, input_bias) + WithBias(hidden_gates, hidden_bias);
  const std::vector<at::Tensor> parts = gates.chunk(4, 1);
  const at::Tensor in = parts[0].sigmoid(), forget = parts[1].sigmoid();
  const at::Tensor candidate = parts[2].tanh(), out = parts[3].sigmoid();
  const at::Tensor next = forget * Wide(state) + in * candidate;
  return {(out * next.tanh()).to(type), next.to(type),
          at::cat({in, forget, candidate, out}, 1).to(input_gates.scalar_type())};
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
  const std::vector<at::Tensor> input = WithBias(input_gates, input_bias).chunk(3, 1);
  const std::vector<at::Tensor> hidden = WithBias(hidden_gates, hidden_bias).chunk(3, 1);
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

// --- Cells and sequences as torch's users call them. What differs from the plain case
// (forward-mode derivatives, function transforms, tracing, projections, arguments that do not fit)
// is torch's composite's affair.

bool IsPlain(const at::Tensor& tensor) {
  return !tensor.defined() || (!IsTracedOnly(tensor) && !tensor._fw_grad(0).defined());
}

bool IsPlain(const OptionalTensor& tensor) { return !tensor || IsPlain(*tensor); }

bool IsPlain(at::TensorList tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const at::Tensor& tensor) { return IsPlain(tensor); });
}

bool IsPlainCell(const at::Tensor& x, const at::Tensor& state, const at::Tensor& w_ih,
                 const at::Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh) {
  return x.dim() == 2 && state.dim() == 2 && w_ih.dim() == 2 && w_hh.dim() == 2 &&
         x.size(0) == state.size(0) && x.size(1) == w_ih.size(1) && state.size(1) == w_hh.size(1) &&
         w_ih.size(0) == w_hh.size(0) && IsPlain(x) && IsPlain(state) && IsPlain(w_ih) &&
         IsPlain(w_hh) && IsPlain(b_ih) && IsPlain(b_hh);
}

std::tuple<at::Tensor, at::Tensor> LstmCell(const at::Tensor& x, at::TensorList states,
                                            const at::Tensor& w_ih, const at::Tensor& w_hh,
                                            const OptionalTensor& b_ih,
                                            const OptionalTensor& b_hh) {
  const bool is_plain = states.size() == 2 && states[1].sizes() == states[0].sizes() &&
                        IsPlain(states[1]) && IsPlainCell(x, states[0], w_ih, w_hh, b_ih, b_hh);
  if (!is_plain) return at::native::lstm_cell(x, states, w_ih, w_hh, b_ih, b_hh);
  auto [output, state, kept] = at::_thnn_fused_lstm_cell(
      at::linear(x, w_ih), at::linear(states[0], w_hh), states[1], b_ih, b_hh);
  return {output, state};
}

at::Tensor GruCell(const at::Tensor& x, const at::Tensor& state, const at::Tensor& w_ih,
                   const at::Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh) {
  if (!IsPlainCell(x, state, w_ih, w_hh, b_ih, b_hh)) {
    return at::native::gru_cell(x, state, w_ih, w_hh, b_ih, b_hh);
  }
  return std::get<0>(
      at::_thnn_fused_gru_cell(at::linear(x, w_ih), at::linear(state, w_hh), state, b_ih, b_hh));
}

// What a sequence's operator is called with beside tensors.
struct RecurrentOptions {
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional, batch_first;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t parameters_each() const { return has_biases ? 4 : 2; }
};

// The parameters of a layer in one direction; without biases those are undefined.
struct Weights {
  at::Tensor w_ih, w_hh, b_ih, b_hh;
};

// `index` counts the directions of layer 0, then those of layer 1, …
Weights WeightsOf(at::TensorList parameters, int64_t index, const RecurrentOptions& options) {
  const auto of = parameters.slice(index * options.parameters_each(), options.parameters_each());
  return options.has_biases ? Weights{of[0], of[1], of[2], of[3]} : Weights{of[0], of[1], {}, {}};
}

bool IsPlainSequence(const at::Tensor& x, at::TensorList states, at::TensorList parameters,
                     const RecurrentOptions& options) {
  const int64_t count = options.layers * options.directions();
  if (x.dim() != 3 || x.numel() == 0 || !IsPlain(x) || !IsPlain(states) || !IsPlain(parameters) ||
      count * options.parameters_each() != static_cast<int64_t>(parameters.size())) {
    return false;
  }
  const Weights first = WeightsOf(parameters, 0, options);
  const int64_t batch = x.size(options.batch_first ? 0 : 1);
  return first.w_ih.dim() == 2 && first.w_ih.size(1) == x.size(2) &&
         std::all_of(states.begin(), states.end(), [&](const at::Tensor& state) {
           return state.dim() == 3 && state.size(0) == count && state.size(1) == batch &&
                  state.size(2) == first.w_hh.size(1);
         });
}

// Calls step(gates of the input) for each step of a layer in one direction. Returns the outputs,
// [steps, batch, width].
template <typename Step>
at::Tensor RunLayer(const at::Tensor& input_gates, bool backwards, const Step& step) {
  std::vector<at::Tensor> gates = input_gates.unbind(0), outputs(gates.size());
  for (size_t i = 0; i < gates.size(); ++i) {
    const size_t place = backwards ? gates.size() - 1 - i : i;
    outputs[place] = step(gates[place]);
  }
  return at::stack(outputs);
}

// Calls run(index, weights, input, backwards), with the steps in front, for each layer and
// direction; the last layer's output.
template <typename Run>
at::Tensor RunLayers(at::Tensor x, at::TensorList parameters, const RecurrentOptions& options,
                     const Run& run) {
  if (options.batch_first) x = x.transpose(0, 1);
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    std::vector<at::Tensor> outputs;
    for (int64_t direction = 0; direction < options.directions(); ++direction) {
      const int64_t index = layer * options.directions() + direction;
      outputs.push_back(run(index, WeightsOf(parameters, index, options), x, direction == 1));
    }
    x = outputs.size() == 1 ? outputs[0] : at::cat(outputs, 2);
    const bool is_last = layer + 1 == options.layers;
    if (options.train && options.dropout > 0 && !is_last) x = at::dropout(x, options.dropout, true);
  }
  return options.batch_first ? x.transpose(0, 1) : x;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> Lstm(const at::Tensor& x, at::TensorList states,
                                                    at::TensorList parameters, bool has_biases,
                                                    int64_t layers, double dropout, bool train,
                                                    bool bidirectional, bool batch_first) {
  const RecurrentOptions options{has_biases, layers, dropout, train, bidirectional, batch_first};
  if (states.size() != 2 || !IsPlainSequence(x, states, parameters, options)) {
    return at::native::lstm(x, states, parameters, has_biases, layers, dropout, train,
                            bidirectional, batch_first);
  }
  std::vector<at::Tensor> outputs = states[0].unbind(0), cells = states[1].unbind(0);
  auto run = [&](int64_t index, const Weights& weights, const at::Tensor& input, bool backwards) {
    OptionalTensor bias;
    if (has_biases) bias = weights.b_ih + weights.b_hh;
    return RunLayer(at::linear(input, weights.w_ih, bias), backwards, [&](const at::Tensor& gates) {
      std::tie(outputs[index], cells[index], std::ignore) =
          at::_thnn_fused_lstm_cell(gates, at::linear(outputs[index], weights.w_hh), cells[index]);
      return outputs[index];
    });
  };
  at::Tensor result = RunLayers(x, parameters, options, run);
  return {result, at::stack(outputs), at::stack(cells)};
}

std::tuple<at::Tensor, at::Tensor> Gru(const at::Tensor& x, const at::Tensor& state,
                                       at::TensorList parameters, bool has_biases, int64_t layers,
                                       double dropout, bool train, bool bidirectional,
                                       bool batch_first) {
  const RecurrentOptions options{has_biases, layers, dropout, train, bidirectional, batch_first};
  if (!IsPlainSequence(x, state, parameters, options)) {
    return at::native::gru(x, state, parameters, has_biases, layers, dropout, train, bidirectional,
                           batch_first);
  }
  std::vector<at::Tensor> states = state.unbind(0);
  auto run = [&](int64_t index, const Weights& weights, const at::Tensor& input, bool backwards) {
    // The state's bias of the candidate is multiplied by the reset gate, and stays apart.
    return RunLayer(at::linear(input, weights.w_ih), backwards, [&](const at::Tensor& gates) {
      states[index] =
          std::get<0>(at::_thnn_fused_gru_cell(gates, at::linear(states[index], weights.w_hh),
                                               states[index], weights.b_ih, weights.b_hh));
      return states[index];
    });
  };
  at::Tensor result = RunLayers(x, parameters, options, run);
  return {result, at::stack(states)};
}

// Above autograd, which has no derivative for them, and where it is off.
void RegisterComposites(torch::Library& m) {
  m.impl("lstm_cell", &LstmCell);
  m.impl("gru_cell", &GruCell);
  m.impl("lstm.input", &Lstm);
  m.impl("gru.input", &Gru);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  // The first form that a kind is given stays: torch's own would be refused on the CPU.
  RunBy<&LstmStep>(&RunLstmStep);
  RunBy<&LstmStepBackward>(&RunLstmStepBackward);
  RunBy<&GruStep>(&RunGruStep);
  RunBy<&GruStepBackward>(&RunGruStepBackward);
  Register<&LstmStep>(m, "_thnn_fused_lstm_cell");
  Register<&LstmStepBackward>(m, "_thnn_fused_lstm_cell_backward_impl");
  Register<&GruStep>(m, "_thnn_fused_gru_cell");
  Register<&GruStepBackward>(m, "_thnn_fused_gru_cell_backward");
  RegisterComposites(m);
}

TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) { RegisterComposites(m); }

}  // namespace torch_xla
