// Operators without a kernel for xla; see fallback.cc.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <string>

namespace torch_xla {

// Runs the operator by others on the device: replaces its arguments on the stack by its results and
// returns true, or returns false and leaves the stack alone.
using Decomposer = std::function<bool(const c10::OperatorHandle&, torch::jit::Stack*)>;
void SetDecomposer(Decomposer decomposer);

// Called with "aten::name" before an operator runs on the CPU.
using FallbackObserver = std::function<void(const std::string&)>;
void SetFallbackObserver(FallbackObserver observer);

// Runs the operator by its functional one or by a decomposition, as the decomposer does.
bool RunByOthers(const c10::OperatorHandle& op, torch::jit::Stack* stack);
// Counts an operator that is about to run on the CPU, and tells the observer.
void CountFallback(const c10::OperatorHandle& op);

// What becomes of an operator that has no kernel here; for kernels that not every device can run.
void FallBack(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace torch_xla
