// Results whose sizes the data decide. Whoever records them has to wait for the data. Where these
// lie in the host's memory, torch's kernel then computes the result in less time than a program for
// this size takes to start, let alone to be compiled.
#pragma once

#include <ATen/ATen.h>

#include <functional>

namespace torch_xla {

// Of an xla tensor.
bool LiesOnHost(const at::Tensor& self);
// What `kernel` makes of the values of `self`, which LiesOnHost; computes what is pending.
at::Tensor ByHostKernel(const at::Tensor& self,
                        const std::function<at::Tensor(const at::Tensor&)>& kernel);

}  // namespace torch_xla
