// A stack of LSTM's, GRU's or plain recurrent layers as one operation, forward and backward: a loop
// over the steps in the program, however many there are.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "aten/op.h"
#include "lazy/op.h"

namespace torch_xla {

enum class CellKind { kLstm, kGru, kTanh, kRelu };

struct RecurrentAttributes {
  CellKind kind = CellKind::kLstm;
  int64_t layers = 1;
  bool has_biases = true, bidirectional = false, batch_first = false;
  bool keeps = false;  // what the backward needs
  // Of packed sequences, [elements of all, …], the longest first: how many go on at each step.
  Dimensions batch_sizes = {};

  bool operator==(const RecurrentAttributes&) const = default;
  uint64_t Hash() const {
    return lazy::HashAttribute(std::tuple(static_cast<int64_t>(kind), layers, has_biases,
                                          bidirectional, batch_first, keeps, batch_sizes));
  }
  bool is_packed() const { return !batch_sizes.empty(); }
  int64_t directions() const { return bidirectional ? 2 : 1; }
  // Of the operands: a cell's states, [layers times directions, batch, width] each; and the
  // parameters of a layer in one direction: w_ih, w_hh and, with biases, b_ih, b_hh.
  int64_t states() const { return kind == CellKind::kLstm ? 2 : 1; }
  int64_t parameters_each() const { return has_biases ? 4 : 2; }
  int64_t parameters() const { return layers * directions() * parameters_each(); }
  // How many widths a step's product of the state has.
  int64_t gates() const {
    if (kind == CellKind::kLstm) return 4;
    return kind == CellKind::kGru ? 3 : 1;
  }
};

// The output, the last states, and, where `attributes.keeps`, what is kept for the backward. All
// tensors are on xla, of one floating type, and fit.
std::vector<at::Tensor> RecordRecurrentLayers(const at::Tensor& x, at::TensorList states,
                                              at::TensorList parameters,
                                              const RecurrentAttributes& attributes);

// `gradients`: of the output and the last states; undefined ones are zeros. The gradients of the
// input, the states and the parameters.
std::vector<at::Tensor> RecordRecurrentLayersBackward(const at::Tensor& x, at::TensorList states,
                                                      at::TensorList parameters,
                                                      at::TensorList kept,
                                                      const std::array<at::Tensor, 3>& gradients,
                                                      const RecurrentAttributes& attributes);

}  // namespace torch_xla
