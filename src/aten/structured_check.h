// An operator's arguments checked as eager checks them, by torch's own function for the shapes of
// its results: CheckArguments<at::meta::structured_linalg_qr>(A, mode). Each has its header,
// ATen/ops/linalg_qr_meta.h.
#pragma once

#include <ATen/TensorMeta.h>
#include <ATen/core/Tensor.h>

namespace torch_xla {

// Takes a structured operator's description of its results, and makes none. In torch 2.11 there
// are names of dimensions in it, too: `Rest`.
template <typename Structured, typename Setter>
class Description;

template <typename Structured, typename... Rest>
class Description<Structured,
                  void (at::impl::MetaBase::*)(int64_t, at::IntArrayRef, at::IntArrayRef,
                                               at::TensorOptions, Rest...)> : public Structured {
 public:
  const at::Tensor& maybe_get_output(int64_t) override { return undefined_; }
  void set_output_strided(int64_t, at::IntArrayRef, at::IntArrayRef, at::TensorOptions,
                          Rest...) override {}
  void set_output_raw_strided(int64_t, at::IntArrayRef, at::IntArrayRef, at::TensorOptions,
                              Rest...) override {}

 private:
  at::Tensor undefined_;
};

template <typename Structured, typename... Arguments>
void CheckArguments(const Arguments&... arguments) {
  using Setter = decltype(&at::impl::MetaBase::set_output_strided);
  Description<Structured, Setter>().meta(arguments...);
}

}  // namespace torch_xla
