// Sums of 16-bit numbers in graphs that run without a program (interpreter.cc). Torch's kernels add
// to an element in its own type, where sums stop at 256 (bf16) or 2048 (f16); programs add in f32.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace torch_xla {

// Whether torch's kernel is not to make so many additions, all of which may be to one element of
// `x`. Few are left to it: each rounds once, as in eager.
inline bool StopsInOperandType(const at::Tensor& x, const at::Tensor& added, int64_t additions) {
  constexpr int64_t kFewAdditions = 64;
  return at::isReducedFloatingType(x.scalar_type()) && added.scalar_type() == x.scalar_type() &&
         additions >= kFewAdditions;
}

}  // namespace torch_xla
