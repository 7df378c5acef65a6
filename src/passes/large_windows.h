// Windows over several dimensions that have so many elements that it pays to combine these along
// one dimension after the other: of 8 x 8 elements eight and eight, not 64.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hlo/attributes.h"
#include "hlo/size_arithmetic.h"

namespace passes {

inline bool AreLargeWindows(const hlo::Window& window) {
  // Up to here they are written out in one loop, and a second one over memory would cost more.
  constexpr int64_t kMostTogether = 36;
  const auto several = std::ranges::count_if(window.dimensions, [](int64_t n) { return n > 1; });
  return several > 1 && hlo::Product(window.dimensions) > kMostTogether;
}

}  // namespace passes
