// Automatic mixed precision, `torch.autocast("xla")`: torch's own lists of operators that run in
// lower precision, in float32, and in their operands' widest type. The fall-through for all others
// is in fallback.cc.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace torch_xla {
namespace {

#define TORCH_XLA_LOWER_PRECISION(...) KERNEL(c10::DeviceType::XLA, __VA_ARGS__, lower_precision_fp)
#define TORCH_XLA_FP32(...) KERNEL(c10::DeviceType::XLA, __VA_ARGS__, fp32)
#define TORCH_XLA_FP32_SET_OPT_DTYPE(...) \
  KERNEL(c10::DeviceType::XLA, __VA_ARGS__, fp32_set_opt_dtype)
#define TORCH_XLA_PROMOTE(...) KERNEL(c10::DeviceType::XLA, __VA_ARGS__, promote)
#define TORCH_XLA_DIFFERENT_SIGNATURE(...) \
  KERNEL_DIFFERENT_REDISPATCH_SIGNATURE(c10::DeviceType::XLA, __VA_ARGS__)

// The names that torch's lists use: these mean something else here, and others are not in each
// version of torch.
using at::Scalar;
using at::ScalarType;
using at::Tensor;
using c10::IntArrayRef;
using namespace at;  // NOLINT(google-build-using-namespace)

TORCH_LIBRARY_IMPL(aten, AutocastXLA, m) {
  AT_FORALL_LOWER_PRECISION_FP(TORCH_XLA_LOWER_PRECISION)
  AT_FORALL_FP32(TORCH_XLA_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(TORCH_XLA_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(TORCH_XLA_DIFFERENT_SIGNATURE)
  AT_FORALL_PROMOTE(TORCH_XLA_PROMOTE)
  m.impl(
      "binary_cross_entropy",
      [](const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) -> Tensor {
        TORCH_CHECK(
            false,
            "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast."
            " Many models use a sigmoid layer right before the binary cross entropy layer: combine "
            "the two using torch.nn.functional.binary_cross_entropy_with_logits or "
            "torch.nn.BCEWithLogitsLoss, which are safe to autocast.");
      });
}

}  // namespace
}  // namespace torch_xla
