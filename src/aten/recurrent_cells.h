// One step of LSTM's and GRU's cells, forward and backward: gates of shape [batch, 4 or 3 times the
// width], which the products of a step's input and state with their weights give. Computed in f32
// where they have less, rounded once. Each has a form by torch's kernels as well, which torch has
// for accelerators only.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "aten/op.h"

namespace torch_xla {

using OptionalTensor = std::optional<at::Tensor>;

// Gates in the accumulation's type, with a bias.
Value WithBias(Builder& b, Value gates, const OptionalValue& bias);

// Results: the output, the cell's state, the four gates' values for the backward.
std::array<Value, 3> LstmStep(Builder& b, Value input_gates, Value hidden_gates, Value state,
                              OptionalValue input_bias, OptionalValue hidden_bias);
// The cell's state, from the gates' values and the state before.
Value LstmNextState(Builder& b, Value kept, Value state);
// Results: the gradients of the gates, of the state before, and of a bias.
std::array<Value, 3> LstmStepBackward(Builder& b, OptionalValue output_gradient,
                                      OptionalValue next_gradient, Value state, Value next,
                                      Value kept, bool has_bias);
// Results: the output; for the backward the three gates, the state before, and what the reset gate
// multiplies.
std::array<Value, 2> GruStep(Builder& b, Value input_gates, Value hidden_gates, Value state,
                             OptionalValue input_bias, OptionalValue hidden_bias);
// Results: the gradients of the input's gates, of the state's, of the state, and of their biases.
std::array<Value, 5> GruStepBackward(Builder& b, Value output_gradient, Value kept, bool has_bias);

// The same by torch's kernels.
std::vector<at::Tensor> RunLstmStep(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                    const at::Tensor& state, const OptionalTensor& input_bias,
                                    const OptionalTensor& hidden_bias);
at::Tensor RunLstmNextState(const at::Tensor& kept, const at::Tensor& state);
std::vector<at::Tensor> RunLstmStepBackward(const OptionalTensor& output_gradient,
                                            const OptionalTensor& next_gradient,
                                            const at::Tensor& state, const at::Tensor& next,
                                            const at::Tensor& kept, bool has_bias);
std::vector<at::Tensor> RunGruStep(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                   const at::Tensor& state, const OptionalTensor& input_bias,
                                   const OptionalTensor& hidden_bias);
std::vector<at::Tensor> RunGruStepBackward(const at::Tensor& output_gradient,
                                           const at::Tensor& kept, bool has_bias);

}  // namespace torch_xla
