// Graphs that are kept to be run by hash on other tensors: for clients that were written for
// PyTorch/XLA's own bridge to dynamo. CapturedGraph is the bridge's here.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "lazy/device.h"

namespace torch_xla {

// The hash of what the tensors' recorded work is, its numbers among it; `heeds_wishes` as in
// Graph::PlanDonation.
uint64_t GraphHash(at::TensorList tensors, bool heeds_wishes);

// Keeps the recorded work of the tensors under its hash, of some thousand graphs those that were
// kept last. Nothing is computed.
void KeepGraph(at::TensorList tensors, bool heeds_wishes);

// Records a call of the graph on other data: its leaves, in the order of
// `_get_tensors_xla_device_data_node`; those on the CPU are uploaded. Numbers are drawn anew. A
// result for each distinct tensor that was recorded work. Throws c10::Error for a hash that is not
// kept, and for inputs of other shapes.
std::vector<at::Tensor> RunKeptGraph(uint64_t hash, at::TensorList inputs);

// Forgets what is recorded on the device: tensors that wait for it have no values any more.
void ForgetPending(lazy::Device* device);

}  // namespace torch_xla
