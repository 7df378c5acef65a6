// A convolution flips its kernel itself.
#pragma once

#include "hlo/module.h"

namespace passes {

// Replaces the kernel reverse(w, dimensions) of a convolution by w where the dimensions are spatial
// ones of the kernel, and flips window.reversal there. Gradients of a convolution's input are
// written with such a reverse; the engine recognises them by the reversal. Returns true if the
// module changed.
bool FoldReverseIntoConvolution(hlo::Module& module);

}  // namespace passes
