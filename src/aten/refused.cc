// Kinds of tensors that do not live on the device. Each says so, and what to do instead.
#include <torch/library.h>

namespace torch_xla {
namespace {

using c10::OperatorHandle;
using torch::jit::Stack;

constexpr char kNested[] =
    ": nested tensors of the strided layout are not supported on xla. Use the jagged layout "
    "(layout=torch.jagged), or pad them (tensor.to_padded_tensor(0)).";
constexpr char kQuantized[] =
    ": quantized tensors are not supported on xla. Keep the integers, their scale and zero point "
    "as plain tensors, simulate quantization (torch.fake_quantize_per_tensor_affine), or move the "
    "computation to the CPU (tensor.cpu()).";

template <const char* why>
[[noreturn]] void Refuse(const OperatorHandle& op, Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, op.schema().name(), why);
}

template <const char* why>
torch::CppFunction Refused() {
  return torch::CppFunction::makeFromBoxedFunction<&Refuse<why>>();
}

TORCH_LIBRARY_IMPL(_, NestedTensorXLA, m) { m.fallback(Refused<kNested>()); }

// On the CPU these would give a tensor on the CPU.
TORCH_LIBRARY_IMPL(aten, XLA, m) {
  for (const char* name :
       {"quantize_per_tensor", "quantize_per_tensor.tensor_qparams", "quantize_per_tensor.tensors",
        "quantize_per_tensor_dynamic", "quantize_per_channel", "_make_per_tensor_quantized_tensor",
        "_make_per_channel_quantized_tensor"}) {
    m.impl(name, Refused<kQuantized>());
  }
}

// What moves to the device; torch's own forgets to.
TORCH_LIBRARY_IMPL(aten, QuantizedXLA, m) { m.impl("_to_copy", Refused<kQuantized>()); }

}  // namespace
}  // namespace torch_xla
