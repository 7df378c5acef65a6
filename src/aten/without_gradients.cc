// What torch's kernels for gradients do where nobody asks for one. They copy each tensor to see
// whether it has a tangent (forward mode), and a copy of one that Python holds takes the
// interpreter's lock: for a small operator that is a sixth of recording it. The operators that
// programs call most often ask first, and leave torch's kernels out where these would record
// nothing.
#include "aten/without_gradients.h"

#include <ATen/Operators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <type_traits>

namespace torch_xla {
namespace {

using without_gradients::kTorchs;
using without_gradients::TakesPart;

template <typename Op, typename Schema = typename Op::schema>
struct WithoutGradients;

template <typename Op, typename Result, typename... Arguments>
struct WithoutGradients<Op, Result(Arguments...)> {
  static Result Call(c10::DispatchKeySet keys, Arguments... arguments) {
    const bool grad_mode = c10::GradMode::is_enabled();
    if ((TakesPart(grad_mode, arguments) || ...)) [[unlikely]] {
      return Op::redispatch((keys & c10::after_autograd_keyset).add(kTorchs), arguments...);
    }
    at::AutoDispatchBelowADInplaceOrView guard;
    keys = keys & c10::after_ADInplaceOrView_keyset;
    if constexpr (std::is_reference_v<Result>) {
      // In place: what is kept of the tensor for gradients is told by its version.
      Result self = Op::redispatch(keys, arguments...);
      self.unsafeGetTensorImpl()->bump_version();
      return self;
    } else {
      return Op::redispatch(keys, arguments...);
    }
  }
};

template <typename... Op>
void RegisterAllWithoutGradients(torch::Library& m) {
  (m.impl(without_gradients::NameOf<Op>().c_str(), TORCH_FN((&WithoutGradients<Op>::Call))), ...);
}

namespace ops = at::_ops;

TORCH_LIBRARY_IMPL(aten, AutogradXLA, m) {
  RegisterAllWithoutGradients<
      ops::add_Tensor, ops::add_Scalar, ops::sub_Tensor, ops::sub_Scalar, ops::mul_Tensor,
      ops::mul_Scalar, ops::div_Tensor, ops::div_Scalar, ops::rsub_Scalar, ops::pow_Tensor_Scalar,
      ops::pow_Tensor_Tensor, ops::neg, ops::reciprocal, ops::abs, ops::exp, ops::log, ops::sqrt,
      ops::rsqrt, ops::sin, ops::cos, ops::tanh, ops::sigmoid, ops::relu, ops::gelu, ops::silu,
      ops::maximum, ops::minimum, ops::clamp, ops::where_self, ops::masked_fill_Scalar>(m);
  RegisterAllWithoutGradients<ops::eq_Tensor, ops::eq_Scalar, ops::ne_Tensor, ops::ne_Scalar,
                              ops::lt_Tensor, ops::lt_Scalar, ops::le_Tensor, ops::le_Scalar,
                              ops::gt_Tensor, ops::gt_Scalar, ops::ge_Tensor, ops::ge_Scalar,
                              ops::bitwise_and_Tensor, ops::bitwise_or_Tensor, ops::bitwise_not,
                              ops::logical_not>(m);
  RegisterAllWithoutGradients<ops::mm, ops::bmm, ops::addmm, ops::_softmax, ops::_log_softmax,
                              ops::native_layer_norm, ops::sum_dim_IntList, ops::mean_dim,
                              ops::argmax, ops::index_select, ops::gather, ops::linalg_vector_norm>(
      m);
  RegisterAllWithoutGradients<ops::add__Tensor, ops::add__Scalar, ops::sub__Tensor,
                              ops::sub__Scalar, ops::mul__Tensor, ops::mul__Scalar,
                              ops::div__Tensor, ops::div__Scalar, ops::addcmul_, ops::addcdiv_,
                              ops::lerp__Scalar, ops::clamp_, ops::relu_, ops::zero_,
                              ops::fill__Scalar, ops::masked_fill__Scalar, ops::copy_>(m);
}

}  // namespace
}  // namespace torch_xla
