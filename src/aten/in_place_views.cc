// In-place view operators (`squeeze_`, `t_`, …): the tensor becomes a view of what it was; nothing
// is written.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "aten/tensor.h"

namespace torch_xla {
namespace {

at::Tensor& Become(at::Tensor& self, const at::Tensor& view) {
  Impl(self)->ShareStorage(*Impl(view));
  return self;
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("squeeze_",
         [](at::Tensor& self) -> at::Tensor& { return Become(self, at::squeeze(self)); });
  m.impl("squeeze_.dim", [](at::Tensor& self, int64_t dim) -> at::Tensor& {
    return Become(self, at::squeeze(self, dim));
  });
  m.impl("squeeze_.dims", [](at::Tensor& self, at::IntArrayRef dims) -> at::Tensor& {
    return Become(self, at::squeeze(self, dims));
  });
  m.impl("unsqueeze_", [](at::Tensor& self, int64_t dim) -> at::Tensor& {
    return Become(self, at::unsqueeze(self, dim));
  });
  m.impl("transpose_", [](at::Tensor& self, int64_t dim0, int64_t dim1) -> at::Tensor& {
    return Become(self, at::transpose(self, dim0, dim1));
  });
  m.impl("t_", [](at::Tensor& self) -> at::Tensor& { return Become(self, at::t(self)); });
  m.impl("as_strided_",
         [](const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
            std::optional<c10::SymInt> offset) -> const at::Tensor& {
           Impl(self)->ShareStorage(*Impl(at::as_strided_symint(self, size, stride, offset)));
           return self;
         });
}

}  // namespace
}  // namespace torch_xla
