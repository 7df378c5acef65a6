// Operators without a kernel for xla; see fallback.cc.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <initializer_list>
#include <string>

#include "aten/out_rule.h"

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

// An operator that writes in place and has a kernel here, which saves the way of its arguments
// through the fallback.
struct InPlaceOperator {
  explicit InPlaceOperator(const std::string& name) : name(name), rule(OutRuleOf(name, "")) {}
  const std::string name;  // "aten::index_add_"
  const OutRule rule;
};
// Writes the functional operator's result into `target`, and throws where eager does, as the
// fallback would. `inputs`: the other tensors that are read.
void WriteInPlace(const InPlaceOperator& op, const at::Tensor& target, const at::Tensor& result,
                  std::initializer_list<const at::Tensor*> inputs);

}  // namespace torch_xla
