// The largest numbers of element types.
#pragma once

#include <cmath>
#include <limits>

#include "hlo/element_type.h"

namespace torch_xla {

// The largest finite number of a type, as a double. Of integers, the largest that the type they are
// computed in has.
inline double LargestFinite(hlo::ElementType type) {
  switch (type) {
    case hlo::ElementType::kF16:
      return 65504;
    case hlo::ElementType::kBF16:
      return 0x1.fep127;
    case hlo::ElementType::kF32:
      return std::numeric_limits<float>::max();
    case hlo::ElementType::kF64:
      return std::numeric_limits<double>::max();
    default:
      break;
  }
  int digits = hlo::BitWidth(type) - (hlo::IsSignedInteger(type) ? 1 : 0);
  return digits <= 53 ? std::ldexp(1.0, digits) - 1 : std::ldexp(1 - 0x1p-53, digits);
}

}  // namespace torch_xla
