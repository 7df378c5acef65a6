// Draws as the reference evaluator computes them (eager_form.h): from the same lowering as a
// program's, so that they are the same numbers. Slow, and for nothing that torch's kernels compute.
#pragma once

#include <memory>

#include "aten/op.h"

namespace torch_xla {

std::unique_ptr<lazy::EagerForm> EvaluatedForm();

// Of what `f` records.
template <auto f>
void RunByEvaluator() {
  eager::SetForm(lazy::Op<f>::kind(), EvaluatedForm());
}

}  // namespace torch_xla
