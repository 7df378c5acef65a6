// Attention on NVIDIA's GPUs: XLA's compiler for them knows cuDNN's fused kernels, which keep no
// matrix of scores, as custom calls that a program has to ask for.
#pragma once

#include <functional>
#include <string>

#include "hlo/module.h"

namespace passes {

// Makes custom calls of the composites of hlo/attention_composite.h that these kernels serve: of
// f16 and bf16, with a head's width a multiple of 8 and at most 128, 64 queries and keys or more,
// as many of them as keys where it is causal, and a mask of the operands' type if there is one.
// Every other one stays as it is. The numbers are those of the decomposition but for rounding: the
// weights are rounded to the operands' type before they are multiplied with the values; and but for
// rows that see no key above -2^25 (f16: -49152), whose numbers below that weigh alike
// (passes/cudnn_mask.h).
//
// A processor or a cuDNN that does not serve what is asked for says so when the program is
// compiled. What it may refuse one attention for and serve another is its kind, a text for people:
// the pass, types and sizes but the batch, the heads and the lengths. `is_wanted` is asked of each
// that could be a call. Returns true if the module changed.
bool UseCudnnAttention(hlo::Module& module,
                       const std::function<bool(const std::string& kind)>& is_wanted = {});

}  // namespace passes
