// Operators that need LAPACK (hlo/lapack_call.h): on a device whose plugin has its routines they
// are recorded; on any other they run on the CPU.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <torch/library.h>

#include "aten/fallback.h"
#include "aten/refused_types.h"
#include "hlo/error.h"
#include "hlo/lapack_call.h"
#include "lazy/device.h"

namespace torch_xla {

// Whether the plugin in use has LAPACK's routines.
inline bool DeviceHasLapack() {
  return lazy::Runtime::Get().client().plugin().attributes().contains(
      hlo::lapack::kPluginAttribute);
}

// Registers `kernel`, a function of tensors, as operator `name`.
template <auto kernel>
void RegisterLapack(torch::Library& m, const char* name);

// Whether LAPACK succeeded is known when its result is: reads `info` and throws as eager does
// (torch.linalg.LinAlgError), one matrix or a batch of them.
inline void CheckInfo(const at::Tensor& info, const char* name, const at::Tensor& matrix) {
  at::_linalg_check_errors(info, name, /*is_matrix=*/matrix.dim() == 2);
}

// Throws torch's NotImplementedError for types that LAPACK has no routine for. `kernel` is what
// eager calls it.
inline void CheckLapackType(const at::Tensor& matrix, const char* kernel) {
  const at::ScalarType type = c10::toRealValueType(matrix.scalar_type());
  CheckKernel(type == at::kFloat || type == at::kDouble, kernel, matrix.scalar_type());
}

// As LAPACK's `info` where torch throws if a matrix fails: a graph whose program tells of it is run
// by that (lazy/interpreter.h).
inline at::Tensor SuccessOf(const at::Tensor& matrices) {
  return at::zeros(matrices.sizes().slice(0, matrices.dim() - 2), at::kInt);
}

// Throws for numbers that LAPACK's iterations may never end with.
inline void RequireFinite(const at::Tensor& matrices) {
  if (!at::isfinite(matrices).all().item<bool>()) {
    throw hlo::Error("infinities or NaNs, of which the program takes care");
  }
}

// --- Implementation

namespace lapack {

template <auto kernel>
void RunBoxed(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (!DeviceHasLapack()) return FallBack(op, stack);
  static const auto* boxed =
      new c10::KernelFunction(c10::KernelFunction::makeFromUnboxedFunction(TORCH_FN(kernel)));
  boxed->callBoxed(op, keys, stack);
}

}  // namespace lapack

template <auto kernel>
void RegisterLapack(torch::Library& m, const char* name) {
  m.impl(name, torch::CppFunction::makeFromBoxedFunction<&lapack::RunBoxed<kernel>>());
}

}  // namespace torch_xla
