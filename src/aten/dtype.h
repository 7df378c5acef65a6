// torch's scalar types and HLO's element types, one to one.
#pragma once

#include <c10/core/ScalarType.h>

#include "hlo/element_type.h"

namespace torch_xla {

// Throws c10::Error for types that the device does not have (quantized, bits).
hlo::ElementType ToElementType(at::ScalarType type);
at::ScalarType ToScalarType(hlo::ElementType type);

}  // namespace torch_xla
