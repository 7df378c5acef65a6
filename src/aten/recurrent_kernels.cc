#include "aten/recurrent_kernels.h"

#include <utility>

#include "aten/recurrent_cells.h"
#include "aten/recurrent_parts.h"

namespace torch_xla {
namespace {

using Tensors = std::vector<at::Tensor>;

at::Tensor RunGatesOfInputs(const at::Tensor& x, const LayerParameters<at::Tensor>& of,
                            CellKind kind) {
  if (!of.b_ih.defined()) return at::linear(x, of.w_ih);
  return at::linear(x, of.w_ih, AddsBiasInside(kind) ? of.b_ih : of.b_ih + of.b_hh);
}

Tensors RunCellStep(CellKind kind, const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                    const Tensors& states, const at::Tensor& hidden_bias) {
  if (kind == CellKind::kLstm) {
    Tensors results = RunLstmStep(input_gates, hidden_gates, states[1], std::nullopt, std::nullopt);
    results.push_back(states[1]);
    return results;
  }
  if (kind == CellKind::kGru) {
    const OptionalTensor bias = hidden_bias.defined() ? OptionalTensor(hidden_bias) : std::nullopt;
    return RunGruStep(input_gates, hidden_gates, states[0], std::nullopt, bias);
  }
  const at::Tensor sum = input_gates + hidden_gates;
  return {kind == CellKind::kTanh ? sum.tanh() : sum.relu()};
}

at::Tensor RunSelectRows(const at::Tensor& is_there, const at::Tensor& on_true,
                         const at::Tensor& on_false) {
  return at::where(is_there.unsqueeze(-1), on_true, on_false);
}

// The output, the last states, what is kept.
Tensors RunLayer(const at::Tensor& x, const OptionalTensor& is_there, Tensors states,
                 const LayerParameters<at::Tensor>& of, bool backwards,
                 const RecurrentAttributes& attributes) {
  const Tensors gates = RunGatesOfInputs(x, of, attributes.kind).unbind(0);
  const auto steps = static_cast<int64_t>(gates.size());
  const size_t count = states.size();
  std::vector<Tensors> rows(1 + KeptWidths(attributes.kind).size(), Tensors(gates.size()));
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t place = backwards ? steps - 1 - i : i;
    Tensors results =
        RunCellStep(attributes.kind, gates[place], at::linear(states[0], of.w_hh), states, of.b_hh);
    for (size_t s = 0; s < count; ++s) {
      states[s] = is_there ? RunSelectRows((*is_there)[place], results[s], states[s]) : results[s];
    }
    rows[0][place] = states[0];
    for (size_t k = 1; k < rows.size(); ++k) rows[k][place] = results[count + k - 1];
  }
  Tensors results = {at::stack(rows[0])};
  results.insert(results.end(), states.begin(), states.end());
  if (!attributes.keeps) return results;
  for (size_t k = 1; k < rows.size(); ++k) results.push_back(at::stack(rows[k]));
  return results;
}

Tensors RunCellStepBackward(CellKind kind, const Tensors& gradients, const Tensors& kept) {
  if (kind == CellKind::kLstm) {
    const at::Tensor next = RunLstmNextState(kept[0], kept[1]);
    const Tensors of =
        RunLstmStepBackward(gradients[0], gradients[1], kept[1], next, kept[0], false);
    return {of[0], of[0], at::Tensor(), of[1]};
  }
  if (kind == CellKind::kGru) {
    Tensors of = RunGruStepBackward(gradients[0], kept[0], false);
    of.resize(3);
    return of;
  }
  const at::Tensor gates = kind == CellKind::kTanh
                               ? at::tanh_backward(gradients[0], kept[0])
                               : at::threshold_backward(gradients[0], kept[0], 0);
  return {gates, gates, at::Tensor()};
}

// The gradients of the input, the first states and the parameters. `kept`: RunLayer's, then its
// output; `gradients`: of the output and of the last states.
Tensors RunLayerBackward(const at::Tensor& x, const OptionalTensor& is_there,
                         const at::Tensor& first, const LayerParameters<at::Tensor>& of,
                         const Tensors& kept, Tensors gradients, bool backwards, CellKind kind) {
  const at::Tensor output_gradient = gradients[0], output = kept.back();
  gradients.erase(gradients.begin());
  const int64_t steps = x.size(0);
  const bool needs_output = kept.size() == 1;
  Tensors of_input(steps), of_hidden(steps);
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t place = backwards ? i : steps - 1 - i;
    Tensors kept_here;
    for (size_t k = 0; k + (needs_output ? 0 : 1) < kept.size(); ++k) {
      kept_here.push_back(kept[k][place]);
    }
    Tensors given = gradients;
    given[0] = given[0] + output_gradient[place];
    Tensors step = RunCellStepBackward(kind, given, kept_here);
    for (size_t g = 0; is_there && g < 2; ++g) {
      step[g] = RunSelectRows((*is_there)[place], step[g], at::zeros_like(step[g]));
    }
    of_input[place] = step[0];
    of_hidden[place] = step[1];
    const at::Tensor through = at::mm(step[1], of.w_hh);
    step[2] = step[2].defined() ? through + step[2] : through;
    for (size_t g = 0; g < gradients.size(); ++g) {
      gradients[g] =
          is_there ? RunSelectRows((*is_there)[place], step[2 + g], gradients[g]) : step[2 + g];
    }
  }
  const at::Tensor input_gates = at::stack(of_input).flatten(0, 1);
  const at::Tensor hidden_gates = at::stack(of_hidden).flatten(0, 1);
  const at::Tensor others = backwards ? output.slice(0, 1) : output.slice(0, 0, steps - 1);
  const at::Tensor before =
      backwards ? at::cat({others, first.unsqueeze(0)}) : at::cat({first.unsqueeze(0), others});
  Tensors results = {at::mm(input_gates, of.w_ih).view(x.sizes())};
  results.insert(results.end(), gradients.begin(), gradients.end());
  results.push_back(at::mm(input_gates.t(), x.flatten(0, 1)));
  results.push_back(at::mm(hidden_gates.t(), before.flatten(0, 1)));
  if (of.b_ih.defined()) {
    results.push_back(input_gates.sum(0));
    results.push_back(hidden_gates.sum(0));
  }
  return results;
}

at::Tensor RunAsBlock(const at::Tensor& x, const Packing& packing,
                      const RecurrentAttributes& attributes) {
  if (!packing) return attributes.batch_first ? x.transpose(0, 1) : x;
  return x.index_select(0, at::tensor(packing.in_packed))
      .view({packing.steps, packing.batch, x.size(1)});
}
at::Tensor RunFromBlock(const at::Tensor& x, const Packing& packing,
                        const RecurrentAttributes& attributes) {
  if (!packing) return attributes.batch_first ? x.transpose(0, 1) : x;
  return x.flatten(0, 1).index_select(0, at::tensor(packing.in_block));
}
OptionalTensor RunIsThere(const Packing& packing) {
  if (!packing) return std::nullopt;
  return at::tensor(packing.is_there).to(at::kBool).view({packing.steps, packing.batch});
}

Tensors RunStatesOf(at::TensorList states, int64_t index) {
  Tensors of;
  for (const at::Tensor& state : states) of.push_back(state[index]);
  return of;
}

Tensors RunJoinedStates(const std::vector<Tensors>& of) {
  Tensors joined;
  for (size_t s = 0; s < of[0].size(); ++s) {
    Tensors parts;
    for (const Tensors& states : of) parts.push_back(states[s]);
    joined.push_back(at::stack(parts));
  }
  return joined;
}

}  // namespace

std::vector<at::Tensor> RunRecurrentLayers(const at::Tensor& input, at::TensorList states,
                                           at::TensorList parameters,
                                           const RecurrentAttributes& attributes) {
  const Packing packing(attributes.batch_sizes);
  const OptionalTensor is_there = RunIsThere(packing);
  at::Tensor x = RunAsBlock(input, packing, attributes);
  const size_t state_count = states.size();
  std::vector<Tensors> last;
  Tensors kept;
  for (int64_t layer = 0; layer < attributes.layers; ++layer) {
    Tensors outputs;
    for (int64_t direction = 0; direction < attributes.directions(); ++direction) {
      const int64_t index = layer * attributes.directions() + direction;
      const Tensors results = RunLayer(x, is_there, RunStatesOf(states, index),
                                       ParametersOf<at::Tensor>(parameters, index, attributes),
                                       direction == 1, attributes);
      outputs.push_back(results[0]);
      const auto first_kept = results.begin() + 1 + static_cast<int64_t>(state_count);
      last.emplace_back(results.begin() + 1, first_kept);
      kept.insert(kept.end(), first_kept, results.end());
    }
    x = outputs.size() == 1 ? outputs[0] : at::cat(outputs, 2);
    if (attributes.keeps) kept.push_back(x);
  }
  Tensors results = {RunFromBlock(x, packing, attributes)};
  const Tensors joined = RunJoinedStates(last);
  results.insert(results.end(), joined.begin(), joined.end());
  results.insert(results.end(), kept.begin(), kept.end());
  return results;
}

std::vector<at::Tensor> RunRecurrentLayersBackward(const at::Tensor& input, at::TensorList states,
                                                   at::TensorList parameters, at::TensorList kept,
                                                   const OptionalTensor& output_gradient,
                                                   const OptionalTensor& hidden_gradient,
                                                   const OptionalTensor& cell_gradient,
                                                   const RecurrentAttributes& attributes) {
  const Packing packing(attributes.batch_sizes);
  const OptionalTensor is_there = RunIsThere(packing);
  const at::Tensor x = RunAsBlock(input, packing, attributes);
  const int64_t directions = attributes.directions(), width = states[0].size(2);
  const auto kept_each = static_cast<int64_t>(KeptWidths(attributes.kind).size());
  const int64_t kept_layer = kept_each * directions + 1;
  at::Tensor gradient = at::zeros_like(kept.back());
  if (output_gradient) {
    const at::Tensor block = RunAsBlock(*output_gradient, packing, attributes);
    gradient = is_there ? RunSelectRows(*is_there, block, gradient) : block;
  }
  Tensors last = {hidden_gradient ? *hidden_gradient : at::zeros_like(states[0])};
  if (states.size() > 1) {
    last.push_back(cell_gradient ? *cell_gradient : at::zeros_like(states[1]));
  }
  std::vector<Tensors> of_states(attributes.layers * directions), of_parameters(of_states.size());
  for (int64_t layer = attributes.layers - 1; layer >= 0; --layer) {
    const auto kept_here = kept.begin() + layer * kept_layer;
    const at::Tensor layer_input = layer == 0 ? x : *(kept_here - 1);
    at::Tensor of_input;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t index = layer * directions + direction;
      const auto part = [&](const at::Tensor& whole) {
        return whole.narrow(2, direction * width, width);
      };
      const auto first = kept_here + direction * kept_each;
      Tensors here(first, first + kept_each), gradients = {part(gradient)};
      here.push_back(part(*(kept_here + kept_layer - 1)));
      for (const at::Tensor& of_last : RunStatesOf(last, index)) gradients.push_back(of_last);
      const Tensors of =
          RunLayerBackward(layer_input, is_there, states[0][index],
                           ParametersOf<at::Tensor>(parameters, index, attributes), here,
                           std::move(gradients), direction == 1, attributes.kind);
      of_input = of_input.defined() ? of_input + of[0] : of[0];
      const auto first_parameter = of.begin() + 1 + static_cast<int64_t>(states.size());
      of_states[index].assign(of.begin() + 1, first_parameter);
      of_parameters[index].assign(first_parameter, of.end());
    }
    gradient = of_input;
  }
  Tensors results = {RunFromBlock(gradient, packing, attributes)};
  const Tensors joined = RunJoinedStates(of_states);
  results.insert(results.end(), joined.begin(), joined.end());
  for (const Tensors& of : of_parameters) results.insert(results.end(), of.begin(), of.end());
  return results;
}

}  // namespace torch_xla
