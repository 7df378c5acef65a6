// `variable.set_data(tensor)` between the CPU and the device.
#pragma once

#include <ATen/core/TensorBase.h>

namespace torch_xla {

// Whether `variable`, an ordinary dense tensor, can be given the data of `data`, where one of them
// is on the device and the other there or on the CPU.
bool CanSetData(const at::TensorBase& variable, const at::TensorBase& data);

}  // namespace torch_xla
