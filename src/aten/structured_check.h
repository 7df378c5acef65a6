// An operator's arguments checked as eager checks them, by torch's own function for the shapes of
// its results: CheckArguments<at::meta::structured_linalg_qr>(A, mode). Each has its header,
// ATen/ops/linalg_qr_meta.h.
#pragma once

#include <ATen/core/Tensor.h>

namespace torch_xla {

// Takes a structured operator's description of its results, and makes none.
template <typename Structured>
class Description : public Structured {
 public:
  const at::Tensor& maybe_get_output(int64_t) override { return undefined_; }
  void set_output_strided(int64_t, at::IntArrayRef, at::IntArrayRef, at::TensorOptions) override {}
  void set_output_raw_strided(int64_t, at::IntArrayRef, at::IntArrayRef,
                              at::TensorOptions) override {}

 private:
  at::Tensor undefined_;
};

template <typename Structured, typename... Arguments>
void CheckArguments(const Arguments&... arguments) {
  Description<Structured>().meta(arguments...);
}

}  // namespace torch_xla
