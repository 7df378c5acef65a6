// Loops and branches as one recorded operation each, whose attributes are the bodies: StableHLO's
// `while` and `if`. A body is recorded once, however often it runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "aten/captured_steps.h"

namespace torch_xla {

// A function of tensors as the body of a loop or branch.
class CapturedFunction {
 public:
  // Takes placeholders, which are tensors without data: reading one throws.
  using Function = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

  // Calls the function once, in a capture of this thread (lazy/capture.h), with dense placeholders
  // on `device` of the sizes and types of `like`, tensors of any device. Throws what the function
  // throws, and c10::Error for results that are not on xla, for a function that writes into its
  // arguments or into tensors from before, and for collectives.
  CapturedFunction(c10::Device device, at::TensorList like, const Function& function);

  lazy::Device* device() const { return device_; }
  const CapturedWork& work() const { return work_; }
  size_t argument_count() const { return arguments_.size(); }
  const std::vector<Shape>& results() const { return results_; }
  // Whether both do the same operations with the same numbers. Other tensors that they use are the
  // same ones.
  bool DoesTheSame(const CapturedFunction& other) const;
  // Whether it uses tensors that are neither arguments nor numbers, and keeps them alive.
  bool KeepsData() const;
  // Throws unless they are on the device and like those that the capture was made for.
  std::vector<lazy::Value> Read(at::TensorList arguments) const;

 private:
  lazy::Device* device_;
  std::vector<Shape> arguments_, results_;
  CapturedWork work_;
};

// `body` takes carries, one element of each of `xs` along its first dimension, and the invariants;
// it gives as many carries of the same shapes and types, and then ys. Runs it `length` times, from
// the last element of xs on if `reverse`. Returns the last carries, and the ys of all runs stacked
// in the order of xs. Each run draws numbers of its own.
std::vector<at::Tensor> Scan(const CapturedFunction& body, at::TensorList carries,
                             at::TensorList xs, at::TensorList invariants, int64_t length,
                             bool reverse);

// Both functions take the carries and the invariants. `condition` gives one bool of one element,
// `body` the next carries, of the same shapes and types.
std::vector<at::Tensor> WhileLoop(const CapturedFunction& condition, const CapturedFunction& body,
                                  at::TensorList carries, at::TensorList invariants);

// What `on_true` or `on_false` gives of the operands; both give the same shapes and types.
// `predicate` has one element.
std::vector<at::Tensor> Branch(const at::Tensor& predicate, const CapturedFunction& on_true,
                               const CapturedFunction& on_false, at::TensorList operands);

}  // namespace torch_xla
