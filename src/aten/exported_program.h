// A function of tensors as a StableHLO program, for other programs and other engines.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "hlo/module.h"
#include "lazy/device.h"

namespace torch_xla {

struct ExportedProgram {
  std::unique_ptr<hlo::Module> module;
  // Of each parameter of the program: which argument it is, or its value, on xla or the CPU.
  std::vector<std::variant<int64_t, at::Tensor>> parameters;
};

// Calls the function once, in a capture of this thread (lazy/capture.h), with placeholders on
// `device` that are like the arguments, which may be on any device. Arguments that the results do
// not need are no parameters, but for those that are `kept`, which come last. Numbers:
// lazy/exported_module.h. Throws what the function throws, and
// c10::Error for results that are on other devices.
ExportedProgram ExportFunction(
    lazy::Device* device, at::TensorList arguments, const std::vector<int64_t>& kept,
    bool inlines_numbers,
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& function);

}  // namespace torch_xla
