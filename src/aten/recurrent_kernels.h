// Recurrent layers by torch's kernels, step by step: what recurrent_layers.h records, where a graph
// is interpreted. Results and arguments as there.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "aten/recurrent_cells.h"
#include "aten/recurrent_layers.h"

namespace torch_xla {

std::vector<at::Tensor> RunRecurrentLayers(const at::Tensor& input, at::TensorList states,
                                           at::TensorList parameters,
                                           const RecurrentAttributes& attributes);

std::vector<at::Tensor> RunRecurrentLayersBackward(const at::Tensor& input, at::TensorList states,
                                                   at::TensorList parameters, at::TensorList kept,
                                                   const OptionalTensor& output_gradient,
                                                   const OptionalTensor& hidden_gradient,
                                                   const OptionalTensor& cell_gradient,
                                                   const RecurrentAttributes& attributes);

}  // namespace torch_xla
