// Draws as the reference evaluator computes them (eager_form.h): from the same lowering as a
// program's, so that they are the same numbers. For nothing that torch's kernels compute.
#pragma once

#include "lazy/op.h"

namespace torch_xla {

// Of a kind that has no form yet.
void RunByEvaluator(lazy::OperationKind& kind);

// Of what `f` records.
template <auto f>
void RunByEvaluator() {
  RunByEvaluator(lazy::Op<f>::kind());
}

}  // namespace torch_xla
