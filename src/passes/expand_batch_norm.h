// Batch normalisation as elementwise arithmetic and two reductions, which fuse with their
// neighbours.
#pragma once

#include "hlo/module.h"

namespace passes {

// Replaces batch_norm_training, batch_norm_inference and batch_norm_grad (StableHLO's formulas; the
// variance is the biased one) by reduce, broadcast_in_dim and elementwise instructions. f16 and
// bf16 inputs are computed in f32. The training variance is the mean of (x - mean)^2, not E[x^2] -
// mean^2, which cancels. Returns true if the module changed.
bool ExpandBatchNorm(hlo::Module& module);

}  // namespace passes
