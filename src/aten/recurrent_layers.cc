#include "aten/recurrent_layers.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "aten/elementwise.h"
#include "aten/indexing.h"
#include "aten/loop_rows.h"
#include "aten/matmul.h"
#include "aten/promotion.h"
#include "aten/recurrent_cells.h"
#include "aten/recurrent_kernels.h"
#include "aten/recurrent_parts.h"
#include "aten/reduction.h"

namespace torch_xla {
namespace {

// --- Packed sequences

// [steps, batch, …]
Value Unpack(Builder& b, Value packed, const Packing& packing) {
  Value rows = TakeRows(b, packed, b.Constant(hlo::Literal::FromVector(packing.in_packed)));
  return b.Reshape(rows, {packing.steps, packing.batch, packed->shape().dimension(1)});
}

Value Pack(Builder& b, Value block, const Packing& packing) {
  const Dimensions& sizes = block->dimensions();
  Value rows = b.Reshape(block, {sizes[0] * sizes[1], sizes[2]});
  return TakeRows(b, rows, b.Constant(hlo::Literal::FromVector(packing.in_block)));
}

// Which places of the block are elements, pred[steps, batch].
Value IsThere(Builder& b, const Packing& packing) {
  const Shape shape(ElementType::kPred, {packing.steps, packing.batch});
  return b.Constant(hlo::Literal(shape, packing.is_there.data()));
}

// Of each row: one value where its sequence has an element, else another. `is_there` has all
// dimensions but the last.
Value SelectRows(Builder& b, Value is_there, Value on_true, Value on_false) {
  Dimensions leading;
  for (int64_t d = 0; d < is_there->shape().rank(); ++d) leading.push_back(d);
  return b.Select(b.BroadcastInDim(is_there, on_true->dimensions(), leading), on_true, on_false);
}

// --- A loop over the steps of a sequence

// From the carries, the rows of what the loop goes through and what does not change: the next
// carries, then the results' rows.
using SweepBody = std::function<Values(Builder& b, const Values& carries, const Values& rows,
                                       const Values& constants)>;

// Goes through `sequences`, [steps, …] each, from the first row or from the last. The last carries,
// then the results, [steps, …], of rows of the given shapes.
Values Sweep(Builder& b, bool from_last, const Values& carries, const Values& sequences,
             const Values& constants, const std::vector<Shape>& rows, const SweepBody& body) {
  const int64_t steps = sequences[0]->shape().dimension(0);
  Values state = {b.ConstantScalar(ElementType::kS64, int64_t{0})};
  state.insert(state.end(), carries.begin(), carries.end());
  for (const Shape& row : rows) {
    Dimensions sizes = row.dimensions();
    sizes.insert(sizes.begin(), steps);
    state.push_back(b.Zeros(Shape(row.element_type(), sizes)));
  }
  state.insert(state.end(), sequences.begin(), sequences.end());
  state.insert(state.end(), constants.begin(), constants.end());
  const auto goes_on = [&](Builder& r, const Values& all) {
    return Values{r.Lt(all[0], r.ConstantScalar(ElementType::kS64, steps))};
  };
  const auto run = [&](Builder& r, const Values& all) {
    const auto first_row = all.begin() + 1 + static_cast<int64_t>(carries.size());
    const auto first_sequence = first_row + static_cast<int64_t>(rows.size());
    const auto first_constant = first_sequence + static_cast<int64_t>(sequences.size());
    Value place = all[0];
    if (from_last) place = r.Subtract(r.ConstantScalar(ElementType::kS64, steps - 1), place);
    Values taken;
    for (auto x = first_sequence; x != first_constant; ++x) taken.push_back(TakeRow(r, *x, place));
    const Values results =
        body(r, Values(all.begin() + 1, first_row), taken, Values(first_constant, all.end()));
    Values next = all;
    next[0] = r.Add(all[0], r.ConstantScalar(ElementType::kS64, int64_t{1}));
    std::copy_n(results.begin(), carries.size(), next.begin() + 1);
    for (size_t i = carries.size(); i < results.size(); ++i) {
      next[1 + i] = PutRow(r, all[1 + i], results[i], place);
    }
    return next;
  };
  const std::vector<Shape> shapes = ShapesOf(state);
  hlo::Computation* condition = b.Region("steps_condition", shapes, goes_on);
  hlo::Computation* step = b.Region("steps_body", shapes, run);
  Value loop = b.While(state, condition, step);
  return ResultsOf(b, loop, 1, carries.size() + rows.size());
}

// --- A layer in one direction

Value Flat(Builder& b, Value x) {
  const Dimensions& sizes = x->dimensions();
  return b.Reshape(x, {sizes[0] * sizes[1], sizes[2]});
}

// The products of all steps' inputs with their weights, with the biases.
Value GatesOfInputs(Builder& b, Value x, const LayerParameters<Value>& of, CellKind kind) {
  Value gates = BatchMatMul(b, Flat(b, x), false, of.w_ih, true);
  if (of.b_ih != nullptr) {
    Value bias = AddsBiasInside(kind) ? of.b_ih : b.Add(of.b_ih, of.b_hh);
    gates = b.Convert(WithBias(b, gates, bias), x->element_type());
  }
  const Dimensions& sizes = x->dimensions();
  return b.Reshape(gates, {sizes[0], sizes[1], gates->shape().dimension(1)});
}

// The next states, then what the backward needs of the step.
Values CellStep(Builder& b, CellKind kind, Value input_gates, Value hidden_gates,
                const Values& states, OptionalValue hidden_bias) {
  const ElementType type = states[0]->element_type();
  if (kind == CellKind::kLstm) {
    auto [output, next, gates] =
        LstmStep(b, input_gates, hidden_gates, states[1], std::nullopt, std::nullopt);
    return {output, next, gates, states[1]};
  }
  if (kind == CellKind::kGru) {
    auto [output, kept] =
        GruStep(b, input_gates, hidden_gates, states[0], std::nullopt, hidden_bias);
    return {output, kept};
  }
  Value sum = b.Add(ToAccumulation(b, input_gates), ToAccumulation(b, hidden_gates));
  Value output = kind == CellKind::kTanh ? b.Tanh(sum) : b.Maximum(sum, Like(b, sum, 0));
  return {b.Convert(output, type)};
}

struct LayerResults {
  Value output;
  Values states, kept;
};

// `is_there`: of packed sequences; where one has no element its states stay.
LayerResults LowerLayer(Builder& b, Value x, OptionalValue is_there, const Values& states,
                        const LayerParameters<Value>& of, bool backwards,
                        const RecurrentAttributes& attributes) {
  const Shape& state = states[0]->shape();
  std::vector<Shape> rows = {state};
  if (attributes.keeps) {
    for (int64_t widths : KeptWidths(attributes.kind)) {
      rows.emplace_back(state.element_type(),
                        Dimensions{state.dimension(0), widths * state.dimension(1)});
    }
  }
  // Products of few rows read transposed weights as they lie; for those of more, they are laid out
  // once and not at each step.
  constexpr int64_t kFewRows = 8;
  const bool has_few = state.dimension(0) <= kFewRows;
  Values constants = {has_few ? of.w_hh : b.Transpose(of.w_hh, {1, 0})};
  if (of.b_hh != nullptr && AddsBiasInside(attributes.kind)) constants.push_back(of.b_hh);
  const SweepBody step = [&](Builder& r, const Values& carries, const Values& taken,
                             const Values& weights) {
    Value hidden_gates = BatchMatMul(r, carries[0], false, weights[0], has_few);
    OptionalValue bias;
    if (weights.size() > 1) bias = weights[1];
    Values results = CellStep(r, attributes.kind, taken[0], hidden_gates, carries, bias);
    for (size_t s = 0; is_there && s < states.size(); ++s) {
      results[s] = SelectRows(r, taken[1], results[s], carries[s]);
    }
    const auto kept = results.begin() + static_cast<int64_t>(states.size());
    if (!attributes.keeps) results.erase(kept, results.end());
    results.insert(results.begin() + static_cast<int64_t>(states.size()), results[0]);
    return results;
  };
  Values sequences = {GatesOfInputs(b, x, of, attributes.kind)};
  if (is_there) sequences.push_back(*is_there);
  const Values results = Sweep(b, backwards, states, sequences, constants, rows, step);
  const auto output = results.begin() + static_cast<int64_t>(states.size());
  return {*output, Values(results.begin(), output), Values(output + 1, results.end())};
}

// What is not a number lets the gradient pass, as in torch.
Value ReluBackward(Builder& b, Value gradient, Value output) {
  return b.Select(b.Le(output, Like(b, output, 0)), Like(b, gradient, 0), gradient);
}

// The gradients of the input's gates, of the state's, and of the states before, without what comes
// through the state's gates: none, where all of it does.
Values CellStepBackward(Builder& b, CellKind kind, const Values& gradients, const Values& kept) {
  if (kind == CellKind::kLstm) {
    Value next = LstmNextState(b, kept[0], kept[1]);
    auto [gates, state, bias] =
        LstmStepBackward(b, gradients[0], gradients[1], kept[1], next, kept[0], false);
    return {gates, gates, nullptr, state};
  }
  if (kind == CellKind::kGru) {
    auto [of_input, of_hidden, state, b_ih, b_hh] =
        GruStepBackward(b, gradients[0], kept[0], false);
    return {of_input, of_hidden, state};
  }
  Value gradient = ToAccumulation(b, gradients[0]), output = ToAccumulation(b, kept[0]);
  Value gates = kind == CellKind::kTanh ? TanhBackward(b, gradient, output)
                                        : ReluBackward(b, gradient, output);
  gates = b.Convert(gates, kept[0]->element_type());
  return {gates, gates, nullptr};
}

// The outputs of the steps before each.
Value OutputsBefore(Builder& b, Value outputs, Value first, bool backwards) {
  const Dimensions& sizes = outputs->dimensions();
  first = b.Reshape(first, {1, sizes[1], sizes[2]});
  if (backwards) return b.Concatenate({b.SliceInDim(outputs, 0, 1, sizes[0]), first}, 0);
  return b.Concatenate({first, b.SliceInDim(outputs, 0, 0, sizes[0] - 1)}, 0);
}

struct LayerGradients {
  Value input;
  Values states, parameters;
};

// `kept`: what LowerLayer keeps, then its output. `gradients`: of the output, then of the last
// states.
LayerGradients LowerLayerBackward(Builder& b, Value x, OptionalValue is_there, const Values& states,
                                  const LayerParameters<Value>& of, const Values& kept,
                                  const Values& gradients, bool backwards, CellKind kind) {
  const ElementType type = x->element_type();
  const Shape gates(type, {x->shape().dimension(1), of.w_hh->shape().dimension(0)});
  Values sequences = {gradients[0]};
  const bool needs_output = kind == CellKind::kTanh || kind == CellKind::kRelu;
  if (needs_output) {
    sequences.push_back(kept.back());
  } else {
    sequences.insert(sequences.end(), kept.begin(), kept.end() - 1);
  }
  if (is_there) sequences.push_back(*is_there);
  const bool has_two = kind == CellKind::kGru;  // gradients of gates
  const SweepBody step = [&](Builder& r, const Values& carries, const Values& taken,
                             const Values& weights) {
    Values given = carries;
    given[0] = r.Add(carries[0], taken[0]);
    Values results = CellStepBackward(r, kind, given, Values(taken.begin() + 1, taken.end()));
    for (size_t i = 0; is_there && i < 2; ++i) {
      results[i] = SelectRows(r, taken.back(), results[i], r.Zeros(results[i]->shape()));
    }
    Value of_input = results[0], of_hidden = results[1];
    results.erase(results.begin(), results.begin() + 2);
    Value through = BatchMatMul(r, of_hidden, weights[0]);
    results[0] = results[0] == nullptr ? through : r.Add(through, results[0]);
    for (size_t s = 0; is_there && s < states.size(); ++s) {
      results[s] = SelectRows(r, taken.back(), results[s], carries[s]);
    }
    results.push_back(of_input);
    if (has_two) results.push_back(of_hidden);
    return results;
  };
  const Values carries(gradients.begin() + 1, gradients.end());
  const std::vector<Shape> rows(has_two ? 2 : 1, gates);
  const Values results = Sweep(b, !backwards, carries, sequences, {of.w_hh}, rows, step);

  Value of_input = Flat(b, results[carries.size()]), of_hidden = Flat(b, results.back());
  Value before = Flat(b, OutputsBefore(b, kept.back(), states[0], backwards));
  LayerGradients out;
  out.input = b.Reshape(BatchMatMul(b, of_input, of.w_ih), x->dimensions());
  out.states = Values(results.begin(), results.begin() + static_cast<int64_t>(carries.size()));
  out.parameters = {BatchMatMul(b, of_input, true, Flat(b, x), false),
                    BatchMatMul(b, of_hidden, true, before, false)};
  if (of.b_ih != nullptr) {
    Value bias = Sum(b, of_input, {0});
    out.parameters.push_back(bias);
    out.parameters.push_back(has_two ? Sum(b, of_hidden, {0}) : bias);
  }
  return out;
}

// --- The stack

// What comes and goes as the user has it, [steps, batch, …] inside.
Value AsBlock(Builder& b, Value x, const Packing& packing, const RecurrentAttributes& attributes) {
  if (packing) return Unpack(b, x, packing);
  return attributes.batch_first ? b.Transpose(x, {1, 0, 2}) : x;
}
Value FromBlock(Builder& b, Value x, const Packing& packing,
                const RecurrentAttributes& attributes) {
  if (packing) return Pack(b, x, packing);
  return attributes.batch_first ? b.Transpose(x, {1, 0, 2}) : x;
}

Value JoinedIn(Builder& b, const Values& parts, int64_t dimension) {
  return parts.size() == 1 ? parts[0] : b.Concatenate(parts, dimension);
}

// Of each state, the matrix of a layer in one direction.
Values StatesOf(Builder& b, const Values& states, int64_t index) {
  Values of;
  for (Value state : states) {
    const Dimensions& sizes = state->dimensions();
    of.push_back(b.Reshape(b.SliceInDim(state, 0, index, index + 1), {sizes[1], sizes[2]}));
  }
  return of;
}

// `of[i]`: StatesOf the i-th layer and direction.
Values JoinedStates(Builder& b, const std::vector<Values>& of) {
  Values joined;
  for (size_t s = 0; s < of[0].size(); ++s) {
    Values parts;
    for (const Values& states : of) {
      const Dimensions& sizes = states[s]->dimensions();
      parts.push_back(b.Reshape(states[s], {1, sizes[0], sizes[1]}));
    }
    joined.push_back(JoinedIn(b, parts, 0));
  }
  return joined;
}

// What is kept: of each layer, what its directions keep, then its output.
Values RecurrentLayers(Builder& b, Value x, Values states, Values parameters,
                       RecurrentAttributes attributes) {
  const Packing packing(attributes.batch_sizes);
  OptionalValue is_there;
  if (packing) is_there = IsThere(b, packing);
  x = AsBlock(b, x, packing, attributes);
  std::vector<Values> last;
  Values kept;
  for (int64_t layer = 0; layer < attributes.layers; ++layer) {
    Values outputs;
    for (int64_t direction = 0; direction < attributes.directions(); ++direction) {
      const int64_t index = layer * attributes.directions() + direction;
      const auto of = ParametersOf<Value>(parameters, index, attributes);
      LayerResults results =
          LowerLayer(b, x, is_there, StatesOf(b, states, index), of, direction == 1, attributes);
      outputs.push_back(results.output);
      last.push_back(std::move(results.states));
      kept.insert(kept.end(), results.kept.begin(), results.kept.end());
    }
    x = JoinedIn(b, outputs, 2);
    if (attributes.keeps) kept.push_back(x);
  }
  Values results = {FromBlock(b, x, packing, attributes)};
  const Values joined = JoinedStates(b, last);
  results.insert(results.end(), joined.begin(), joined.end());
  results.insert(results.end(), kept.begin(), kept.end());
  return results;
}

// The gradient that is given, or zeros of a value's shape.
Value GivenOrZeros(Builder& b, const OptionalValue& gradient, const Shape& shape) {
  return gradient ? *gradient : b.Zeros(shape);
}

// The gradients of the input, the states and the parameters.
Values RecurrentLayersBackward(Builder& b, Value x, Values states, Values parameters, Values kept,
                               OptionalValue output_gradient, OptionalValue hidden_gradient,
                               OptionalValue cell_gradient, RecurrentAttributes attributes) {
  const Packing packing(attributes.batch_sizes);
  OptionalValue is_there;
  if (packing) is_there = IsThere(b, packing);
  x = AsBlock(b, x, packing, attributes);
  const int64_t directions = attributes.directions();
  const int64_t width = states[0]->shape().dimension(2);
  const auto kept_each = static_cast<int64_t>(KeptWidths(attributes.kind).size());
  const int64_t kept_layer = kept_each * directions + 1;
  Value gradient = b.Zeros(kept.back()->shape());
  if (output_gradient) {
    Value block = AsBlock(b, *output_gradient, packing, attributes);
    gradient = is_there ? SelectRows(b, *is_there, block, gradient) : block;
  }
  Values last = {GivenOrZeros(b, hidden_gradient, states[0]->shape())};
  if (states.size() > 1) last.push_back(GivenOrZeros(b, cell_gradient, states[1]->shape()));
  std::vector<Values> of_states(attributes.layers * directions), of_parameters(of_states.size());
  for (int64_t layer = attributes.layers - 1; layer >= 0; --layer) {
    const auto kept_here = kept.begin() + layer * kept_layer;
    Value input = layer == 0 ? x : *(kept_here - 1);
    Value output = *(kept_here + kept_layer - 1), of_input = nullptr;
    for (int64_t direction = 0; direction < directions; ++direction) {
      const int64_t index = layer * directions + direction;
      const auto part = [&](Value whole) {
        return b.SliceInDim(whole, 2, direction * width, (direction + 1) * width);
      };
      const auto first = kept_here + direction * kept_each;
      Values here(first, first + kept_each), gradients = {part(gradient)};
      here.push_back(part(output));
      for (Value of_last : StatesOf(b, last, index)) gradients.push_back(of_last);
      LayerGradients of = LowerLayerBackward(b, input, is_there, StatesOf(b, states, index),
                                             ParametersOf<Value>(parameters, index, attributes),
                                             here, gradients, direction == 1, attributes.kind);
      of_input = of_input == nullptr ? of.input : b.Add(of_input, of.input);
      of_states[index] = std::move(of.states);
      of_parameters[index] = std::move(of.parameters);
    }
    gradient = of_input;
  }
  Values results = {FromBlock(b, gradient, packing, attributes)};
  const Values joined = JoinedStates(b, of_states);
  results.insert(results.end(), joined.begin(), joined.end());
  for (const Values& of : of_parameters) results.insert(results.end(), of.begin(), of.end());
  return results;
}

}  // namespace

std::vector<at::Tensor> RecordRecurrentLayers(const at::Tensor& x, at::TensorList states,
                                              at::TensorList parameters,
                                              const RecurrentAttributes& attributes) {
  return Record<&RecurrentLayers>(x, states, parameters, attributes);
}

std::vector<at::Tensor> RecordRecurrentLayersBackward(const at::Tensor& x, at::TensorList states,
                                                      at::TensorList parameters,
                                                      at::TensorList kept,
                                                      const std::array<at::Tensor, 3>& gradients,
                                                      const RecurrentAttributes& attributes) {
  return Record<&RecurrentLayersBackward>(x, states, parameters, kept, gradients[0], gradients[1],
                                          gradients[2], attributes);
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  RunBy<&RecurrentLayers>(&RunRecurrentLayers);
  RunBy<&RecurrentLayersBackward>(&RunRecurrentLayersBackward);
}

}  // namespace torch_xla
