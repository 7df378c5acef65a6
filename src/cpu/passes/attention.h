// Attention becomes one library call.
#pragma once

#include "hlo/module.h"

namespace cpu {

// Makes a kAttentionCall of each composite of hlo/attention_composite.h, with the transpositions
// of its operands and results that the library reads and writes through. Returns true if the
// module changed.
bool MakeAttentionCalls(hlo::Module& module);

}  // namespace cpu
