// The contents of the device's data as torch's CPU kernels take and give them, where the device's
// memory is the host's.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>

#include "lazy/data.h"

namespace torch_xla {

// Contents that are a tensor of the CPU's: dense, row-major, and never written into.
class HostTensor final : public lazy::HostContents {
 public:
  explicit HostTensor(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  const at::Tensor& tensor() const { return tensor_; }
  const void* bytes() const override { return tensor_.const_data_ptr(); }

 private:
  const at::Tensor tensor_;
};

// Of results that stay in torch's memory, which no limit of the device's counts.
inline constexpr int64_t kMostHostBytes = 64 << 10;

// The values of `data`, which nobody writes into: what a kernel has left, or else a view of the
// device's memory, which `data` keeps for the next kernel. Waits for them. Throws
// lazy::OperandFailed where the work that was to make them has failed. Under SyncMutex.
at::Tensor TensorOf(lazy::Data& data);

// A kernel's result, of any strides and of that shape, as data. Up to kMostHostBytes stay where
// they are; more are copied to the device's memory, which its reports and limits count.
lazy::Reference<lazy::Data> DataOf(lazy::Device* device, lazy::ShapeRef shape, at::Tensor tensor);

// The operand of a kernel, row-major, to be written into: itself where nobody holds it but the
// kernel's list of operands, a copy else.
at::Tensor Writable(const at::Tensor& operand);

}  // namespace torch_xla
