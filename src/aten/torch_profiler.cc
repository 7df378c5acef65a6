#include "aten/torch_profiler.h"

#include <ATen/record_function.h>

#include <optional>
#include <string>

#include "lazy/span.h"
#include "process/fork.h"

namespace torch_xla {
namespace {

// torch looks under a lock of its own, which a child forked meanwhile would find taken for ever.
bool IsWanted() {
  const process::NoFork no_fork;
  return at::hasCallbacks();
}

std::optional<at::StepCallbacks> Callbacks() {
  const process::NoFork no_fork;
  return at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE);
}

void* Enter(const std::string& name) {
  auto callbacks = Callbacks();
  if (!callbacks) return nullptr;
  auto* function = new at::RecordFunction(std::move(*callbacks));
  function->before(name);
  return function;
}

void Leave(void* function) { delete static_cast<at::RecordFunction*>(function); }

}  // namespace

void ShowSpansToTorchProfiler() { lazy::SetSpanScope({&IsWanted, &Enter, &Leave}); }

}  // namespace torch_xla
