// Convolutions and pooling run channels-last, whatever order the program writes.
#pragma once

#include "hlo/module.h"

namespace passes {

// Rewrites convolutions whose activations stand as [batch, features, spatial...], and windows over
// such with a stride, to work on their transposes [batch, spatial..., features], and carries the
// transposed form through what follows: elementwise operations, broadcasts, reduce, reduce_window,
// select_and_scatter, pad, slice, reverse, concatenate, further convolutions. transpose
// instructions remain only where such a value enters from or leaves to operations that know no
// order. Kernels stay as they are: routines reorder them anyway. So does an operand that one
// convolution alone reads and that comes in the plain order, and a result that is wanted in it
// alone: the routine turns what it works on while the cache holds it. Returns true if the module
// changed.
//
// Why: the library's kernels for channels-first activations reach 60-75 % of what those for
// channels-last do (f32, 3x3 convolutions of ResNet on AVX-512: 70-90 against 118 GFLOP/s a core;
// weight gradients 50-80 against 110), and copies around every call would cost what they save.
bool UseChannelsLast(hlo::Module& module);

}  // namespace passes
