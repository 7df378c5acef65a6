// Convolutions of f64 and complex numbers become products of patches (cpu/library/
// patch_convolution.cc), which read rows of pixels, if an image has enough of them.
#pragma once

#include <cstdint>

namespace passes {

// Products of fewer columns do not fill a vector.
inline constexpr int64_t kFewestPatchPixels = 8;

}  // namespace passes
