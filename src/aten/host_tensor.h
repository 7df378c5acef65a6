// The contents of the device's data as torch's CPU kernels take and give them, where the device's
// memory is the host's.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>

#include "lazy/data.h"

namespace torch_xla {

// So many bytes more are torch's memory of results, while it lives.
class ResultBytes {
 public:
  explicit ResultBytes(int64_t count);
  ~ResultBytes();
  ResultBytes(const ResultBytes&) = delete;
  // Of all that live, and the most that lived at one time since ForgetMost.
  static int64_t Total();
  static int64_t Most();
  static void ForgetMost();

 private:
  const int64_t count_;
};

// Contents that are a tensor of the CPU's: dense, row-major, and never written into.
class HostTensor final : public lazy::HostContents {
 public:
  // `result_bytes`: what of it is a result's; 0 for a view of the device's memory.
  explicit HostTensor(at::Tensor tensor, int64_t result_bytes = 0)
      : tensor_(std::move(tensor)), bytes_(result_bytes) {}
  const at::Tensor& tensor() const { return tensor_; }
  const void* bytes() const override { return tensor_.const_data_ptr(); }

 private:
  const at::Tensor tensor_;
  const ResultBytes bytes_;
};

// Of a result that stays in torch's memory. Reports count it with the device's memory, but no limit
// does; so beyond so many bytes together results go to the device, whatever their size.
inline constexpr int64_t kMostHostBytes = 64 << 10, kMostHostBytesTogether = 64 << 20;

// The values of `data`, which nobody writes into: what a kernel has left, or else a view of the
// device's memory, which `data` keeps for the next kernel. Waits for them. Throws
// lazy::OperandFailed where the work that was to make them has failed. Under SyncMutex.
at::Tensor TensorOf(lazy::Data& data);

// A kernel's result, of any strides and of that shape, as data. Up to kMostHostBytes stay where
// they are, while there is room; more are copied to the device's memory, which its reports and
// limits count.
lazy::Reference<lazy::Data> DataOf(lazy::Device* device, lazy::ShapeRef shape, at::Tensor tensor);

// The operand of a kernel, row-major, to be written into: itself where nobody holds it but the
// kernel's list of operands, a copy else.
at::Tensor Writable(const at::Tensor& operand);

}  // namespace torch_xla
