// Recurrent networks. A cell's step is two products and one node, and its backward one node more; a
// sequence is one node for all steps and layers, and its backward one.
#include <ATen/autocast_mode.h>
#include <ATen/ops/gru_cell_native.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_cell_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "aten/function_transforms.h"
#include "aten/op.h"
#include "aten/recurrent_cells.h"
#include "aten/recurrent_layers.h"

namespace torch_xla {
namespace {

// --- Cells
//
// What differs from the plain case (forward-mode derivatives, function transforms, tracing,
// projections, arguments that do not fit) is torch's composite's affair.

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

// --- Sequences

// What a sequence's operator is called with beside tensors.
struct RecurrentOptions {
  double dropout;
  bool train;
  RecurrentAttributes attributes;
};

// The forms of an operator for a block and for packed sequences.
using BlockFunction = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&,
                                                         at::TensorList, bool, int64_t, double,
                                                         bool, bool, bool);
using PackedFunction = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&,
                                                          const at::Tensor&, at::TensorList, bool,
                                                          int64_t, double, bool, bool);
struct OfOneStateComposed {
  BlockFunction* block;
  PackedFunction* packed;
};

OfOneStateComposed ComposedOf(CellKind kind) {
  if (kind == CellKind::kGru) return {&at::native::gru, &at::native::gru};
  if (kind == CellKind::kTanh) return {&at::native::rnn_tanh, &at::native::rnn_tanh};
  return {&at::native::rnn_relu, &at::native::rnn_relu};
}

std::vector<at::Tensor> ComposedLstm(const at::Tensor& x, at::TensorList states,
                                     at::TensorList parameters, const RecurrentOptions& options) {
  const auto& [dropout, train, a] = options;
  const auto [output, hidden, cells] =
      a.is_packed() ? at::native::lstm(x, at::tensor(a.batch_sizes), states, parameters,
                                       a.has_biases, a.layers, dropout, train, a.bidirectional)
                    : at::native::lstm(x, states, parameters, a.has_biases, a.layers, dropout,
                                       train, a.bidirectional, a.batch_first);
  return {output, hidden, cells};
}

// As torch composes it.
std::vector<at::Tensor> ComposedLayers(const at::Tensor& x, at::TensorList states,
                                       at::TensorList parameters, const RecurrentOptions& options) {
  const auto& [dropout, train, a] = options;
  if (a.kind == CellKind::kLstm) return ComposedLstm(x, states, parameters, options);
  const auto [block, packed] = ComposedOf(a.kind);
  const auto [output, hidden] =
      a.is_packed() ? packed(x, at::tensor(a.batch_sizes), states[0], parameters, a.has_biases,
                             a.layers, dropout, train, a.bidirectional)
                    : block(x, states[0], parameters, a.has_biases, a.layers, dropout, train,
                            a.bidirectional, a.batch_first);
  return {output, hidden};
}

// The stack without dropout, differentiable. A gradient that is to be differentiated again is that
// of the composed form.
class RecurrentFunction : public torch::autograd::Function<RecurrentFunction> {
 public:
  using Context = torch::autograd::AutogradContext;
  using List = torch::autograd::variable_list;

  static List forward(Context* context, const RecurrentAttributes& attributes, const at::Tensor& x,
                      at::TensorList states, at::TensorList parameters) {
    RecurrentAttributes keeping = attributes;
    keeping.keeps = true;
    List results = RecordRecurrentLayers(x, states, parameters, keeping), saved = {x};
    const auto kept = results.begin() + 1 + attributes.states();
    saved.insert(saved.end(), states.begin(), states.end());
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    saved.insert(saved.end(), kept, results.end());
    results.erase(kept, results.end());
    context->save_for_backward(std::move(saved));
    context->set_materialize_grads(false);
    context->saved_data["attributes"] = ToNumbers(keeping);
    return results;
  }

  static List backward(Context* context, const List& gradients) {
    const RecurrentAttributes attributes =
        FromNumbers(context->saved_data["attributes"].toIntVector());
    const List saved = context->get_saved_variables();
    const at::TensorList all = saved;
    const int64_t states = attributes.states(), parameters = attributes.parameters();
    List results = {at::Tensor()};  // the attributes'
    const bool is_differentiated = at::GradMode::is_enabled();
    const List of =
        is_differentiated
            ? ComposedGradients(all.slice(0, 1 + states + parameters), gradients, attributes)
            : RecordRecurrentLayersBackward(
                  all[0], all.slice(1, states), all.slice(1 + states, parameters),
                  all.slice(1 + states + parameters),
                  {gradients[0], gradients[1], states > 1 ? gradients[2] : at::Tensor()},
                  attributes);
    results.insert(results.end(), of.begin(), of.end());
    return results;
  }

 private:
  static std::vector<int64_t> ToNumbers(const RecurrentAttributes& a) {
    std::vector<int64_t> numbers = {static_cast<int64_t>(a.kind), a.layers, a.has_biases,
                                    a.bidirectional, a.batch_first};
    numbers.insert(numbers.end(), a.batch_sizes.begin(), a.batch_sizes.end());
    return numbers;
  }
  static RecurrentAttributes FromNumbers(const std::vector<int64_t>& numbers) {
    return {.kind = static_cast<CellKind>(numbers[0]),
            .layers = numbers[1],
            .has_biases = numbers[2] != 0,
            .bidirectional = numbers[3] != 0,
            .batch_first = numbers[4] != 0,
            .keeps = true,
            .batch_sizes = Dimensions(numbers.begin() + 5, numbers.end())};
  }

  // Each in a place of its own in the graph: its gradient is what comes through these layers from
  // this operand, be it given as another one too, or one of which another was computed.
  static List ApartInGraph(at::TensorList inputs) {
    List apart;
    for (const at::Tensor& input : inputs) {
      apart.push_back(input.requires_grad() ? input.view_as(input) : input);
    }
    return apart;
  }

  static List ComposedGradients(at::TensorList saved, const List& gradients,
                                const RecurrentAttributes& attributes) {
    const int64_t states = attributes.states();
    const List apart = ApartInGraph(saved);
    const at::TensorList inputs = apart;
    const List outputs = ComposedLayers(inputs[0], inputs.slice(1, states),
                                        inputs.slice(1 + states), {0, true, attributes});
    List wanted, given, of;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!gradients[i].defined()) continue;
      of.push_back(outputs[i]);
      given.push_back(gradients[i]);
    }
    for (const at::Tensor& input : inputs) {
      if (input.requires_grad()) wanted.push_back(input);
    }
    const List found = torch::autograd::grad(of, wanted, given, /*retain_graph=*/true,
                                             /*create_graph=*/true, /*allow_unused=*/true);
    List results(inputs.size());
    for (size_t i = 0, next = 0; i < inputs.size(); ++i) {
      if (inputs[i].requires_grad()) results[i] = found[next++];
    }
    return results;
  }
};

bool HaveOneFloatingType(const at::Tensor& x, at::TensorList states, at::TensorList parameters) {
  const auto is_alike = [&](const at::Tensor& tensor) {
    return tensor.scalar_type() == x.scalar_type();
  };
  return at::isFloatingType(x.scalar_type()) && std::ranges::all_of(states, is_alike) &&
         std::ranges::all_of(parameters, is_alike);
}

bool ParametersFit(const at::Tensor& x, int64_t width, at::TensorList parameters,
                   const RecurrentAttributes& attributes) {
  if (static_cast<int64_t>(parameters.size()) != attributes.parameters()) return false;
  const int64_t gates = attributes.gates() * width, each = attributes.parameters_each();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto part = static_cast<int64_t>(i) % each;
    const bool is_first = static_cast<int64_t>(i) / each < attributes.directions();
    const int64_t inputs = is_first ? x.size(-1) : width * attributes.directions();
    const std::array<int64_t, 2> sizes = {gates, part == 0 ? inputs : width};
    if (parameters[i].sizes() != at::IntArrayRef(sizes).slice(0, part < 2 ? 2 : 1)) return false;
  }
  return true;
}

// The size of the batch, if the input has the dimensions that it should have.
std::optional<int64_t> BatchOf(const at::Tensor& x, const RecurrentAttributes& attributes) {
  if (!attributes.is_packed()) {
    if (x.dim() != 3) return std::nullopt;
    return x.size(attributes.batch_first ? 0 : 1);
  }
  const Dimensions& sizes = attributes.batch_sizes;
  const bool fits = x.dim() == 2 && std::ranges::is_sorted(sizes, std::greater()) &&
                    sizes.back() > 0 && std::reduce(sizes.begin(), sizes.end()) == x.size(0);
  return fits ? std::optional(sizes[0]) : std::nullopt;
}

bool IsPlainSequence(const at::Tensor& x, at::TensorList states, at::TensorList parameters,
                     const RecurrentAttributes& attributes) {
  const std::optional<int64_t> batch = BatchOf(x, attributes);
  if (!batch || attributes.layers < 1 || x.numel() == 0 || !IsPlain(x) || !IsPlain(states) ||
      !IsPlain(parameters) || static_cast<int64_t>(states.size()) != attributes.states() ||
      states[0].dim() != 3 || !HaveOneFloatingType(x, states, parameters)) {
    return false;
  }
  const std::array<int64_t, 3> sizes = {attributes.layers * attributes.directions(), *batch,
                                        states[0].size(2)};
  return std::ranges::all_of(
             states,
             [&](const at::Tensor& state) { return state.sizes() == at::IntArrayRef(sizes); }) &&
         ParametersFit(x, sizes[2], parameters, attributes) && MayDifferentiateHere();
}

// In autocast's type, where that is on.
at::Tensor InLowerPrecision(const at::Tensor& tensor) {
  return at::autocast::cached_cast(at::autocast::get_autocast_dtype(c10::kXLA), tensor, c10::kXLA);
}
std::vector<at::Tensor> InLowerPrecision(at::TensorList tensors) {
  std::vector<at::Tensor> cast;
  for (const at::Tensor& tensor : tensors) cast.push_back(InLowerPrecision(tensor));
  return cast;
}

bool SequenceNeedsGradient(const at::Tensor& x, at::TensorList states, at::TensorList parameters) {
  const auto needs = [](const at::Tensor& tensor) { return tensor.requires_grad(); };
  return at::GradMode::is_enabled() &&
         (needs(x) || std::ranges::any_of(states, needs) || std::ranges::any_of(parameters, needs));
}

std::vector<at::Tensor> OneOperation(const at::Tensor& x, at::TensorList states,
                                     at::TensorList parameters,
                                     const RecurrentAttributes& attributes) {
  if (SequenceNeedsGradient(x, states, parameters)) {
    return RecurrentFunction::apply(attributes, x, states, parameters);
  }
  return RecordRecurrentLayers(x, states, parameters, attributes);
}

// Dropout comes between layers.
std::vector<at::Tensor> LayerByLayer(at::Tensor x, at::TensorList states, at::TensorList parameters,
                                     const RecurrentOptions& options) {
  RecurrentAttributes one = options.attributes;
  one.layers = 1;
  std::vector<std::vector<at::Tensor>> last(states.size());
  for (int64_t layer = 0; layer < options.attributes.layers; ++layer) {
    if (layer > 0) x = at::dropout(x, options.dropout, /*train=*/true);
    std::vector<at::Tensor> here;
    for (const at::Tensor& state : states) {
      here.push_back(state.narrow(0, layer * one.directions(), one.directions()));
    }
    const auto results =
        OneOperation(x, here, parameters.slice(layer * one.parameters(), one.parameters()), one);
    x = results[0];
    for (size_t s = 0; s < states.size(); ++s) last[s].push_back(results[1 + s]);
  }
  std::vector<at::Tensor> results = {x};
  for (const auto& parts : last) results.push_back(at::cat(parts));
  return results;
}

std::vector<at::Tensor> Sequence(const at::Tensor& x, at::TensorList states,
                                 at::TensorList parameters, const RecurrentOptions& options) {
  if (at::autocast::is_autocast_enabled(c10::kXLA)) {
    const c10::impl::ExcludeDispatchKeyGuard cast_once(c10::DispatchKey::AutocastXLA);
    return Sequence(InLowerPrecision(x), InLowerPrecision(states), InLowerPrecision(parameters),
                    options);
  }
  if (!IsPlainSequence(x, states, parameters, options.attributes)) {
    return ComposedLayers(x, states, parameters, options);
  }
  const bool drops = options.train && options.dropout > 0 && options.attributes.layers > 1;
  return drops ? LayerByLayer(x, states, parameters, options)
               : OneOperation(x, states, parameters, options.attributes);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> Lstm(const at::Tensor& x, at::TensorList states,
                                                    at::TensorList parameters, bool has_biases,
                                                    int64_t layers, double dropout, bool train,
                                                    bool bidirectional, bool batch_first) {
  return AsTuple<3>(Sequence(
      x, states, parameters,
      {dropout, train, {CellKind::kLstm, layers, has_biases, bidirectional, batch_first}}));
}

template <CellKind kind>
std::tuple<at::Tensor, at::Tensor> OfOneState(const at::Tensor& x, const at::Tensor& state,
                                              at::TensorList parameters, bool has_biases,
                                              int64_t layers, double dropout, bool train,
                                              bool bidirectional, bool batch_first) {
  return AsTuple<2>(
      Sequence(x, state, parameters,
               {dropout, train, {kind, layers, has_biases, bidirectional, batch_first}}));
}

RecurrentAttributes PackedAttributes(CellKind kind, const at::Tensor& batch_sizes, bool has_biases,
                                     int64_t layers, bool bidirectional) {
  TORCH_CHECK(
      batch_sizes.dim() == 1 && batch_sizes.numel() > 0,
      "Packed sequences have one batch size for each step, and at least one; batch_sizes is "
      "of the shape ",
      batch_sizes.sizes(), ".");
  const at::Tensor sizes = batch_sizes.to(at::kCPU, at::kLong).contiguous();
  const int64_t* first = sizes.const_data_ptr<int64_t>();
  return {.kind = kind,
          .layers = layers,
          .has_biases = has_biases,
          .bidirectional = bidirectional,
          .batch_sizes = Dimensions(first, first + sizes.numel())};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> PackedLstm(
    const at::Tensor& x, const at::Tensor& batch_sizes, at::TensorList states,
    at::TensorList parameters, bool has_biases, int64_t layers, double dropout, bool train,
    bool bidirectional) {
  return AsTuple<3>(Sequence(
      x, states, parameters,
      {dropout, train,
       PackedAttributes(CellKind::kLstm, batch_sizes, has_biases, layers, bidirectional)}));
}

template <CellKind kind>
std::tuple<at::Tensor, at::Tensor> PackedOfOneState(const at::Tensor& x,
                                                    const at::Tensor& batch_sizes,
                                                    const at::Tensor& state,
                                                    at::TensorList parameters, bool has_biases,
                                                    int64_t layers, double dropout, bool train,
                                                    bool bidirectional) {
  return AsTuple<2>(Sequence(
      x, state, parameters,
      {dropout, train, PackedAttributes(kind, batch_sizes, has_biases, layers, bidirectional)}));
}

// Above autograd, which has no derivative for them, and where it is off.
void RegisterRecurrentLayers(torch::Library& m) {
  m.impl("lstm_cell", &LstmCell);
  m.impl("gru_cell", &GruCell);
  m.impl("lstm.input", &Lstm);
  m.impl("gru.input", &OfOneState<CellKind::kGru>);
  m.impl("rnn_tanh.input", &OfOneState<CellKind::kTanh>);
  m.impl("rnn_relu.input", &OfOneState<CellKind::kRelu>);
  m.impl("lstm.data", &PackedLstm);
  m.impl("gru.data", &PackedOfOneState<CellKind::kGru>);
  m.impl("rnn_tanh.data", &PackedOfOneState<CellKind::kTanh>);
  m.impl("rnn_relu.data", &PackedOfOneState<CellKind::kRelu>);
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
  RegisterRecurrentLayers(m);
}

TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) { RegisterRecurrentLayers(m); }

}  // namespace torch_xla
