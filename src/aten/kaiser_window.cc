// torch.kaiser_window: torch's own kernel fills a range by a loop that it has for devices it names.
#include <torch/library.h>

#include <cmath>

#include "aten/op.h"

namespace torch_xla {
namespace {

at::Tensor KaiserWindowOf(int64_t length, bool periodic, double beta,
                          std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                          std::optional<at::Device> device, std::optional<bool> pinned) {
  const auto options =
      at::TensorOptions().dtype(dtype).layout(layout).device(device).pinned_memory(pinned);
  const at::ScalarType type = c10::typeMetaToScalarType(options.dtype());
  TORCH_CHECK(at::isFloatingType(type) || at::isComplexType(type),
              "kaiser_window expects floating point dtypes, got: ", options);
  TORCH_CHECK(length >= 0,
              "kaiser_window requires non-negative window_length, got window_length=", length);
  TORCH_CHECK_NOT_IMPLEMENTED(!at::isComplexType(type),
                              "kaiser_window has no complex windows, got: ", options);
  if (length <= 1) return at::ones({length}, options);
  const auto wide = options.dtype(type == at::kDouble ? at::kDouble : at::kFloat);
  const double half = static_cast<double>(length - (periodic ? 0 : 1)) / 2;
  const at::Tensor x = (at::arange(length, wide) - half) / half;
  const at::Tensor peak = at::i0(at::full({}, beta, wide));
  return (at::i0(at::sqrt(1 - x * x) * beta) / peak).to(type);
}

at::Tensor PeriodicKaiserWindow(int64_t length, std::optional<at::ScalarType> dtype,
                                std::optional<at::Layout> layout, std::optional<at::Device> device,
                                std::optional<bool> pinned) {
  return KaiserWindowOf(length, true, 12, dtype, layout, device, pinned);
}

at::Tensor KaiserWindow(int64_t length, bool periodic, std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout> layout, std::optional<at::Device> device,
                        std::optional<bool> pinned) {
  return KaiserWindowOf(length, periodic, 12, dtype, layout, device, pinned);
}

TORCH_LIBRARY_IMPL(aten, XLA, m) {
  m.impl("kaiser_window", &PeriodicKaiserWindow);
  m.impl("kaiser_window.periodic", &KaiserWindow);
  m.impl("kaiser_window.beta", &KaiserWindowOf);
}

}  // namespace
}  // namespace torch_xla
